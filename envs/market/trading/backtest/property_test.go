package backtest_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestValueIsConserved checks, for everything under every execution, that a record agrees with
// itself: the value is cash plus positions at the close, trades explain the change of cash and
// positions, fees and turnover are the trades', and the value changes by what prices did to the
// positions, minus fees.
func TestValueIsConserved(t *testing.T) {
	const assets, bars = 5, 200
	m := randomMarket(1, bars, assets)
	steps, trades := 0, 0
	for how, change := range sorted.All(executions) {
		s := source(t, m, change)
		for _, p := range everything(t) {
			r := must(t)(p.run(s, trading.Range{First: 0, Last: bars - 1}))
			first := bars - 1 - r.Steps()
			next := 0
			for k := range r.Steps() {
				bar := first + k
				cash, fees, turnover, gain := r.Cash[k], 0.0, 0.0, 0.0
				held := slices.Clone(r.Positions[k*assets : (k+1)*assets])
				for i, q := range held {
					if q != 0 {
						gain += q * (m.Close[(bar+1)*assets+i] - m.Close[bar*assets+i])
					}
				}
				at := m.Dates[bar+1]
				if r.LookAhead {
					at = m.Dates[bar]
				}
				for ; next < len(r.Trades) && r.Trades[next].Date.Equal(at); next++ {
					f := r.Trades[next]
					sign := 1.0
					if f.Side == trading.Sell {
						sign = -1
					}
					if f.Shares <= 0 || f.Fee < 0 {
						t.Fatalf("%s, %s: the trade %+v makes no sense", how, p.name, f)
					}
					held[f.Asset] += sign * f.Shares
					cash -= sign*f.Shares*f.Price + f.Fee
					gain += sign*f.Shares*(m.Close[(bar+1)*assets+f.Asset]-f.Price) - f.Fee
					fees += f.Fee
					turnover += f.Shares * f.Price
					trades++
				}
				worth := r.Cash[k+1]
				for i, q := range r.Positions[(k+1)*assets : (k+2)*assets] {
					if q < 0 || !near(q, held[i], 1e-9) {
						t.Fatalf("%s, %s: bar %d: position %d is %g, its trades say %g", how, p.name, bar, i, q, held[i])
					}
					if q != 0 {
						worth += q * m.Close[(bar+1)*assets+i]
						if w := q * m.Close[(bar+1)*assets+i] / r.Value[k+1]; !near(w, r.Weights[(k+1)*assets+i], 1e-12) {
							t.Fatalf("%s, %s: bar %d: weight %d is %g, expected %g", how, p.name, bar, i, r.Weights[(k+1)*assets+i], w)
						}
					}
				}
				if r.Cash[k+1] < 0 || !near(r.Cash[k+1], cash, 1e-9) || !near(r.Value[k+1], worth, 1e-12) || !near(r.Value[k+1]-r.Value[k], gain, 1e-9) {
					t.Fatalf("%s, %s: bar %d: value %.12g, cash %.12g; trades say cash %.12g and a gain of %.12g over %.12g", how, p.name, bar, r.Value[k+1], r.Cash[k+1], cash, gain, r.Value[k])
				}
				if !near(r.Fees[k], fees, 1e-9) || !near(r.Turnover[k], turnover, 1e-9) {
					t.Fatalf("%s, %s: bar %d: fees %g and turnover %g, trades say %g and %g", how, p.name, bar, r.Fees[k], r.Turnover[k], fees, turnover)
				}
				simple := r.Value[k+1]/r.Value[k] - 1
				if want := simple; !near(r.Rewards[k], want, 1e-12) && !(how == "log" && near(r.Rewards[k], math.Log1p(simple), 1e-12)) {
					t.Fatalf("%s, %s: bar %d: reward %g, the value changed by %g", how, p.name, bar, r.Rewards[k], want)
				}
				steps++
			}
			if next != len(r.Trades) || len(r.Dates) != r.Steps()+1 || len(r.Value) != r.Steps()+1 || len(r.Actions) != r.Steps()*assets || len(r.AssetReturns()) != len(r.Actions) {
				t.Fatalf("%s, %s: %d of %d trades belong to a step; %d dates, %d values, %d orders for %d steps", how, p.name, next, len(r.Trades), len(r.Dates), len(r.Value), len(r.Actions), r.Steps())
			}
			if r.LookAhead != (how == "same close") {
				t.Errorf("%s, %s: look-ahead is %t", how, p.name, r.LookAhead)
			}
		}
	}
	if want := len(executions) * 10 * (bars - 5); steps != want || trades < 15_000 {
		t.Errorf("%d steps with %d trades were checked, expected %d", steps, trades, want)
	}
}

// TestFutureBarsDoNotMatter puts all bars after t into another order: orders up to the one at t,
// and values up to t, stay the same to the last bit.
func TestFutureBarsDoNotMatter(t *testing.T) {
	const assets, bars = 5, 150
	m := randomMarket(2, bars, assets)
	compared, differ := 0, 0
	for how, change := range sorted.All(executions) {
		for _, cut := range []int{35, 61, 120} {
			other := shuffled(m, cut, rng.New(3).Split(how, cut).Stream())
			a, b := source(t, m, change), source(t, other, change)
			for _, p := range everything(t) {
				all := trading.Range{First: 0, Last: bars - 1}
				x, y := must(t)(p.run(a, all)), must(t)(p.run(b, all))
				k := cut - (bars - 1 - x.Steps())
				if !slices.Equal(x.Value[:k+1], y.Value[:k+1]) || !slices.Equal(x.Actions[:(k+1)*assets], y.Actions[:(k+1)*assets]) {
					t.Fatalf("%s, %s: orders or values up to bar %d depend on later bars", how, p.name, cut)
				}
				compared++
				if !slices.Equal(x.Value, y.Value) {
					differ++
				}
			}
		}
	}
	// Only cash does not notice that its future has changed.
	if want := len(executions) * 3 * 10; compared != want || differ < want*9/10-10 {
		t.Errorf("%d runs were compared, expected %d; %d have another future", compared, want, differ)
	}
}

// TestLagShiftsOrders holds that a lag executes the same decisions later.
func TestLagShiftsOrders(t *testing.T) {
	const assets, bars = 4, 120
	s := source(t, randomMarket(3, bars, assets), nil)
	all := trading.Range{First: 0, Last: bars - 1}
	now := must(t)(backtest.Run(ctx, s, all, momentum{fixed: true}, key))
	compared := 0
	for _, lag := range []int{1, 2, 5} {
		p, err := backtest.Lagged(momentum{fixed: true}, lag)
		if err != nil {
			t.Fatal(err)
		}
		// A second run with the same policy begins again.
		for range 2 {
			late := must(t)(backtest.Run(ctx, s, all, p, key))
			for i, o := range late.Actions {
				want := int64(trading.Hold)
				if i >= lag*assets {
					want = now.Actions[i-lag*assets]
				}
				if o != want {
					t.Fatalf("lag %d: order %d of bar %d is %d, expected %d", lag, i%assets, i/assets, o, want)
				}
				compared++
			}
			if slices.Equal(late.Value, now.Value) {
				t.Errorf("lag %d changes nothing", lag)
			}
		}
	}
	if compared != 6*now.Steps()*assets {
		t.Errorf("%d orders were compared", compared)
	}
	if _, err := backtest.Lagged(momentum{}, 0); err == nil {
		t.Error("a lag of 0 bars is accepted")
	}
}

// TestCostsAreMonotone runs fixed orders at rising fees: at no bar is anything gained by paying
// more.
func TestCostsAreMonotone(t *testing.T) {
	const assets, bars = 4, 250
	rates := []float64{0, 0.0005, 0.001, 0.002, 0.005, 0.05}
	compared := 0
	for seed := range uint64(8) {
		s := source(t, randomMarket(seed, bars, assets), nil)
		rs, err := backtest.Costs(ctx, s, trading.Range{First: 0, Last: bars - 1}, momentum{fixed: true}, key, rates)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rs[1:] {
			if !slices.Equal(r.Actions, rs[0].Actions) {
				t.Fatalf("orders depend on the fee")
			}
			last := len(r.Value) - 1
			if r.Value[last] >= rs[i].Value[last] {
				t.Errorf("seed %d: %s ends at %g, %s at %g", seed, r.Name, r.Value[last], rs[i].Name, rs[i].Value[last])
			}
			compared++
		}
		if rs[0].TotalFees() != 0 || rs[2].Name != "momentum at 10 bp" {
			t.Errorf("%q costs %g", rs[2].Name, rs[0].TotalFees())
		}
	}
	if compared != 40 {
		t.Errorf("%d pairs were compared", compared)
	}
}
