package trading_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// enrolled is a random market whose assets enter and leave now and then.
func enrolled(seed uint64, bars, assets, features int) *trading.Market {
	m, s := randomMarket(seed, bars, assets, features), rng.New(seed).Split("members").Stream()
	members, state := make([]universe.Membership, bars*assets), make([]universe.Membership, assets)
	for i := range members {
		a := i % assets
		switch u := s.Float64(); {
		case state[a] != universe.Member && u < 0.1:
			state[a] = universe.Member
		case state[a] == universe.Member && u < 0.03:
			state[a] = universe.Outside
		case state[a] == universe.Outside && i > 40*assets && u > 0.5:
			state[a] = universe.Leaving
		}
		members[i] = state[a]
	}
	m.Enrol(members)
	return m
}

// TestMembers takes random orders: nothing is bought that does not belong when it is decided on or
// filled, and what is leaving is sold whole at the first bar at which it can be.
func TestMembers(t *testing.T) {
	const bars, assets = 400, 6
	buys, exits, forced, waits := 0, 0, 0, 0
	for seed := range uint64(6) {
		m := enrolled(seed, bars, assets, 2)
		c := trading.Defaults()
		c.Window, c.Execution.Fill = 5, []string{trading.NextOpen, trading.NextClose, trading.SameClose}[seed%3]
		if seed >= 3 {
			c.Execution.Lot = 10
		}
		source, err := trading.NewSource(m, c)
		if err != nil {
			t.Fatal(err)
		}
		e, err := source.Env(trading.Range{First: 0, Last: bars - 1})
		if err != nil {
			t.Fatal(err)
		}
		ts, before := envs.NewTimeStep(e.Spec()), make([]float64, assets)
		if err := e.Reset(rng.New(seed), ts); err != nil {
			t.Fatal(err)
		}
		for i := 0; ts.Type != envs.Last; i++ {
			bar, mask := e.Bar(), ts.Mask.Bools()
			copy(before, e.Positions())
			_, _, sides := m.Fill(c.Execution.Fill, bar)
			filled := bar + 1
			if c.Execution.Fill == trading.SameClose {
				filled = bar
			}
			for a := range assets {
				if mask[a*3+trading.Buy] && !m.Member(bar, a) {
					t.Fatalf("bar %d: asset %d is not a member and can be bought", bar, a)
				}
				if leaves := m.Leaves(bar, a) && before[a] > 0; leaves && mask[a*3+trading.Sell] == mask[a*3+trading.Hold] {
					t.Fatalf("bar %d: the mask of asset %d, which leaves, is %v", bar, a, mask[a*3:a*3+3])
				}
			}
			if err := e.Step(scripts(64, assets)[i%64], ts); err != nil {
				t.Fatal(err)
			}
			for _, f := range e.Fills() {
				if f.Shares > 0 {
					if buys++; !m.Member(bar, f.Asset) || !m.Member(filled, f.Asset) {
						t.Fatalf("bar %d: asset %d is bought and is no member", bar, f.Asset)
					}
				}
			}
			for a, q := range e.Positions() {
				if !m.Leaves(bar, a) || before[a] == 0 {
					continue
				}
				if can := sides[filled*assets+a].Allows(trading.Sell); can != (q == 0) {
					t.Fatalf("bar %d: of asset %d, which leaves, %g shares are left, and a sale is possible: %v", bar, a, q, can)
				} else if can {
					exits++
					if !m.Tradable[bar*assets+a].Allows(trading.Sell) {
						forced++
					}
				} else {
					waits++
				}
			}
		}
	}
	if buys < 500 || exits < 20 || forced < 1 || waits < 1 {
		t.Errorf("%d purchases, %d exits, %d of them decided on without trading, %d that had to wait", buys, exits, forced, waits)
	}
}
