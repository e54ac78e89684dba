package synthetic

import (
	"math"
	"slices"
	"testing"
)

// exhaustive is the value of the best policy over a number of bars by looking at everything that
// can happen.
func (o *Optimum) exhaustive(shares []float64, state, bars int) float64 {
	if bars == 0 {
		return 0
	}
	best := math.Inf(-1)
	for _, orders := range o.orders {
		if !o.open(state, orders) {
			continue
		}
		q := 0.0
		for _, b := range o.chain.Next[state] {
			if b.Probability > 0 {
				after := slices.Clone(shares)
				reward := o.terms.Outcome(after, orders, o.chain.Moves[b.Move])
				q += b.Probability * (reward + o.exhaustive(after, b.State, bars-1))
			}
		}
		best = max(best, q)
	}
	return best
}

// TestOptimumAgainstExhaustiveSearch compares the values after a few sweeps with those of a search
// through all decisions and moves.
func TestOptimumAgainstExhaustiveSearch(t *testing.T) {
	compared := 0
	// A chain that no market has: what follows a state depends on the move, too.
	uneven := &Chain{Moves: moves(-0.03, 0.01, 0.02), Next: [][]Branch{{{0.2, 0, 1}, {0.5, 1, 0}, {0.3, 2, 1}}, {{0.6, 0, 0}, {0.4, 2, 1}}}}
	// One whose second state nobody gets out of, to which a night leads on which nobody sells.
	locked := &Chain{
		Moves: []Move{{{Night: -0.1, Closed: Closed{Sell: true}}}, {{Night: -0.01, Day: 0.02, Closed: Closed{Buy: true}}}, {{Day: 0.03}}},
		Next:  [][]Branch{{{0.1, 0, 1}, {0.4, 1, 0}, {0.5, 2, 0}}, {{0.5, 1, 0}, {0.5, 2, 1}}}, Closed: []Closed{{}, {Sell: true}},
	}
	pair := &Chain{
		Moves: []Move{{{Day: 0.02}, {Day: -0.01}}, {{Day: -0.01}, {Day: 0.03}}, {{Night: 0.01}, {Day: 0.01, Closed: Closed{Buy: true}}}},
		Next:  [][]Branch{{{0.7, 0, 1}, {0.3, 1, 0}}, {{0.6, 1, 0}, {0.2, 0, 0}, {0.2, 2, 1}}},
	}
	singles, pairs := [][]float64{{0}, {0.137}, {0.5}, {0.861}, {1}}, [][]float64{{0, 0}, {0.25, 0.5}, {0.5, 0.5}, {0, 1}, {0.9, 0}}
	for _, c := range []struct {
		chain  *Chain
		terms  Terms
		shares [][]float64
		bars   int
		off    float64
	}{
		// The interpolated function is bent only where the best action changes.
		{announced(0.01, 1), Terms{FeeRate: 0.0005, BuyPct: 0.2, SellPct: 0.5}, singles, 4, 1e-5},
		{announced(0.02, 0.8), Terms{FeeRate: 0.002, BuyPct: 0.2, SellPct: 0.5, Log: true}, singles, 4, 2e-5},
		{announced(0.05, 0.7), Terms{FeeRate: 0.02, BuyPct: 0.7, SellPct: 1}, singles, 4, 5e-5},
		{uneven, Terms{FeeRate: 0.001, BuyPct: 0.3, SellPct: 0.6}, singles, 4, 2e-5},
		{locked, Terms{FeeRate: 0.001, BuyPct: 0.3, SellPct: 0.6}, singles, 4, 3e-5},
		{pair, Terms{FeeRate: 0.001, BuyPct: 0.6, SellPct: 0.5}, pairs, 3, 3e-5},
	} {
		o := newOptimum(c.chain, c.terms)
		before, none := 0.0, make([]float64, o.n)
		for bars := 1; bars <= c.bars; bars++ {
			spread := o.sweep()
			base := (o.exhaustive(none, 0, bars) + o.exhaustive(none, 1, bars)) / 2
			if gain := base - before; math.Abs(gain-o.Gain) > spread {
				t.Errorf("%+v: bar %d gains %v, expected %v up to %v", c, bars, gain, o.Gain, spread)
			}
			before = base
			for s := range 2 {
				for _, shares := range c.shares {
					want := o.exhaustive(shares, s, bars) - base
					place := o.index[int(math.Round(shares[0]*float64(o.steps)))]
					if o.n == 2 {
						place += int(math.Round(shares[1] * float64(o.steps)))
					}
					if got := o.value[s][place]; math.Abs(got-want) > c.off {
						t.Errorf("%+v: %d bars from shares %v and state %d are worth %v, expected %v", c, bars, shares, s, got, want)
					}
					compared++
				}
			}
		}
	}
	if compared != 230 {
		t.Errorf("%d values compared", compared)
	}
}

// TestChains: probabilities sum to 1, the mean move is 0 in the long run where prices are fair, and
// a belief that nothing was learnt from stays where it is.
func TestChains(t *testing.T) {
	checked := 0
	for _, m := range []Known{DefaultLeadingIndicator(), DefaultLeadingVolume(), DefaultMomentum(), DefaultRegimes(), DefaultPairs(), DefaultLimitTrap()} {
		c := m.Chain()
		p, mean := make([]float64, len(c.Next)), 0.0
		for i := range p {
			p[i] = 1 / float64(len(p))
		}
		for range 2000 {
			next := make([]float64, len(p))
			mean = 0
			for i, branches := range c.Next {
				sum := 0.0
				for _, b := range branches {
					sum += b.Probability
					next[b.State] += p[i] * b.Probability
					mean += p[i] * b.Probability * (c.Moves[b.Move][0].Day + c.Moves[b.Move][0].Night)
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("%T: the ways on from state %d have probability %v", m, i, sum)
				}
			}
			p = next
		}
		// A number that is divided by 1.005 loses less than 0.5 %.
		if _, ok := m.(Pairs); !ok && math.Abs(mean) > 1e-12 {
			t.Errorf("%T: the mean move is %v", m, mean)
		}
		checked += len(c.Next)
	}
	if blind := (belief{change: 0.1, accuracy: 0.5}); blind.after(0.5, true) != 0.5 || math.Abs(blind.after(0.9, false)-0.82) > 1e-12 {
		t.Errorf("beliefs %v and %v", blind.after(0.5, true), blind.after(0.9, false))
	}
	if checked != 2+2+levels+2*levels+9+9 {
		t.Errorf("%d states checked", checked)
	}
}

// TestOptimumOfCases whose answer is known: without a fee the signal is always followed, and a fee
// that no move pays for keeps everything in cash.
func TestOptimumOfCases(t *testing.T) {
	m := DefaultLeadingIndicator()
	m.Accuracy = 1
	decide := func(o *Optimum, share, state float64) int {
		orders := []int{-1}
		o.Decide(orders, []float64{share}, state)
		return orders[0]
	}
	free, err := Solve(m, Terms{BuyPct: 1, SellPct: 1})
	if err != nil {
		t.Fatal(err)
	}
	// All in before every rise and out before every fall: half of all moves, whole.
	if math.Abs(free.Gain-m.Move/2) > 1e-9 || decide(free, 0, 1) != Buy || decide(free, 1, 0) != Sell {
		t.Errorf("gain %v, actions %d and %d", free.Gain, decide(free, 0, 1), decide(free, 1, 0))
	}
	dear, err := Solve(m, Terms{FeeRate: 0.5, BuyPct: 1, SellPct: 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(dear.Gain) > 1e-9 || decide(dear, 0, 1) == Buy {
		t.Errorf("gain %v, action %d", dear.Gain, decide(dear, 0, 1))
	}
	m.Accuracy = 0.5
	blind, err := Solve(m, Terms{FeeRate: 0.0005, BuyPct: 0.2, SellPct: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(blind.Gain) > 1e-9 {
		t.Errorf("without information the gain is %v", blind.Gain)
	}
	m.Move = -1
	if _, err := Solve(m, Terms{}); err == nil {
		t.Error("a market and terms that make no sense are accepted")
	}
}
