package backtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestSides runs everything over a market whose sides come and go: each trade is of a side that
// could be traded when it was decided and where it was filled.
func TestSides(t *testing.T) {
	const assets, bars = 5, 200
	m, s := randomMarket(4, bars, assets), rng.New(2).Stream()
	m.AtOpen = slices.Clone(m.Tradable)
	for i := range m.Tradable {
		m.Tradable[i] &= trading.Sides(s.IntN(4))
		m.AtOpen[i] &= trading.Sides(s.IntN(4))
	}
	trades := 0
	for how, change := range sorted.All(executions) {
		src := source(t, m, change)
		for _, p := range everything(t) {
			for _, f := range must(t)(p.run(src, trading.Range{First: 0, Last: bars - 1})).Trades {
				bar := slices.IndexFunc(m.Dates, f.Date.Equal)
				decided := bar - 1
				if src.Config().LookAhead() {
					decided = bar
				}
				_, _, sides := m.Fill(src.Config().Execution.Fill, decided)
				trades++
				if !(m.Tradable[decided*assets+f.Asset] & sides[bar*assets+f.Asset]).Allows(int64(f.Side)) {
					t.Fatalf("%s, %s: the trade %+v of a side that is closed", how, p.name, f)
				}
			}
		}
	}
	if trades < 5000 {
		t.Errorf("%d trades", trades)
	}
}

// TestMembers has assets that leave: whatever holds sells them, and nothing is bought that is
// outside.
func TestMembers(t *testing.T) {
	const assets, bars = 5, 200
	m := randomMarket(4, bars, assets)
	members := slices.Repeat([]universe.Membership{universe.Member}, bars*assets)
	for b := range bars {
		for a := 1; a < assets; a++ {
			if b >= 30*a {
				members[b*assets+a] = universe.Leaving
			}
		}
		if b < 50 {
			members[b*assets] = universe.Outside
		}
	}
	m.Enrol(members)
	// With slots, the last of those that belong wait until others have left.
	runs := everything(t)
	src, held := source(t, m, executions["next open"]), 0
	few := source(t, m, func(c *trading.Config) { c.Slots = 3 })
	for i, p := range append(runs, runs...) {
		if i == len(runs) {
			src = few
		}
		r := must(t)(p.run(src, trading.Range{First: 0, Last: bars - 1}))
		for _, f := range r.Trades {
			if bar := slices.IndexFunc(m.Dates, f.Date.Equal); f.Side == trading.Buy && !m.Member(bar, f.Asset) {
				t.Fatalf("%s buys asset %d at bar %d, where it is no member", p.name, f.Asset, bar)
			}
		}
		last := r.Positions[len(r.Positions)-assets:]
		if slices.Max(last[1:]) > 0 {
			t.Errorf("%s still holds %v of what has left", p.name, last[1:])
		}
		if last[0] > 0 {
			held++
		}
	}
	if held < 6 {
		t.Errorf("%d of all hold the member in the end", held)
	}
}

// TestRawEqualsAdjusted runs every rule at adjusted prices and at raw ones with random factors:
// what both are worth is the same.
func TestRawEqualsAdjusted(t *testing.T) {
	const assets, bars = 5, 200
	m, s := randomMarket(6, bars, assets), rng.New(3).Stream()
	size := len(m.Close)
	m.Raw = &trading.RawPrices{Open: make([]float64, size), Close: make([]float64, size), Factor: make([]float64, size)}
	for i := range m.Close {
		f := 1.0
		if i >= assets {
			if f = m.Raw.Factor[i-assets]; s.Bernoulli(0.03) {
				f *= 0.5 + 2*s.Float64()
			}
		}
		m.Raw.Volume = append(m.Raw.Volume, m.Volume[i]*f)
		m.Raw.Open[i], m.Raw.Close[i], m.Raw.Factor[i] = m.Open[i]/f, m.Close[i]/f, f
	}
	compared := 0
	for how, change := range sorted.All(executions) {
		if strings.Contains(how, "lot") {
			continue // Lots of raw shares are not lots of adjusted ones.
		}
		adjusted, raw := source(t, m, change), source(t, m, func(c *trading.Config) {
			if change != nil {
				change(c)
			}
			c.Account.Prices = trading.Raw
		})
		for _, p := range everything(t) {
			a, b := must(t)(p.run(adjusted, trading.Range{First: 0, Last: bars - 1})), must(t)(p.run(raw, trading.Range{First: 0, Last: bars - 1}))
			for k := range a.Value {
				compared++
				if !near(a.Value[k], b.Value[k], 1e-10) || !near(a.Cash[k], b.Cash[k], 1e-8) {
					t.Fatalf("%s, %s: row %d is worth %g, and %g at raw prices", how, p.name, k, a.Value[k], b.Value[k])
				}
			}
			for i, g := range a.AssetReturns() {
				if !near(g, b.AssetReturns()[i], 1e-9) {
					t.Fatalf("%s, %s: the return of asset %d in row %d is %g, and %g at raw prices", how, p.name, i%assets, i/assets, g, b.AssetReturns()[i])
				}
			}
			for i, f := range b.Trades {
				if x := a.Trades[i]; !near(f.Shares/f.Factor, x.Shares, 1e-8) || x.Factor != 0 {
					t.Fatalf("%s, %s: trade %d of %g raw shares at a factor of %g, adjusted %g", how, p.name, i, f.Shares, f.Factor, x.Shares)
				}
			}
		}
	}
	if compared < 8000 {
		t.Errorf("%d values were compared", compared)
	}
}
