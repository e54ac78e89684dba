package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Spread is the column of Pairs that says how dear an asset is, compared with the other.
const Spread = "spread"

// Pairs is a market of two assets whose prices never part for long. On each day a common factor
// moves both by Common, up or down with probability 1/2, which nothing tells. Besides, unless they
// rest, one is multiplied and the other divided by 1 + Move: the logarithm of the ratio of prices
// is one of 2·Levels + 1 equidistant values around 0, and from the value k it goes towards 0 with
// probability (1 + |k|/Levels)/2 (Ehrenfest's urn). A day opens where the day before closed.
//
// The column spread is k/Levels of the first asset and -k/Levels of the second: what is high is
// going to fall behind. Whether that is worth the fees, and what is held already, is what a policy
// has to find out.
type Pairs struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days. Start is the first one; days are weekdays.
	Bars  int       `yaml:"bars"`
	Start bars.Date `yaml:"start"`
	// Common is the size of the moves that both have in common, Move of those that part or join
	// them, as fractions of the price.
	Common float64 `yaml:"common"`
	Move   float64 `yaml:"move"`
	// Levels is how many moves they can be apart.
	Levels int `yaml:"levels"`
	// Rest is the probability of a day that neither parts nor joins them.
	Rest float64 `yaml:"rest"`
}

// DefaultPairs returns assets that are up to four moves of 0.5 % apart.
func DefaultPairs() Pairs {
	return Pairs{Seed: 1, Bars: 3000, Start: date("2000-01-03"), Common: 0.005, Move: 0.005, Levels: 4, Rest: 0.3}
}

// Validate implements Market.
func (m Pairs) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, 2)
	p.Check(!m.Start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.Check(m.Common >= 0 && m.Common <= 0.1, "common", "%g, expected a fraction in [0, 0.1]", m.Common)
	p.Check(m.Move > 0 && m.Move <= 0.1, "move", "%g, expected a fraction in (0, 0.1]", m.Move)
	p.Check(m.Levels >= 1 && m.Levels <= 20, "levels", "%d, expected 1 to 20", m.Levels)
	p.Check(m.Rest > 0 && m.Rest < 1, "rest", "%g, expected a probability in (0, 1)", m.Rest)
	return p.Err()
}

// change is what a day does to an asset: common is whether both rise, apart -1, 0 or 1.
func (m Pairs) change(common bool, apart int) float64 {
	x := 1 - m.Common
	if common {
		x = 1 + m.Common
	}
	switch apart {
	case 1:
		x *= 1 + m.Move
	case -1:
		x /= 1 + m.Move
	}
	return x - 1
}

// parts is the probability that k grows, unless it rests.
func (m Pairs) parts(k int) float64 { return (1 - float64(k)/float64(m.Levels)) / 2 }

// Generate implements Market.
func (m Pairs) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("pairs"), days(m.Start, m.Bars)
	common, apart := root.Split("common").Stream(), root.Split("apart").Stream()
	shapes := []*rng.Stream{root.Split("shape", 0).Stream(), root.Split("shape", 1).Stream()}
	series, k, prices := make([]bars.Series, 2), 0, [2]float64{100, 100}
	for n := range series {
		series[n] = bars.Series{Symbol: symbol(n), Records: make([]bars.Record, m.Bars)}
	}
	for t := range m.Bars {
		step, up := 0, common.Bernoulli(0.5)
		if !apart.Bernoulli(m.Rest) {
			if step = -1; apart.Bernoulli(m.parts(k)) {
				step = 1
			}
		}
		k += step
		for n := range series {
			sign := 1 - 2*n
			closing := prices[n] * (1 + m.change(up, sign*step))
			series[n].Records[t] = bars.Record{Bar: bar(shapes[n], times[t], prices[n], closing, m.Move), Extra: []float64{float64(sign*k) / float64(m.Levels)}}
			prices[n] = closing
		}
	}
	return data(fmt.Sprintf("synthetic pairs, seed %d", m.Seed), series, []string{Spread})
}

// Chain implements Known: the states are k from -Levels to Levels.
func (m Pairs) Chain() *Chain {
	c := &Chain{Next: make([][]Branch, 2*m.Levels+1)}
	for _, up := range []bool{false, true} {
		for apart := -1; apart <= 1; apart++ {
			c.Moves = append(c.Moves, Move{{Day: m.change(up, apart)}, {Day: m.change(up, -apart)}})
		}
	}
	for s := range c.Next {
		grows := m.parts(s - m.Levels)
		for apart, p := range []float64{(1 - m.Rest) * (1 - grows), m.Rest, (1 - m.Rest) * grows} {
			if p > 0 {
				to := s + apart - 1
				c.Next[s] = append(c.Next[s], Branch{p / 2, apart, to}, Branch{p / 2, 3 + apart, to})
			}
		}
	}
	return c
}

// States implements Known.
func (m Pairs) States(s Seen) ([]float64, error) {
	spread, err := s.column(Spread)
	if err != nil {
		return nil, err
	}
	states := make([]float64, len(spread))
	for t, v := range spread {
		states[t] = float64(int((v+1)*float64(m.Levels) + 0.5))
	}
	return states, nil
}
