package synthetic

import (
	"errors"
	"math"

	"github.com/onnxrl/onnxrl/configs"
)

// Terms are what trading costs and how much a decision trades, as in package trading with fills at
// the next open.
type Terms struct {
	FeeRate, BuyPct, SellPct float64
	// Log counts rewards as log returns, otherwise as simple ones.
	Log bool
}

// Validate reports all problems.
func (c Terms) Validate() error {
	var p configs.Problems
	p.Check(c.FeeRate >= 0 && c.FeeRate < 1, "fee_rate", "%g, expected a fraction in [0, 1)", c.FeeRate)
	p.Check(c.BuyPct > 0 && c.BuyPct <= 1, "buy_pct", "%g, expected a fraction in (0, 1]", c.BuyPct)
	p.Check(c.SellPct > 0 && c.SellPct <= 1, "sell_pct", "%g, expected a fraction in (0, 1]", c.SellPct)
	return p.Err()
}

// Actions of a policy, numbered as in package trading.
const (
	Buy = iota
	Sell
	Hold
	actions
)

// Optimum is the best policy for one asset of a LeadingIndicator: the one with the highest mean
// reward per bar in the long run.
type Optimum struct {
	// Gain is that mean reward.
	Gain float64
	// value[s][i] is the advantage of beginning with the share i/(points-1) of the portfolio in the
	// asset and the signal s (0 down, 1 up), over beginning with nothing and a signal drawn by
	// chance.
	value  [2][]float64
	market LeadingIndicator
	terms  Terms
}

// points is the number of shares at which values are computed; between them they are interpolated.
const points = 1001

// Optimum computes the best policy by relative value iteration (White 1963; Puterman, Markov
// Decision Processes, 8.5.5) over the share of the portfolio in the asset and the signal, which
// together are all that the future depends on: moves are independent of each other, and rewards and
// rules are relative to the portfolio's value.
func (m LeadingIndicator) Optimum(terms Terms) (*Optimum, error) {
	if err := errors.Join(configs.Validate(m), configs.Validate(terms)); err != nil {
		return nil, err
	}
	o := &Optimum{market: m, terms: terms, value: [2][]float64{make([]float64, points), make([]float64, points)}}
	for range 10_000 {
		if o.sweep() < 1e-12*m.Move {
			return o, nil
		}
	}
	return nil, errors.New("optimum: value iteration does not converge")
}

// sweep improves the values once and returns by how much the gains of different states still
// differ.
func (o *Optimum) sweep() float64 {
	var next [2][]float64
	low, high := math.Inf(1), math.Inf(-1)
	for s := range next {
		next[s] = make([]float64, points)
		for i := range next[s] {
			share, best := float64(i)/(points-1), math.Inf(-1)
			for a := range actions {
				best = max(best, o.quality(share, s, a))
			}
			next[s][i] = best
			low, high = min(low, best-o.value[s][i]), max(high, best-o.value[s][i])
		}
	}
	o.Gain = (low + high) / 2
	base := (next[0][0] + next[1][0]) / 2
	for s := range next {
		for i := range next[s] {
			next[s][i] -= base
		}
	}
	o.value = next
	return high - low
}

// quality is the expected reward of an action and value of what follows.
func (o *Optimum) quality(share float64, signal, action int) float64 {
	right := o.market.Accuracy
	rewardUp, shareUp := o.terms.Outcome(share, action, o.market.Move)
	rewardDown, shareDown := o.terms.Outcome(share, action, -o.market.Move)
	if signal == 0 {
		right = 1 - right
	}
	return right*(rewardUp+o.expected(shareUp)) + (1-right)*(rewardDown+o.expected(shareDown))
}

// expected is the value of a share before the signal is known.
func (o *Optimum) expected(share float64) float64 {
	at := share * (points - 1)
	i := min(int(at), points-2)
	f := at - float64(i)
	return ((1-f)*(o.value[0][i]+o.value[1][i]) + f*(o.value[0][i+1]+o.value[1][i+1])) / 2
}

// Outcome is the reward of an action when the price then changes by the fraction move, and the
// share of the portfolio that is in the asset after it; share is the one before.
func (c Terms) Outcome(share float64, action int, move float64) (reward, after float64) {
	worth := 1.0
	switch action {
	case Buy:
		amount := c.BuyPct * (1 - share) / (1 + c.FeeRate)
		share, worth = share+amount, worth-c.FeeRate*amount
	case Sell:
		amount := c.SellPct * share
		share, worth = share-amount, worth-c.FeeRate*amount
	}
	worth += share * move
	after = min(share*(1+move)/worth, 1)
	if c.Log {
		return math.Log(worth), after
	}
	return worth - 1, after
}

// Decide returns the best action for a share of the portfolio in the asset and a signal, positive
// or negative.
func (o *Optimum) Decide(share, signal float64) int {
	s := 0
	if signal > 0 {
		s = 1
	}
	best, most := Hold, math.Inf(-1)
	for a := range actions {
		if q := o.quality(share, s, a); q > most {
			best, most = a, q
		}
	}
	return best
}
