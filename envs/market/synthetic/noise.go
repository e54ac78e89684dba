package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Noise is a market in which nothing can be earned: the expected return is 0 overnight and during
// the day, whatever came before, for every asset. Returns are normal, limited to five standard
// deviations on either side.
type Noise struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets; Start is the first day, and days are
	// weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Volatility is the standard deviation of a day's return; a quarter of the variance is made
	// overnight.
	Volatility float64 `yaml:"volatility"`
}

// DefaultNoise returns four assets with a volatility of 1 % a day.
func DefaultNoise() Noise {
	return Noise{Seed: 1, Bars: 3000, Assets: 4, Start: date("2000-01-03"), Volatility: 0.01}
}

// Validate implements Market.
func (m Noise) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	p.Check(!m.Start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.Check(m.Volatility > 0 && m.Volatility <= 0.1, "volatility", "%g, expected a fraction in (0, 0.1]", m.Volatility)
	return p.Err()
}

// Generate implements Market.
func (m Noise) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("noise"), days(m.Start, m.Bars)
	const night, day = 0.5, 0.8660254037844386 // squares that add up to 1
	series := make([]bars.Series, m.Assets)
	for n := range series {
		returns, shape := root.Split("return", n).Stream(), root.Split("shape", n).Stream()
		move := func(share float64) float64 {
			return 1 + float64(m.Volatility*share*max(-5, min(5, returns.Normal())))
		}
		records := make([]bars.Record, m.Bars)
		price := 100.0
		for t := range records {
			open := price * move(night)
			price = open * move(day)
			records[t].Bar = bar(shape, times[t], open, price, m.Volatility)
		}
		series[n] = bars.Series{Symbol: symbol(n), Records: records}
	}
	return data(fmt.Sprintf("synthetic noise, seed %d", m.Seed), series, nil)
}
