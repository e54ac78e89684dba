package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Momentum is a market with a trend that nobody sees. A day opens where the day before closed and
// closes Move higher or lower: in the direction of the trend with probability Accuracy. The trend
// turns overnight with probability Change, so it lasts for 1/Change days on average. What can be
// known of it is what the moves so far say, each less the older it is; the best policy weighs that
// against what trading costs.
type Momentum struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets, each with its own trend. Start is
	// the first day; days are weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Move is the size of every move, from open to close, as a fraction of the price.
	Move float64 `yaml:"move"`
	// Accuracy is the probability that a move follows the trend, from 1/2, which hides it for good,
	// to 1.
	Accuracy float64 `yaml:"accuracy"`
	// Change is the probability that the trend turns.
	Change float64 `yaml:"change"`
}

// DefaultMomentum returns one asset with moves of 1 %, seven of ten with a trend of 50 days.
func DefaultMomentum() Momentum {
	return Momentum{Seed: 1, Bars: 3000, Assets: 1, Start: date("2000-01-03"), Move: 0.01, Accuracy: 0.7, Change: 0.02}
}

// Validate implements Market.
func (m Momentum) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	checkHidden(&p, m.Start, m.Move, m.Accuracy, m.Change)
	return p.Err()
}

func checkHidden(p *configs.Problems, start bars.Date, move, accuracy, change float64) {
	p.Check(!start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.Check(move > 0 && move <= 0.2, "move", "%g, expected a fraction in (0, 0.2]", move)
	p.Check(accuracy >= 0.5 && accuracy <= 1, "accuracy", "%g, expected a probability in [0.5, 1]", accuracy)
	p.Check(change > 0 && change <= 0.5, "change", "%g, expected a probability in (0, 0.5]", change)
}

// Generate implements Market.
func (m Momentum) Generate() *bars.Data {
	root := rng.New(m.Seed).Split("momentum")
	series := hidden(root, m.Start, m.Bars, m.Assets, m.Move, belief{m.Change, m.Accuracy}, func(_, follows, trend bool) bool { return follows == trend })
	return data(fmt.Sprintf("synthetic momentum, seed %d", m.Seed), series, nil)
}

// hidden makes series whose moves depend on a hidden state: up says whether a price rises, by
// whether the last one did, whether the state shows itself, and the state.
func hidden(root rng.Key, start bars.Date, count, assets int, move float64, h belief, up func(last, shows, state bool) bool) []bars.Series {
	times, series := days(start, count), make([]bars.Series, assets)
	for n := range series {
		moves, states, shape := root.Split("move", n).Stream(), root.Split("state", n).Stream(), root.Split("shape", n).Stream()
		records, price := make([]bars.Record, count), 100.0
		state, last := states.Bernoulli(0.5), moves.Bernoulli(0.5)
		for t := range records {
			last = up(last, moves.Bernoulli(h.accuracy), state)
			closing := price * (1 - move)
			if last {
				closing = price * (1 + move)
			}
			records[t].Bar = bar(shape, times[t], price, closing, move)
			if price = closing; states.Bernoulli(h.change) {
				state = !state
			}
		}
		series[n] = bars.Series{Symbol: symbol(n), Records: records}
	}
	return series
}

// Chain implements Known: the states are beliefs that the trend of the next bar is upwards.
func (m Momentum) Chain() *Chain {
	h, c := belief{m.Change, m.Accuracy}, &Chain{Moves: moves(-m.Move, m.Move), Next: make([][]Branch, levels)}
	for i := range c.Next {
		b := float64(i) / (levels - 1)
		c.Next[i] = split(c.Next[i], 1-h.seen(b), h.after(b, false), 0, 0)
		c.Next[i] = split(c.Next[i], h.seen(b), h.after(b, true), 1, 0)
	}
	return c
}

// States implements Known.
func (m Momentum) States(s Seen) ([]float64, error) {
	h, b, states := belief{m.Change, m.Accuracy}, 0.5, make([]float64, len(s.Close))
	for t := range states {
		b = h.after(b, s.rises(t))
		states[t] = b * (levels - 1)
	}
	return states, nil
}
