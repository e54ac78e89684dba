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

// Optimum is the best policy of a [Known] market: the one with the highest mean reward per bar in
// the long run.
type Optimum struct {
	// Gain is that mean reward.
	Gain float64
	// value[s][p] is the advantage of beginning in the state s with the shares p of the portfolio
	// in the assets, over beginning with nothing in a state that is drawn by chance.
	value [][]float64
	chain *Chain
	terms Terms
	// n is the number of assets. Shares are multiples of 1/steps, and index[i] is the place of the
	// shares i and 0 in a row of values; those of i and j are j further on.
	n, steps int
	index    []int
	// orders[a] [n] are those of a joint action, and after[a][m][p] is where it and a move lead
	// from shares.
	orders [][]int
	after  [][][]outcome
}

// outcome is a reward, and the shares after it: those at three places, weighted.
type outcome struct {
	reward float64
	weight [3]float64
	at     [3]int
}

// Solve computes the best policy by relative value iteration (White 1963; Puterman, Markov Decision
// Processes, 8.5.5) over the chain's state and the shares of the portfolio in the assets, which
// together are all that the future depends on: rewards and rules are relative to the portfolio's
// value. Values are computed at 1,001 shares, or 201 where there are more than eight states, and
// interpolated between them; of a pair at the 861 shares that are multiples of 1/40.
func Solve(m Known, terms Terms) (*Optimum, error) {
	if err := errors.Join(configs.Validate(m), configs.Validate(terms)); err != nil {
		return nil, err
	}
	o, most := newOptimum(m.Chain(), terms), 0.0
	for _, m := range o.chain.Moves {
		for _, c := range m {
			most = max(most, c.Day, c.Night)
		}
	}
	for range 10_000 {
		if o.sweep() < 1e-12*most {
			return o, nil
		}
	}
	return nil, errors.New("optimum: value iteration does not converge")
}

func newOptimum(c *Chain, terms Terms) *Optimum {
	o := &Optimum{chain: c, terms: terms, value: make([][]float64, len(c.Next)), n: len(c.Moves[0]), steps: 1000}
	switch {
	case o.n == 2:
		o.steps = 40
	case len(c.Next) > 8:
		o.steps = 200
	}
	var points [][]float64
	for i := range o.steps + 1 {
		o.index = append(o.index, len(points))
		first := float64(i) / float64(o.steps)
		if o.n == 1 {
			points = append(points, []float64{first})
			continue
		}
		for j := range o.steps + 1 - i {
			points = append(points, []float64{first, float64(j) / float64(o.steps)})
		}
	}
	for s := range o.value {
		o.value[s] = make([]float64, len(points))
	}
	count := actions
	if o.n == 2 {
		count *= actions
	}
	for a := range count {
		orders := []int{a % actions, a / actions}[:o.n]
		after := make([][]outcome, len(c.Moves))
		for m := range after {
			after[m] = make([]outcome, len(points))
			for p, shares := range points {
				after[m][p] = o.outcome(shares, orders, m)
			}
		}
		o.orders, o.after = append(o.orders, orders), append(o.after, after)
	}
	return o
}

func (o *Optimum) outcome(shares []float64, orders []int, move int) outcome {
	after := [2]float64{}
	copy(after[:], shares)
	x := outcome{reward: o.terms.Outcome(after[:o.n], orders, o.chain.Moves[move])}
	at := after[0] * float64(o.steps)
	i := min(int(at), o.steps-1)
	f := at - float64(i)
	if o.n == 1 {
		x.at, x.weight = [3]int{i, i + 1}, [3]float64{1 - f, f}
		return x
	}
	// The square between multiples is two triangles, of which the upper one is beyond the last.
	at = after[1] * float64(o.steps)
	j := min(int(at), o.steps-1-i)
	g := at - float64(j)
	if f+g <= 1 || i+j+1 >= o.steps {
		x.at, x.weight = [3]int{o.index[i] + j, o.index[i+1] + j, o.index[i] + j + 1}, [3]float64{1 - f - g, f, g}
	} else {
		x.at, x.weight = [3]int{o.index[i+1] + j + 1, o.index[i+1] + j, o.index[i] + j + 1}, [3]float64{f + g - 1, 1 - g, 1 - f}
	}
	return x
}

// of is the value after an outcome.
func (x *outcome) of(value []float64) float64 {
	return x.weight[0]*value[x.at[0]] + x.weight[1]*value[x.at[1]] + x.weight[2]*value[x.at[2]]
}

// open says that orders can be given in a state.
func (o *Optimum) open(state int, orders []int) bool {
	if o.chain.Closed == nil {
		return true
	}
	closed := o.chain.Closed[state]
	return !(closed.Buy && slices.Contains(orders, Buy) || closed.Sell && slices.Contains(orders, Sell))
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
			for a, after := range o.after {
				if !o.open(s, o.orders[a]) {
					continue
				}
				q := 0.0
				for m, v := range ahead {
					if probability[m] > 0 {
						x := &after[m][i]
						q += probability[m]*x.reward + x.of(v)
					}
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

// quality is the expected reward of orders and value of what follows.
func (o *Optimum) quality(shares []float64, state int, orders []int) float64 {
	q := 0.0
	for _, b := range o.chain.Next[state] {
		x := o.outcome(shares, orders, b.Move)
		q += b.Probability * (x.reward + x.of(o.value[b.State]))
	}
	return q
}

// Decide writes the best orders [N], one for each asset, for the shares [N] of the portfolio in the
// assets and a state of [Known].States.
func (o *Optimum) Decide(orders []int, shares []float64, state float64) {
	most := math.Inf(-1)
	i, f := nearest(state)
	for _, candidate := range o.orders {
		if !o.open(i, candidate) {
			continue
		}
		q := o.quality(shares, i, candidate)
		if f > 0 {
			q = (1-f)*q + f*o.quality(shares, i+1, candidate)
		}
		if q > most {
			most = q
			copy(orders, candidate)
		}
	}
}

// Outcome is the reward of orders [N], one for each asset, when prices then move. shares [N], those
// of the portfolio in the assets, become those after it. All sales come first; each purchase then
// spends the same, at most all cash together.
func (c Terms) Outcome(shares []float64, orders []int, move Move) float64 {
	cash, worth, buyers := 1.0, 0.0, 0
	for i, s := range shares {
		cash -= s
		shares[i] = s * (1 + move[i].Night)
	}
	for i, order := range orders {
		switch {
		case order == Sell && !move[i].Closed.Sell:
			amount := c.SellPct * shares[i]
			shares[i] -= amount
			cash += amount * (1 - c.FeeRate)
		case order == Buy && !move[i].Closed.Buy:
			buyers++
		}
	}
	spent := min(c.BuyPct, 1/float64(max(buyers, 1))) * cash
	for i, order := range orders {
		if order == Buy && !move[i].Closed.Buy {
			shares[i] += spent / (1 + c.FeeRate)
			cash -= spent
		}
		shares[i] *= 1 + move[i].Day
		worth += shares[i]
	}
	worth += cash
	rest := 1.0
	for i := range shares {
		shares[i] = min(shares[i]/worth, rest)
		rest -= shares[i]
	}
	if c.Log {
		return math.Log(worth)
	}
	return worth - 1
}
