package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Regimes is a market that changes between two regimes which nobody sees. A day opens where the day
// before closed and closes Move higher or lower: in a trending regime as the day before with
// probability Accuracy, in a reverting one the other way with that probability. What earns in one
// loses in the other, so a policy must find out which one it is in.
type Regimes struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets, each with its own regimes. Start is
	// the first day; days are weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Move is the size of every move, from open to close, as a fraction of the price.
	Move float64 `yaml:"move"`
	// Accuracy is the probability that a move is what the regime makes of the one before, from 1/2,
	// where regimes do not matter, to 1.
	Accuracy float64 `yaml:"accuracy"`
	// Change is the probability that the regime changes overnight.
	Change float64 `yaml:"change"`
}

// DefaultRegimes returns one asset with moves of 1 % and regimes of 100 days.
func DefaultRegimes() Regimes {
	return Regimes{Seed: 1, Bars: 3000, Assets: 1, Start: date("2000-01-03"), Move: 0.01, Accuracy: 0.8, Change: 0.01}
}

// Validate implements Market.
func (m Regimes) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	checkHidden(&p, m.Start, m.Move, m.Accuracy, m.Change)
	return p.Err()
}

// Generate implements Market.
func (m Regimes) Generate() *bars.Data {
	root := rng.New(m.Seed).Split("regimes")
	series := hidden(root, m.Start, m.Bars, m.Assets, m.Move, belief{m.Change, m.Accuracy}, func(last, shows, trends bool) bool { return (last == shows) == trends })
	return data(fmt.Sprintf("synthetic regimes, seed %d", m.Seed), series, nil)
}

// Chain implements Known: the states are, for a last move down and then for one up, beliefs that
// the regime of the next bar is trending.
func (m Regimes) Chain() *Chain {
	h, c := belief{m.Change, m.Accuracy}, &Chain{Moves: moves(-m.Move, m.Move), Next: make([][]Branch, 2*levels)}
	for i := range c.Next {
		last, b := i/levels, float64(i%levels)/(levels-1)
		for move := range 2 {
			p := h.seen(b)
			if move != last {
				p = 1 - p
			}
			c.Next[i] = split(c.Next[i], p, h.after(b, move == last), move, move*levels)
		}
	}
	return c
}

// States implements Known.
func (m Regimes) States(s Seen) ([]float64, error) {
	h, b, states, last := belief{m.Change, m.Accuracy}, 0.5, make([]float64, len(s.Close)), false
	for t := range states {
		up := s.rises(t)
		if t > 0 {
			b = h.after(b, up == last)
		}
		last = up
		if states[t] = b * (levels - 1); up {
			states[t] += levels
		}
	}
	return states, nil
}
