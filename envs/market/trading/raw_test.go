package trading_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestReinvest compares what splits and dividends do to a raw position with tables worked out by
// hand. Cash 1000, no fees, half of the cash is spent at the open of bar 1.
func TestReinvest(t *testing.T) {
	cases := map[string]struct {
		open, close, factor []float64 // of bars 1 to 3
		shares, value       []float64 // at the closes
	}{
		// 50 shares at 10. Two for one: 100 shares at 5.
		"split": {[]float64{10, 5, 6}, []float64{10, 5, 6}, []float64{1, 2, 2}, []float64{50, 100, 100}, []float64{1000, 1000, 1100}},
		// A dividend of 1 on a close of 10: the price goes on at 9, the factor at 10/9; 50 shares
		// have become 55.56, which are worth the same.
		"dividend": {[]float64{10, 9, 9.9}, []float64{10, 9, 9.9}, []float64{3, 3 * 10 / 9.0, 3 * 10 / 9.0}, []float64{50, 500 / 9.0, 500 / 9.0}, []float64{1000, 1000, 500 + 550}},
		// Ten shares become one.
		"reverse split": {[]float64{10, 100, 90}, []float64{10, 100, 90}, []float64{1, 0.1, 0.1}, []float64{50, 5, 5}, []float64{1000, 1000, 950}},
		"nothing":       {[]float64{10, 11, 12}, []float64{10, 11, 12}, []float64{7, 7, 7}, []float64{50, 50, 50}, []float64{1000, 1050, 1100}},
	}
	for name, c := range sorted.All(cases) {
		m := table([][]float64{{10}, {c.open[0]}, {c.open[1]}, {c.open[2]}}, [][]float64{{10}, {c.close[0]}, {c.close[1]}, {c.close[2]}})
		m.Raw = &trading.RawPrices{Open: m.Open, Close: m.Close, Factor: append([]float64{c.factor[0]}, c.factor...)}
		m.Open, m.Close = slices.Clone(m.Open), slices.Clone(m.Close)
		for i, f := range m.Raw.Factor {
			m.Open[i] *= f
			m.Close[i] *= f
		}
		g := start(t, open(t, m, config(func(c *trading.Config) {
			c.InitialCash, c.FeeRate, c.BuyPct, c.Account.Prices = 1000, 0, 0.5, trading.Raw
		})), rng.New(1))
		order := int64(trading.Buy)
		for bar := range c.shares {
			g.play(order)
			order = trading.Hold
			if !near(g.Positions()[0], c.shares[bar], 1e-9) || !near(g.Value(), c.value[bar], 1e-9) || g.Cash() != 500 {
				t.Errorf("%s: bar %d: %g shares, worth %g with %g in cash, expected %g and %g", name, bar+1, g.Positions()[0], g.Value(), g.Cash(), c.shares[bar], c.value[bar])
			}
		}
	}
}

// TestOvernight books dividends and bonus shares as they are, with and without whole shares, and
// what only a factor tells as reinvested.
func TestOvernight(t *testing.T) {
	o := trading.Overnight{
		Before: []float64{1, 1, 1, 2, 3}, Now: []float64{10 / 9.0, 1.25, 1, 4, 3 * 10 / 9.0}, Close: []float64{10, 10, 10, 10, 10},
		Dividend: []float64{1, 0.4, 0, 0, 0}, Bonus: []float64{0, 0.2, 0, math.NaN(), 0},
	}
	cases := 0
	for i, want := range [][4]float64{
		// Shares and cash of 55 shares; and where both are whole.
		{55, 55, 55, 55}, {66, 22, 66, 22}, {55, 0, 55, 0}, {110, 0, 110, 0},
		// 61.1 shares: the rest of one is worth 9/9 of 1/9.
		{550 / 9.0, 0, 61, 1},
	} {
		left, cash := o.Of(i, 55, false)
		whole, fen := o.Of(i, 55, true)
		if !near(left, want[0], 1e-12) || !near(cash, want[1], 1e-12) || whole != want[2] || fen != want[3] {
			t.Errorf("asset %d: %g shares and %g, whole %g and %g, expected %v", i, left, cash, whole, fen, want)
		}
		cases++
	}
	if cases != 5 {
		t.Errorf("%d cases", cases)
	}
	m := table([][]float64{{10}, {10}, {9}, {9}}, [][]float64{{10}, {10}, {9}, {9}})
	m.Raw = &trading.RawPrices{Open: m.Open, Close: m.Close, Factor: []float64{1, 1, 10 / 9.0, 10 / 9.0}, Dividend: []float64{0, 0, 1, 0}, Bonus: make([]float64, 4)}
	g := start(t, open(t, m, config(func(c *trading.Config) {
		c.InitialCash, c.FeeRate, c.BuyPct, c.Account.Prices = 1000, 0, 0.5, trading.Raw
	})), rng.New(1))
	g.play(trading.Buy)
	if g.play(trading.Hold); g.Positions()[0] != 50 || g.Cash() != 550 || g.Value() != 1000 {
		t.Errorf("%g shares and %g in cash, worth %g, expected 50, 550 and 1000", g.Positions()[0], g.Cash(), g.Value())
	}
}

// quoted gives a market raw prices: those of the market divided by factors that change at random,
// some by large steps.
func quoted(m *trading.Market, seed uint64) *trading.Market {
	s, n, size := rng.New(seed).Split("factors").Stream(), len(m.Assets), len(m.Close)
	r := &trading.RawPrices{Open: make([]float64, size), Close: make([]float64, size), Factor: make([]float64, size)}
	for i := range m.Close {
		f := 1 + s.Float64()
		if i >= n {
			f = r.Factor[i-n]
			switch u := s.Float64(); {
			case u < 0.02:
				f *= 1 + 0.05*s.Float64() // a dividend
			case u < 0.025:
				f *= float64(2 + s.IntN(3)) // a split
			case u < 0.03:
				f /= 5
			}
		}
		r.Open[i], r.Close[i], r.Factor[i] = m.Open[i]/f, m.Close[i]/f, f
		r.Volume, r.Spread, r.Depth = append(r.Volume, m.Volume[i]*f), append(r.Spread, m.Spread[i]/f), append(r.Depth, m.Depth[i]*f)
	}
	out := *m
	out.Raw = r
	return &out
}

// TestRawEqualsAdjusted trades random policies over random factors twice, at adjusted prices and at
// raw ones: the value, the cash and what agents observe are the same to far below a cent, with fees
// and without, and shares differ by the factor that has accumulated.
func TestRawEqualsAdjusted(t *testing.T) {
	const assets, bars = 6, 500
	m := quoted(randomMarket(31, bars, assets, 1), 5)
	worst, compared, events := 0.0, 0, 0
	for name, change := range sorted.All(executions) {
		for _, fee := range []float64{0, 0.0005} {
			c := config(change)
			if c.Execution.Lot > 0 || c.Costs.MinVolume > 0 {
				continue // Lots and volumes of raw shares are not those of adjusted ones.
			}
			c.FeeRate = fee
			raw := c
			raw.Account.Prices = trading.Raw
			a, b := start(t, open(t, m, c), rng.New(1)), start(t, open(t, m, raw), rng.New(1))
			s := rng.New(6).Split(name).Stream()
			for a.ts.Type != envs.Last {
				orders := a.random(s)
				a.play(orders...)
				b.play(orders...)
				compared++
				d := math.Abs(a.Value()-b.Value()) + math.Abs(a.Cash()-b.Cash())
				if worst = max(worst, d/a.Value()); d > 1e-9*a.Value() || a.ts.Info[trading.InfoSkipped] != b.ts.Info[trading.InfoSkipped] {
					t.Fatalf("%s, fee %g, bar %d: %.9f and %.9f in cash, raw %.9f and %.9f", name, fee, a.Bar(), a.Value(), a.Cash(), b.Value(), b.Cash())
				}
				for i, q := range b.Positions() {
					if f := m.Raw.Factor[b.Bar()*assets+i]; !near(q/f, a.Positions()[i], 1e-9*(1+a.Positions()[i])) {
						t.Fatalf("%s: bar %d: %g raw shares at a factor of %g, adjusted %g", name, b.Bar(), q, f, a.Positions()[i])
					}
					if q > 0 && m.Raw.Factor[b.Bar()*assets+i] != m.Raw.Factor[(b.Bar()-1)*assets+i] {
						events++
					}
				}
			}
		}
	}
	if compared != 2*11*(bars-1) || events < 300 {
		t.Errorf("%d bars were compared, with %d events", compared, events)
	}
	t.Logf("%d bars, %d events, the worst difference is %.2g of the value", compared, events, worst)
}

// TestRawNeedsFactors holds that columns of another length, and factors that are not positive, are
// errors, and that data without factors are raw as they are.
func TestRawNeedsFactors(t *testing.T) {
	m := randomMarket(1, 40, 3, 1)
	c := config(func(c *trading.Config) { c.Account.Prices = trading.Raw })
	s, err := trading.NewSource(m, c)
	if err != nil || s.Market() != m {
		t.Errorf("without factors: %v", err)
	}
	for want, change := range sorted.All(map[string]func(r *trading.RawPrices){
		"raw open has 119 values, expected 120": func(r *trading.RawPrices) { r.Open = r.Open[1:] },
		"factor has 0 values":                   func(r *trading.RawPrices) { r.Factor = nil },
		"the factor of A on 2020-01-10 is 0":    func(r *trading.RawPrices) { r.Factor[9*3] = 0 },
		"the raw close of A on 2020-01-10 is -": func(r *trading.RawPrices) { r.Close[9*3] = -1 },
	}) {
		bad := quoted(m, 1)
		change(bad.Raw)
		if _, err := trading.NewSource(bad, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
