package synthetic

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// LeadingVolume is a market whose moves are announced by the volume of the day before: it is above
// half a million shares before a rise with probability Accuracy, else below. It is a
// [LeadingIndicator] whose signal an agent has to find among what every market has.
type LeadingVolume struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets. Start is the first day; days are
	// weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Move is the size of every move, from open to close, as a fraction of the price.
	Move float64 `yaml:"move"`
	// Accuracy is the probability that the volume is right, from 1/2, useless, to 1.
	Accuracy float64 `yaml:"accuracy"`
}

// DefaultLeadingVolume returns one asset with moves of 1 %, told rightly eight times out of ten.
func DefaultLeadingVolume() LeadingVolume {
	return LeadingVolume{Seed: 1, Bars: 3000, Assets: 1, Start: date("2000-01-03"), Move: 0.01, Accuracy: 0.8}
}

// Validate implements Market.
func (m LeadingVolume) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	checkHidden(&p, m.Start, m.Move, m.Accuracy, 0.5)
	return p.Err()
}

// high is the volume that divides those before a rise from those before a fall.
const high = 500_000

// Generate implements Market.
func (m LeadingVolume) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("leading_volume"), days(m.Start, m.Bars)
	series := make([]bars.Series, m.Assets)
	for n := range series {
		moves, tells, shape := root.Split("move", n).Stream(), root.Split("volume", n).Stream(), root.Split("shape", n).Stream()
		records, price, up := make([]bars.Record, m.Bars), 100.0, moves.Bernoulli(0.5)
		for t := range records {
			closing := price * (1 + m.Move)
			if !up {
				closing = price * (1 - m.Move)
			}
			records[t].Bar = bar(shape, times[t], price, closing, m.Move)
			price, up = closing, moves.Bernoulli(0.5)
			// Volumes are uniform on either side of the middle, 400,000 wide.
			volume := 100_000 + float64(400_000*tells.Float64())
			if up == tells.Bernoulli(m.Accuracy) {
				volume += 400_000
			}
			records[t].Volume = math.Floor(volume)
		}
		series[n] = bars.Series{Symbol: symbol(n), Records: records}
	}
	return data(fmt.Sprintf("synthetic leading_volume, seed %d", m.Seed), series, nil)
}

// Chain implements Known: the states are a low volume and a high one.
func (m LeadingVolume) Chain() *Chain { return announced(m.Move, m.Accuracy) }

// States implements Known.
func (m LeadingVolume) States(s Seen) ([]float64, error) {
	if s.Volume == nil {
		return nil, errors.New("the market has no volume")
	}
	states := make([]float64, len(s.Volume))
	for t, v := range s.Volume {
		if v >= high {
			states[t] = 1
		}
	}
	return states, nil
}
