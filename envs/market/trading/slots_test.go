package trading_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func slotSource(t testing.TB, m *trading.Market, slots int, change func(*trading.Config)) *trading.Source {
	t.Helper()
	c := trading.Defaults()
	c.Window, c.Slots = 5, slots
	if change != nil {
		change(&c)
	}
	s, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSlots runs environments of all assets beside ones of slots, with the same orders by name:
// both are worth the same, and every slot shows its asset and no other.
func TestSlots(t *testing.T) {
	const bars, assets = 300, 9
	moves, waits, worth := 0, 0, 0
	for seed := range uint64(4) {
		for _, k := range []int{3, assets, assets + 2} {
			m := enrolled(seed, bars, assets, 3)
			if seed == 3 {
				m.Factor = make([]float64, bars*assets)
				for i := range m.Factor {
					m.Factor[i] = 1 + 0.01*float64(i/assets/20)
				}
			}
			costs := func(c *trading.Config) {
				if seed == 1 {
					c.Account.Settlement = 1
					c.Costs = trading.Costs{Minimum: 0.1, Participation: 0.2, Slippage: trading.Slippage{BP: 5}}
				}
				if seed == 2 {
					c.Execution.Fill = trading.SameClose
				}
				if seed == 0 {
					c.Risk = limits
				}
			}
			all := trading.Range{First: 0, Last: bars - 1}
			dense, err := slotSource(t, m, 0, costs).Env(all)
			if err != nil {
				t.Fatal(err)
			}
			e, err := slotSource(t, m, k, costs).Env(all)
			if err != nil {
				t.Fatal(err)
			}
			ts, beside := envs.NewTimeStep(e.Spec()), envs.NewTimeStep(dense.Spec())
			if err := e.Reset(rng.New(seed), ts); err != nil {
				t.Fatal(err)
			}
			if err := dense.Reset(rng.New(seed), beside); err != nil {
				t.Fatal(err)
			}
			s, before := rng.New(seed).Stream(), slices.Clone(e.Slots())
			byName, bySlot := tensor.New(tensor.Int64, assets), tensor.New(tensor.Int64, k)
			for ts.Type != envs.Last {
				bar, place := e.Bar(), e.Slots()
				window, mask := ts.Obs[0].Float32s(), ts.Mask.Bools()
				for i := range byName.Int64s() {
					byName.Int64s()[i] = trading.Hold
				}
				for slot, a := range place {
					for i := range 5 {
						for f := range 3 {
							want := float32(0)
							if a >= 0 {
								want = m.X[((bar-4+i)*assets+a)*3+f]
							}
							if got := window[(i*k+slot)*3+f]; got != want {
								t.Fatalf("bar %d, slot %d of asset %d: row %d, feature %d is %g, expected %g", bar, slot, a, i, f, got, want)
							}
						}
					}
					if a < 0 {
						if slices.Contains(mask[slot*3:slot*3+2], true) {
							t.Fatalf("an empty slot has the mask %v", mask[slot*3:slot*3+3])
						}
					} else if want := beside.Mask.Bools()[a*3 : a*3+3]; !slices.Equal(mask[slot*3:slot*3+3], want) {
						t.Fatalf("bar %d: the mask of asset %d is %v, expected %v", bar, a, mask[slot*3:slot*3+3], want)
					}
					order := int64(s.IntN(3))
					bySlot.Int64s()[slot] = order
					if a >= 0 {
						byName.Int64s()[a] = order
					}
				}
				for a := range assets {
					if m.Member(bar, a) && !slices.Contains(place, a) {
						if waits++; slices.Contains(place, -1) {
							t.Fatalf("bar %d: asset %d waits and there is an empty slot: %v", bar, a, place)
						}
					}
				}
				if err := e.Step(bySlot, ts); err != nil {
					t.Fatal(err)
				}
				if err := dense.Step(byName, beside); err != nil {
					t.Fatal(err)
				}
				near := func(what string, got, want float64) {
					if math.Abs(got-want) > 1e-9*math.Abs(want)+1e-9 {
						t.Fatalf("seed %d, %d slots, bar %d: %s is %g, expected %g", seed, k, bar, what, got, want)
					}
				}
				near("the value", e.Value(), dense.Value())
				near("the cash", e.Cash(), dense.Cash())
				near("the reward", ts.Reward, beside.Reward)
				for a, q := range dense.Positions() {
					near("the position", e.Positions()[a], q)
					if q > 0 {
						worth++
					}
				}
				if len(e.Fills()) != len(dense.Fills()) {
					t.Fatalf("bar %d: %d fills, expected %d", bar, len(e.Fills()), len(dense.Fills()))
				}
				for slot, a := range e.Slots() {
					if was := before[slot]; was != a {
						if moves++; was >= 0 && (e.Positions()[was] != 0 || m.Member(e.Bar(), was)) {
							t.Fatalf("bar %d: asset %d loses its slot", bar, was)
						}
					}
				}
				copy(before, e.Slots())
			}
		}
	}
	if moves < 100 || waits < 500 || worth < 5000 {
		t.Errorf("%d slots changed hands, %d members had to wait, %d positions", moves, waits, worth)
	}
}

// TestSlotsKeepTheRules includes saving and restoring in the middle of episodes.
func TestSlotsKeepTheRules(t *testing.T) {
	source := slotSource(t, enrolled(1, 120, 7, 2), 3, nil)
	r := envtest.Run(t, func() (envs.Env, error) { return source.Env(trading.Range{First: 0, Last: 119}) }, envtest.Options{Steps: 600})
	if r.Episodes < 4 {
		t.Errorf("%d episodes", r.Episodes)
	}
}

// crowd is a market of many assets, of which a part belongs at a time and a few change each day.
func crowd(bars, assets, members, features int) *trading.Market {
	m := &trading.Market{X: make([]float32, bars*assets*features), Features: make([]string, features)}
	s := rng.New(5).Stream()
	for i := range m.X {
		m.X[i] = float32(i%97) / 97
	}
	for i := range m.Features {
		m.Features[i] = fmt.Sprint("f", i)
	}
	price, in := make([]float64, assets), make([]universe.Membership, assets)
	for a := range assets {
		m.Assets = append(m.Assets, fmt.Sprint("a", a))
		if price[a] = 50; a < members {
			in[a] = universe.Member
		}
	}
	var list []universe.Membership
	for b := range bars {
		m.Dates = append(m.Dates, day0.AddDate(0, 0, b))
		if a, o := s.IntN(assets), s.IntN(assets); in[a] == universe.Member && in[o] != universe.Member {
			in[a], in[o] = universe.Leaving, universe.Member
		}
		for a := range price {
			m.Open = append(m.Open, price[a])
			price[a] *= math.Exp(0.01*s.Normal() - 0.01*math.Log(price[a]/50))
			m.Close = append(m.Close, price[a])
			m.Tradable = append(m.Tradable, trading.Both)
		}
		list = append(list, in...)
	}
	m.Enrol(list)
	return m
}

// BenchmarkStep300of800 has 300 slots for 800 assets, of which 300 belong at a time.
func BenchmarkStep300of800(b *testing.B) {
	const bars = 1000
	source := slotSource(b, crowd(bars, 800, 300, 8), 300, func(c *trading.Config) { c.Window = 20 })
	e, err := source.Env(trading.Range{First: 0, Last: bars - 1})
	if err != nil {
		b.Fatal(err)
	}
	actions, ts, i := scripts(64, 300), envs.NewTimeStep(e.Spec()), 0
	ts.Type = envs.Last
	b.ReportAllocs()
	for b.Loop() {
		if ts.Type == envs.Last {
			err = e.Reset(rng.New(1), ts)
		} else {
			err = e.Step(actions[i&63], ts)
		}
		if err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

// TestSlotsOfWeights trades towards the same weights with slots and without, and sells what leaves.
func TestSlotsOfWeights(t *testing.T) {
	const bars, assets, k = 300, 9, 4
	exits := 0
	for seed := range uint64(3) {
		m := enrolled(seed, bars, assets, 2)
		weights := func(c *trading.Config) { c.Actions = trading.Weights }
		all := trading.Range{First: 0, Last: bars - 1}
		dense, err := slotSource(t, m, 0, weights).Env(all)
		if err != nil {
			t.Fatal(err)
		}
		e, err := slotSource(t, m, k, weights).Env(all)
		if err != nil {
			t.Fatal(err)
		}
		ts, beside := envs.NewTimeStep(e.Spec()), envs.NewTimeStep(dense.Spec())
		if err := e.Reset(rng.New(seed), ts); err != nil {
			t.Fatal(err)
		}
		if err := dense.Reset(rng.New(seed), beside); err != nil {
			t.Fatal(err)
		}
		s := rng.New(seed).Stream()
		for ts.Type != envs.Last {
			bar, bySlot, byName := e.Bar(), make([]float64, k+1), make([]float64, assets+1)
			bySlot[k] = 1
			for slot, a := range e.Slots() {
				if a >= 0 {
					w := bySlot[k] * 0.5 * s.Float64()
					bySlot[slot], byName[a] = w, w
					bySlot[k] -= w
				}
			}
			byName[assets] = bySlot[k]
			before := slices.Clone(e.Positions())
			if err := e.Rebalance(bySlot, ts); err != nil {
				t.Fatal(err)
			}
			if err := dense.Rebalance(byName, beside); err != nil {
				t.Fatal(err)
			}
			if got, want := e.Value(), dense.Value(); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("seed %d, bar %d: the value is %g, expected %g", seed, bar, got, want)
			}
			for a, q := range e.Positions() {
				if math.Abs(q-dense.Positions()[a]) > 1e-9*(1+q) {
					t.Fatalf("bar %d: %g shares of asset %d, expected %g", bar, q, a, dense.Positions()[a])
				}
				can := m.Tradable[bar*assets+a] & m.Tradable[(bar+1)*assets+a]
				if m.Leaves(bar, a) && before[a] > 0 && can.Allows(trading.Sell) {
					if exits++; q > 0 {
						t.Fatalf("bar %d: %g shares of asset %d, which leaves, are kept", bar, q, a)
					}
				}
			}
		}
	}
	if exits < 10 {
		t.Errorf("%d exits", exits)
	}
}
