package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Signal is the column of a LeadingIndicator that tells the next move: 1 up, -1 down.
const Signal = "signal"

// LeadingIndicator is a market whose moves are announced. A day opens where the day before closed
// and closes Move higher or lower, each with probability 1/2 and independently of everything
// before. The signal of a day is the direction of the next day's move with probability Accuracy,
// else the other one. A decision taken at a day's close and filled at the next open therefore still
// earns the whole move that the signal tells; one that is filled at the next close earns nothing of
// it.
//
// Prices are martingales for whoever does not look at the signal: all that can be earned is earned
// by it.
type LeadingIndicator struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets, each with its own moves and signal.
	// Start is the first day; days are weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Move is the size of every move, from open to close, as a fraction of the price.
	Move float64 `yaml:"move"`
	// Accuracy is the probability that the signal is right, from 1/2, useless, to 1.
	Accuracy float64 `yaml:"accuracy"`
}

// DefaultLeadingIndicator returns one asset with moves of 1 %, told rightly nine times out of ten.
func DefaultLeadingIndicator() LeadingIndicator {
	return LeadingIndicator{Seed: 1, Bars: 3000, Assets: 1, Start: date("2000-01-03"), Move: 0.01, Accuracy: 0.9}
}

// Validate implements Market.
func (m LeadingIndicator) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	p.Check(!m.Start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.Check(m.Move > 0 && m.Move <= 0.2, "move", "%g, expected a fraction in (0, 0.2]", m.Move)
	p.Check(m.Accuracy >= 0.5 && m.Accuracy <= 1, "accuracy", "%g, expected a probability in [0.5, 1]", m.Accuracy)
	return p.Err()
}

// Generate implements Market.
func (m LeadingIndicator) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("leading_indicator"), days(m.Start, m.Bars)
	series := make([]bars.Series, m.Assets)
	for n := range series {
		moves, tells, shape := root.Split("move", n).Stream(), root.Split("signal", n).Stream(), root.Split("shape", n).Stream()
		records := make([]bars.Record, m.Bars)
		price, up := 100.0, moves.Bernoulli(0.5)
		for t := range records {
			closing := price * (1 + m.Move)
			if !up {
				closing = price * (1 - m.Move)
			}
			records[t].Bar = bar(shape, times[t], price, closing, m.Move)
			price, up = closing, moves.Bernoulli(0.5)
			signal := -1.0
			if up == tells.Bernoulli(m.Accuracy) {
				signal = 1
			}
			records[t].Extra = []float64{signal}
		}
		series[n] = bars.Series{Symbol: symbol(n), Records: records}
	}
	return data(fmt.Sprintf("synthetic leading_indicator, seed %d", m.Seed), series, []string{Signal})
}

// Chain implements Known: the states are a signal down and one up.
func (m LeadingIndicator) Chain() *Chain { return announced(m.Move, m.Accuracy) }

// announced is a chain of two states, each of which says where the next move goes.
func announced(move, accuracy float64) *Chain {
	c := &Chain{Moves: moves(-move, move), Next: make([][]Branch, 2)}
	for said := range c.Next {
		for up := range c.Moves {
			p := accuracy
			if up != said {
				p = 1 - p
			}
			for next := range c.Next {
				c.Next[said] = append(c.Next[said], Branch{p / 2, up, next})
			}
		}
	}
	return c
}

// States implements Known.
func (m LeadingIndicator) States(s Seen) ([]float64, error) {
	signal, err := s.column(Signal)
	if err != nil {
		return nil, err
	}
	states := make([]float64, len(signal))
	for t, v := range signal {
		if v > 0 {
			states[t] = 1
		}
	}
	return states, nil
}
