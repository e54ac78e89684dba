package synthetic

import (
	"math"
	"testing"
)

// exhaustive is the value of the best policy over a number of bars by looking at everything that
// can happen.
func (o *Optimum) exhaustive(share float64, signal, bars int) float64 {
	if bars == 0 {
		return 0
	}
	best := math.Inf(-1)
	for a := range actions {
		q := 0.0
		for up := range 2 {
			p := o.market.Accuracy
			if up != signal {
				p = 1 - p
			}
			if p == 0 {
				continue
			}
			reward, after := o.terms.Outcome(share, a, o.market.Move*float64(2*up-1))
			q += p * (reward + (o.exhaustive(after, 0, bars-1)+o.exhaustive(after, 1, bars-1))/2)
		}
		best = max(best, q)
	}
	return best
}

// TestOptimumAgainstExhaustiveSearch compares the values after a few sweeps with those of a search
// through all decisions and moves.
func TestOptimumAgainstExhaustiveSearch(t *testing.T) {
	compared := 0
	for _, c := range []struct {
		accuracy, move float64
		terms          Terms
	}{
		{1, 0.01, Terms{FeeRate: 0.0005, BuyPct: 0.2, SellPct: 0.5}},
		{0.8, 0.02, Terms{FeeRate: 0.002, BuyPct: 0.2, SellPct: 0.5, Log: true}},
		{0.7, 0.05, Terms{FeeRate: 0.02, BuyPct: 0.7, SellPct: 1}},
	} {
		m := DefaultLeadingIndicator()
		m.Accuracy, m.Move = c.accuracy, c.move
		o := &Optimum{market: m, terms: c.terms, value: [2][]float64{make([]float64, points), make([]float64, points)}}
		before := 0.0
		for bars := 1; bars <= 4; bars++ {
			spread := o.sweep()
			base := (o.exhaustive(0, 0, bars) + o.exhaustive(0, 1, bars)) / 2
			if gain := base - before; math.Abs(gain-o.Gain) > spread {
				t.Errorf("%+v: bar %d gains %v, expected %v up to %v", c, bars, gain, o.Gain, spread)
			}
			before = base
			for s := range 2 {
				for _, i := range []int{0, 137, 500, 861, 1000} {
					want := o.exhaustive(float64(i)/(points-1), s, bars) - base
					// What is interpolated is bent only where the best action changes.
					if got := o.value[s][i]; math.Abs(got-want) > 1e-3*c.move {
						t.Errorf("%+v: %d bars from share %v and signal %d are worth %v, expected %v", c, bars, float64(i)/(points-1), s, got, want)
					}
					compared++
				}
			}
		}
	}
	if compared != 120 {
		t.Errorf("%d values compared", compared)
	}
}

// TestOptimumOfCases whose answer is known: without a fee the signal is always followed, and a fee
// that no move pays for keeps everything in cash.
func TestOptimumOfCases(t *testing.T) {
	m := DefaultLeadingIndicator()
	m.Accuracy = 1
	free, err := m.Optimum(Terms{BuyPct: 1, SellPct: 1})
	if err != nil {
		t.Fatal(err)
	}
	// All in before every rise and out before every fall: half of all moves, whole.
	if math.Abs(free.Gain-m.Move/2) > 1e-9 || free.Decide(0, 1) != Buy || free.Decide(1, -1) != Sell {
		t.Errorf("gain %v, actions %d and %d", free.Gain, free.Decide(0, 1), free.Decide(1, -1))
	}
	dear, err := m.Optimum(Terms{FeeRate: 0.5, BuyPct: 1, SellPct: 1})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(dear.Gain) > 1e-9 || dear.Decide(0, 1) == Buy {
		t.Errorf("gain %v, action %d", dear.Gain, dear.Decide(0, 1))
	}
	m.Accuracy = 0.5
	blind, err := m.Optimum(Terms{FeeRate: 0.0005, BuyPct: 0.2, SellPct: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(blind.Gain) > 1e-9 {
		t.Errorf("without information the gain is %v", blind.Gain)
	}
	m.Move = -1
	if _, err := m.Optimum(Terms{}); err == nil {
		t.Error("a market and terms that make no sense are accepted")
	}
}
