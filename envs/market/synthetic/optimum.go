package synthetic

import (
	"errors"
	"math"
	"slices"

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

// Optimum is the best policy for one asset of a [Known] market: the one with the highest mean
// reward per bar in the long run.
type Optimum struct {
	// Gain is that mean reward.
	Gain float64
	// value[s][i] is the advantage of beginning in the state s with the share i/(points-1) of the
	// portfolio in the asset, over beginning with nothing in a state that is drawn by chance.
	value [][]float64
	chain *Chain
	terms Terms
	// after[a][m][i] is where an action and a move lead from a share.
	after [actions][][]outcome
}

// outcome is a reward, and the share after it, which lies a part f from point i to the next.
type outcome struct {
	reward, f float64
	i         int
}

// Solve computes the best policy by relative value iteration (White 1963; Puterman, Markov Decision
// Processes, 8.5.5) over the chain's state and the share of the portfolio in the asset, which
// together are all that the future depends on: rewards and rules are relative to the portfolio's
// value. Values are computed at 1,001 shares, or 201 where there are more than eight states, and
// interpolated between them.
func Solve(m Known, terms Terms) (*Optimum, error) {
	if err := errors.Join(configs.Validate(m), configs.Validate(terms)); err != nil {
		return nil, err
	}
	o := newOptimum(m.Chain(), terms)
	for range 10_000 {
		if o.sweep() < 1e-12*slices.Max(o.chain.Moves) {
			return o, nil
		}
	}
	return nil, errors.New("optimum: value iteration does not converge")
}

func newOptimum(c *Chain, terms Terms) *Optimum {
	o, points := &Optimum{chain: c, terms: terms, value: make([][]float64, len(c.Next))}, 1001
	if len(c.Next) > 8 {
		points = 201
	}
	for s := range o.value {
		o.value[s] = make([]float64, points)
	}
	for a := range o.after {
		o.after[a] = make([][]outcome, len(c.Moves))
		for m := range c.Moves {
			o.after[a][m] = make([]outcome, points)
			for i := range points {
				o.after[a][m][i] = o.outcome(float64(i)/float64(points-1), a, m)
			}
		}
	}
	return o
}

func (o *Optimum) outcome(share float64, action, move int) outcome {
	reward, after := o.terms.Outcome(share, action, o.chain.Moves[move])
	points := len(o.value[0])
	at := after * float64(points-1)
	i := min(int(at), points-2)
	return outcome{reward, at - float64(i), i}
}

// sweep improves the values once and returns by how much the gains of different states still
// differ.
func (o *Optimum) sweep() float64 {
	points := len(o.value[0])
	next, low, high := make([][]float64, len(o.value)), math.Inf(1), math.Inf(-1)
	// The expected values after each move, and its probability.
	ahead, probability := make([][]float64, len(o.chain.Moves)), make([]float64, len(o.chain.Moves))
	for m := range ahead {
		ahead[m] = make([]float64, points)
	}
	for s := range next {
		clear(probability)
		for m := range ahead {
			clear(ahead[m])
		}
		for _, b := range o.chain.Next[s] {
			probability[b.Move] += b.Probability
			for i, v := range o.value[b.State] {
				ahead[b.Move][i] += b.Probability * v
			}
		}
		next[s] = make([]float64, points)
		for i := range next[s] {
			best := math.Inf(-1)
			for a := range o.after {
				q := 0.0
				for m, v := range ahead {
					x := &o.after[a][m][i]
					q += probability[m]*x.reward + (1-x.f)*v[x.i] + x.f*v[x.i+1]
				}
				best = max(best, q)
			}
			next[s][i] = best
			low, high = min(low, best-o.value[s][i]), max(high, best-o.value[s][i])
		}
	}
	o.Gain = (low + high) / 2
	base := 0.0
	for s := range next {
		base += next[s][0] / float64(len(next))
	}
	for s := range next {
		for i := range next[s] {
			next[s][i] -= base
		}
	}
	o.value = next
	return high - low
}

// quality is the expected reward of an action and value of what follows.
func (o *Optimum) quality(share float64, state, action int) float64 {
	q := 0.0
	for _, b := range o.chain.Next[state] {
		x := o.outcome(share, action, b.Move)
		v := o.value[b.State]
		q += b.Probability * (x.reward + (1-x.f)*v[x.i] + x.f*v[x.i+1])
	}
	return q
}

// Decide returns the best action for a share of the portfolio in the asset and a state of
// [Known].States.
func (o *Optimum) Decide(share, state float64) int {
	best, most := Hold, math.Inf(-1)
	i, f := nearest(state)
	for a := range actions {
		q := o.quality(share, i, a)
		if f > 0 {
			q = (1-f)*q + f*o.quality(share, i+1, a)
		}
		if q > most {
			best, most = a, q
		}
	}
	return best
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
