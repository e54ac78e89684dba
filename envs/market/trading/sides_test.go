package trading_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestSidesAt(t *testing.T) {
	const none = 0
	nan := math.NaN()
	cases := []struct {
		traded          bool
		price, down, up float64
		want            trading.Sides
	}{
		{true, 10, none, none, trading.Both},
		{true, 10, nan, nan, trading.Both},
		{true, 10, 9, 11, trading.Both},
		{true, 11, 9, 11, trading.CanSell},
		{true, 10.99, 9, 11, trading.Both},
		{true, 11.01, 9, 11, trading.CanSell},
		{true, 9, 9, 11, trading.CanBuy},
		{true, 9.01, 9, 11, trading.Both},
		{true, 8.99, 9, 11, trading.CanBuy},
		{true, 9, 9, nan, trading.CanBuy},
		{true, 11, none, 11, trading.CanSell},
		{true, 5, 5, 5, 0},
		{true, 0.1 * 3, 0.2, 0.3, trading.CanSell}, // 0.30000000000000004
		{false, 10, 9, 11, 0},
		{false, 11, none, 11, 0},
	}
	for _, c := range cases {
		if got := trading.SidesAt(c.traded, c.price, c.down, c.up); got != c.want {
			t.Errorf("%+v: %b", c, got)
		}
	}
	if !trading.Both.Allows(trading.Buy) || !trading.Both.Allows(trading.Sell) || trading.CanBuy.Allows(trading.Sell) || trading.CanSell.Allows(trading.Buy) || trading.Sides(0).Allows(trading.Buy) {
		t.Error("the bits are not those of the actions")
	}
}

// TestLimitDays plays days at limits by hand: the mask follows the close, the fill its own price.
func TestLimitDays(t *testing.T) {
	prices := slices.Repeat([][]float64{{10, 10}}, 5)
	m := table(prices, prices)
	m.AtOpen = slices.Clone(m.Tradable)
	m.AtOpen[1*2] = trading.CanSell   // A opens bar 1 at its upper limit and leaves it again,
	m.Tradable[2*2] = trading.CanSell // closes bar 2 at it,
	m.Tradable[3*2] = trading.CanBuy  // and closes bar 3 at its lower limit.
	g := start(t, open(t, m, config(nil)), rng.New(1))
	const b, s, h = trading.Buy, trading.Sell, trading.Hold
	for step, c := range []struct {
		order   int64
		mask    []bool // of A, before the order
		skipped float64
		held    bool // afterwards
	}{
		{b, []bool{true, true, true}, 1, false}, // not at the limit of the open of bar 1
		{b, []bool{true, true, true}, 0, true},  // bar 2 opens freely
		{b, []bool{false, true, true}, 1, true}, // decided at the limit
		{s, []bool{true, false, true}, 1, true},
	} {
		if got := g.ts.Mask.Bools(); !slices.Equal(got[:3], c.mask) || !slices.Equal(got[3:], []bool{true, true, true}) {
			t.Errorf("step %d: mask %v, expected %v for A", step, got, c.mask)
		}
		g.play(c.order, h)
		if g.ts.Info[trading.InfoSkipped] != c.skipped || (g.Positions()[0] > 0) != c.held {
			t.Errorf("step %d: %g skipped, positions %v", step, g.ts.Info[trading.InfoSkipped], g.Positions())
		}
	}
}

// limited is a random market with random sides at opens and closes.
func limited(seed uint64, bars, assets int) *trading.Market {
	m, s := randomMarket(seed, bars, assets, 1), rng.New(seed).Split("sides").Stream()
	m.AtOpen = slices.Clone(m.Tradable)
	for i := range m.Tradable {
		m.Tradable[i] &= trading.Sides(s.IntN(4))
		m.AtOpen[i] &= trading.Sides(s.IntN(4))
	}
	return m
}

// TestNoFillOfAMaskedSide trades at random where sides come and go. Each fill is of a side that its
// decision and its own price allow, masks say what the decision allows, and every other order is
// counted as skipped.
func TestNoFillOfAMaskedSide(t *testing.T) {
	const assets, bars = 6, 400
	m := limited(21, bars, assets)
	fills, refused := 0, 0
	for name, change := range sorted.All(executions) {
		if c := config(change); c.Risk.On() {
			continue // Limits sell what nobody has ordered: TestLimitsHoldAfterEveryFill.
		}
		g, s := start(t, open(t, m, config(change)), rng.New(1)), rng.New(3).Split(name).Stream()
		for g.ts.Type != envs.Last {
			bar, mask := g.Bar(), slices.Clone(g.ts.Mask.Bools())
			held := slices.Clone(g.Positions())
			orders := slices.Clone(g.random(s))
			g.play(orders...)
			at, _, sides := m.Fill(g.Source().Config().Execution.Fill, bar)
			for i, o := range orders {
				decided, now := m.Tradable[bar*assets+i], sides[at*assets+i]
				for side := range int64(2) {
					if mask[3*i+int(side)] != decided.Allows(side) {
						t.Fatalf("%s: bar %d: the mask %v of %b", name, bar, mask[3*i:3*i+3], decided)
					}
				}
				k := slices.IndexFunc(g.Fills(), func(f trading.Fill) bool { return f.Asset == i })
				switch {
				case k >= 0:
					fills++
					if o == trading.Hold && g.Source().Config().Costs.Rest == trading.Carry {
						// The rest of an order before.
						if o = trading.Sell; g.Fills()[k].Shares > 0 {
							o = trading.Buy
						}
					}
					if f := g.Fills()[k]; (f.Shares > 0) != (o == trading.Buy) || !(decided & now).Allows(o) {
						t.Fatalf("%s: bar %d: the order %d, sides %b and %b, gives %+v", name, bar, o, decided, now, f)
					}
				case o != trading.Hold && !(decided & now).Allows(o):
					refused++
				case held[i] != g.Positions()[i]:
					t.Fatalf("%s: bar %d: position %d changes from %g to %g without a fill", name, bar, i, held[i], g.Positions()[i])
				}
			}
		}
	}
	if fills < 2000 || refused < 5000 {
		t.Errorf("%d fills, %d orders of masked sides", fills, refused)
	}
}
