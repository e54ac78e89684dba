package trading_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// executions are the ways of trading that every property holds for.
var executions = map[string]func(*trading.Config){
	"fair":             nil,
	"owner":            func(c *trading.Config) { c.Execution.CashSplit = trading.Owner },
	"next close":       func(c *trading.Config) { c.Execution.Fill = trading.NextClose },
	"same close":       func(c *trading.Config) { c.Execution.Fill = trading.SameClose },
	"whole shares":     func(c *trading.Config) { c.Execution.Lot = 1 },
	"everything":       func(c *trading.Config) { c.BuyPct, c.SellPct = 1, 1 },
	"owner everything": func(c *trading.Config) { c.BuyPct, c.SellPct, c.Execution.CashSplit = 1, 1, trading.Owner },
	"costs": func(c *trading.Config) {
		c.Costs = trading.Costs{Minimum: 1, Participation: 0.2, Slippage: trading.Slippage{BP: 5, Impact: trading.SquareRoot, Coefficient: 0.1}, Taxes: []trading.Tax{{Name: "duty", Side: "sell", Rate: 0.001}, {Side: "both", Rate: 0.0001}}}
	},
	"owner costs in lots": func(c *trading.Config) {
		c.Execution.Lot, c.Execution.CashSplit, c.Account.Settlement = 2, trading.Owner, 1
		c.Costs = trading.Costs{Minimum: 5, Participation: 0.1, Slippage: trading.Slippage{Impact: trading.Linear, Coefficient: 0.2}}
	},
	"rests": func(c *trading.Config) {
		c.Costs = trading.Costs{Participation: 0.05, Rest: trading.Carry}
	},
	"least volume": func(c *trading.Config) { c.Costs.MinVolume = 200 },
	"owner rests in lots": func(c *trading.Config) {
		c.Execution.Lot, c.Execution.CashSplit, c.Account.Settlement = 2, trading.Owner, 1
		c.Costs = trading.Costs{Minimum: 1, Participation: 0.05, Rest: trading.Carry, Slippage: trading.Slippage{BP: 5}}
	},
	"rests within limits on risk": func(c *trading.Config) {
		c.Risk = limits
		c.Costs = trading.Costs{Participation: 0.05, Rest: trading.Carry}
	},
	"the depth of a book": func(c *trading.Config) {
		c.Costs.Slippage = trading.Slippage{Impact: trading.OfDepth, Coefficient: 5}
	},
	"limits on risk": func(c *trading.Config) {
		c.Risk = limits
		c.Risk.Drawdown.Then = risk.Flatten
	},
	"expensive lots": func(c *trading.Config) { c.FeeRate, c.Execution.Lot, c.Execution.CashSplit = 0.03, 5, trading.Owner },
}

// TestConservationAndSigns takes more than a million random steps. In each, the change of the value
// is what prices did to the positions before and after the trades, minus the fees; the trades
// explain the change of positions and cash; and neither is ever negative.
func TestConservationAndSigns(t *testing.T) {
	const assets, bars = 6, 500
	m := randomMarket(7, bars, assets, 1)
	each := longtest.Cases(t, 100_000, 10_000)
	steps, fills, worst := 0, 0, 0.0
	for name, change := range sorted.All(executions) {
		c := config(change)
		e := open(t, m, c)
		s := rng.New(3).Split(name).Stream()
		g := start(t, e, rng.New(1))
		before := make([]float64, assets)
		for range each {
			if g.ts.Type == envs.Last {
				if err := g.Reset(rng.New(1), g.ts); err != nil {
					t.Fatal(err)
				}
			}
			copy(before, g.Positions())
			cash, value, bar := g.Cash(), g.Value(), g.Bar()
			g.play(g.random(s)...)
			steps++
			expected, spent := value, cash
			for _, f := range g.Fills() {
				at := f.Bar*assets + f.Asset
				decided := m.Tradable[bar*assets+f.Asset]
				if c.Risk.On() && f.Shares < 0 {
					decided = trading.Both // A limit may demand the sale.
				}
				if m.Tradable[at]&decided == 0 || f.Fee < 0 || f.Shares == 0 {
					t.Fatalf("%s: bar %d: the fill %+v of an asset that cannot be traded, or without sense", name, bar, f)
				}
				if c.Costs.UsesBook() && (!(m.Depth[at] > 0) || math.Abs(f.Shares) > m.Depth[at]/2 || math.IsNaN(m.Spread[at]) || (f.Price-m.Open[at])*f.Shares < 0) {
					t.Fatalf("%s: bar %d: the fill %+v from a book with a spread of %v and a depth of %v at %v", name, bar, f, m.Spread[at], m.Depth[at], m.Open[at])
				}
				expected += f.Shares*(m.Close[(bar+1)*assets+f.Asset]-f.Price) - f.Fee
				spent -= f.Shares*f.Price + f.Fee
				before[f.Asset] += f.Shares
				fills++
			}
			// The holdings through the bar: positions before the trades gained from close to
			// close.
			for i, q := range g.Positions() {
				if q < 0 || !near(q, before[i], 1e-9) {
					t.Fatalf("%s: bar %d: position %d is %g, its trades say %g", name, bar, i, q, before[i])
				}
				old := q
				for _, f := range g.Fills() {
					if f.Asset == i {
						old -= f.Shares
					}
				}
				if old != 0 {
					expected += old * (m.Close[(bar+1)*assets+i] - m.Close[bar*assets+i])
				}
			}
			if g.Cash() < 0 || !near(g.Cash(), spent, 1e-9) {
				t.Fatalf("%s: bar %d: cash is %g, the trades say %g", name, bar, g.Cash(), spent)
			}
			d := math.Abs(g.Value() - expected)
			worst = max(worst, d/max(1, value/1e4))
			if d > 1e-9*max(1, value/1e4) {
				t.Fatalf("%s: bar %d: the value is %.12f, prices and fees say %.12f", name, bar, g.Value(), expected)
			}
			if r := g.Value()/value - 1; r != g.ts.Reward {
				t.Fatalf("%s: bar %d: reward %g, the values say %g", name, bar, g.ts.Reward, r)
			}
		}
	}
	if steps != 16*each || fills < 10*each {
		t.Errorf("%d steps with %d fills", steps, fills)
	}
	t.Logf("%d steps, %d fills, the worst difference is %.2g of 10,000", steps, fills, worst)
}

// permuted returns the market with asset order[i] as its i-th.
func permuted(m *trading.Market, order []int) *trading.Market {
	n, f := len(m.Assets), len(m.Features)
	p := &trading.Market{Features: m.Features, Dates: m.Dates, X: make([]float32, len(m.X)), Open: make([]float64, len(m.Open)), Close: make([]float64, len(m.Close)), Tradable: make([]trading.Sides, len(m.Tradable)), Volume: make([]float64, len(m.Volume))}
	for _, from := range order {
		p.Assets = append(p.Assets, m.Assets[from])
	}
	for b := range m.Len() {
		for to, from := range order {
			p.Open[b*n+to], p.Close[b*n+to], p.Tradable[b*n+to] = m.Open[b*n+from], m.Close[b*n+from], m.Tradable[b*n+from]
			p.Volume[b*n+to] = m.Volume[b*n+from]
			copy(p.X[(b*n+to)*f:(b*n+to+1)*f], m.X[(b*n+from)*f:(b*n+from+1)*f])
		}
	}
	return p
}

// TestAssetOrderDoesNotMatter permutes the assets: with the fair split, everything is permuted with
// them. With the owner's split it is not, which shows that the test can tell.
func TestAssetOrderDoesNotMatter(t *testing.T) {
	const assets, bars = 6, 300
	m := randomMarket(8, bars, assets, 2)
	compared := 0
	spread := func(change func(*trading.Config), seed uint64) (worst float64) {
		s := rng.New(seed).Stream()
		order := make([]int, assets)
		s.Perm(order)
		a := start(t, open(t, m, config(change)), rng.New(1))
		b := start(t, open(t, permuted(m, order), config(change)), rng.New(1))
		moved := make([]int64, assets)
		for a.ts.Type != envs.Last {
			orders := a.random(s)
			for to, from := range order {
				moved[to] = orders[from]
			}
			a.play(orders...)
			b.play(moved...)
			worst = max(worst, math.Abs(a.Value()/b.Value()-1), math.Abs(a.Cash()-b.Cash())/a.Value())
			for to, from := range order {
				compared++
				worst = max(worst, math.Abs(a.Positions()[from]-b.Positions()[to])/(1+a.Positions()[from]))
			}
		}
		return worst
	}
	for seed := range uint64(20) {
		if d := spread(nil, seed); d > 1e-11 {
			t.Errorf("permutation %d: the fair split differs by %g", seed, d)
		}
	}
	for seed := range uint64(10) {
		for _, name := range []string{"costs", "limits on risk"} {
			if d := spread(executions[name], seed); d > 1e-11 {
				t.Errorf("permutation %d: the fair split with %s differs by %g", seed, name, d)
			}
		}
	}
	if d := spread(executions["owner"], 1); d < 1e-3 {
		t.Errorf("the owner's split differs by %g only: the test shows nothing", d)
	}
	if compared != 41*(bars-1)*assets {
		t.Errorf("%d positions were compared", compared)
	}
}

// TestFutureBarsDoNotMatter replaces everything after bar t by bars in another order: all that has
// happened up to t, the observation at t included, stays the same to the last bit.
func TestFutureBarsDoNotMatter(t *testing.T) {
	const assets, bars, features = 5, 120, 3
	m := randomMarket(9, bars, assets, features)
	compared, differ := 0, 0
	for name, change := range sorted.All(executions) {
		for _, cut := range []int{30, 63, 100} {
			other := *m
			other.X, other.Open, other.Close, other.Tradable = slices.Clone(m.X), slices.Clone(m.Open), slices.Clone(m.Close), slices.Clone(m.Tradable)
			s := rng.New(4).Split(name, cut).Stream()
			for i, from := range perm(s, bars-cut-1) {
				to, from := (cut+1+i)*assets, (cut+1+from)*assets
				copy(other.Open[to:to+assets], m.Open[from:])
				copy(other.Close[to:to+assets], m.Close[from:])
				copy(other.Tradable[to:to+assets], m.Tradable[from:from+assets])
				copy(other.X[to*features:(to+assets)*features], m.X[from*features:])
			}
			c := config(change)
			c.Window = 20
			a, b := start(t, open(t, m, c), rng.New(1)), start(t, open(t, &other, c), rng.New(1))
			for {
				same := a.ts.Reward == b.ts.Reward && slices.Equal(a.ts.Info, b.ts.Info) && slices.Equal(a.Positions(), b.Positions()) && slices.Equal(a.Fills(), b.Fills())
				for i := range a.ts.Obs {
					same = same && slices.Equal(a.ts.Obs[i].Bytes(), b.ts.Obs[i].Bytes())
				}
				if !same || !slices.Equal(a.ts.Mask.Bytes(), b.ts.Mask.Bytes()) {
					t.Fatalf("%s: bar %d depends on bars after %d", name, a.Bar(), cut)
				}
				compared++
				if a.Bar() == cut {
					break
				}
				orders := a.random(s)
				a.play(orders...)
				b.play(orders...)
			}
			orders := a.random(s)
			a.play(orders...)
			b.play(orders...)
			if a.Value() != b.Value() {
				differ++
			}
		}
	}
	// Bar t+1 is another one, unless the portfolio happens to be all cash: the test can tell.
	if compared != len(executions)*(12+45+82) || differ < 2*len(executions) {
		t.Errorf("%d bars were compared, %d futures differ", compared, differ)
	}
}

func perm(s *rng.Stream, n int) []int {
	p := make([]int, n)
	s.Perm(p)
	return p
}

// TestZeroFeeRoundTrip buys and sells everything at constant prices: without a fee the value never
// changes.
func TestZeroFeeRoundTrip(t *testing.T) {
	constant := slices.Repeat([][]float64{{12.5, 0.37, 811}}, 40)
	g := start(t, open(t, table(constant, constant), config(func(c *trading.Config) { c.FeeRate, c.BuyPct, c.SellPct = 0, 1, 1 })), rng.New(1))
	s, trades := rng.New(2).Stream(), 0
	for g.ts.Type != envs.Last {
		g.play(g.random(s)...)
		trades += len(g.Fills())
		if !near(g.Value(), 10_000, 1e-9) {
			t.Fatalf("bar %d: the value is %.12f", g.Bar(), g.Value())
		}
	}
	if trades < 20 {
		t.Errorf("%d trades", trades)
	}
}

// TestBuyAndHold compares an equal-weight portfolio that is never touched again with its formula.
func TestBuyAndHold(t *testing.T) {
	const assets, bars = 5, 250
	m := randomMarket(10, bars, assets, 1)
	for i := range m.Tradable {
		m.Tradable[i] = trading.Both
	}
	// Every asset has prices from the start on.
	for b := range 11 {
		m.Open[b*assets+1], m.Close[b*assets+1] = 30, 31
	}
	c := config(func(c *trading.Config) { c.BuyPct = 1 })
	g := start(t, open(t, m, c), rng.New(1))
	g.play(slices.Repeat([]int64{trading.Buy}, assets)...)
	compared := 0
	for {
		want := 0.0
		for a := range assets {
			want += c.InitialCash / assets / (1 + c.FeeRate) / m.Open[assets+a] * m.Close[g.Bar()*assets+a]
		}
		if !near(g.Value(), want, 1e-8) || !near(g.Cash(), 0, 1e-8) {
			t.Fatalf("bar %d: the value is %.10f with %g of cash, the formula says %.10f", g.Bar(), g.Value(), g.Cash(), want)
		}
		compared++
		if g.ts.Type == envs.Last {
			break
		}
		g.play(slices.Repeat([]int64{trading.Hold}, assets)...)
	}
	if compared != bars-1 {
		t.Errorf("%d bars were compared", compared)
	}
}

// TestLogRewardsAddUp compares the sum of log rewards, and the product of simple ones, with the
// change of the value.
func TestLogRewardsAddUp(t *testing.T) {
	m := randomMarket(11, 200, 4, 1)
	for _, reward := range []string{trading.Simple, trading.Log} {
		g := start(t, open(t, m, config(func(c *trading.Config) { c.Reward = reward })), rng.New(1))
		s, sum := rng.New(5).Stream(), 0.0
		for g.ts.Type != envs.Last {
			g.play(g.random(s)...)
			if reward == trading.Log {
				sum += g.ts.Reward
			} else {
				sum += math.Log1p(g.ts.Reward)
			}
		}
		if want := math.Log(g.Value() / 10_000); !near(sum, want, 1e-11) || want == 0 {
			t.Errorf("%s rewards add up to %g, the value says %g", reward, sum, want)
		}
	}
}

// TestUntradableAssets holds that masks follow the table, that orders against them do nothing, and
// that an order is dropped when trading stops at the bar of the fill.
func TestUntradableAssets(t *testing.T) {
	prices := slices.Repeat([][]float64{{10, 10}}, 6)
	m := table(prices, prices)
	m.Open[1], m.Close[1], m.Tradable[1] = math.NaN(), math.NaN(), 0 // B is listed at bar 1,
	m.Tradable[2*2+1] = 0                                            // and pauses at bar 2.
	g := start(t, open(t, m, config(nil)), rng.New(1))
	want := func(step string, mask []bool, skipped float64, posB bool) {
		t.Helper()
		if !slices.Equal(g.ts.Mask.Bools(), mask) || g.ts.Info[trading.InfoSkipped] != skipped || (g.Positions()[1] > 0) != posB {
			t.Errorf("%s: mask %v, %g skipped, positions %v", step, g.ts.Mask.Bools(), g.ts.Info[trading.InfoSkipped], g.Positions())
		}
	}
	yes, no := []bool{true, true, true, true, true, true}, []bool{true, true, true, false, false, true}
	want("bar 0", no, 0, false)
	g.play(trading.Hold, trading.Buy)
	want("B is not listed when the order is given", yes, 1, false)
	g.play(trading.Hold, trading.Buy)
	want("B pauses when the order is filled", no, 1, false)
	g.play(trading.Hold, trading.Buy)
	want("B pauses when the order is given", yes, 1, false)
	g.play(trading.Hold, trading.Buy)
	want("B trades", yes, 0, true)
	if f := g.Fills(); len(f) != 1 || f[0].Asset != 1 || f[0].Bar != 4 || g.Market().Dates[4] != day0.AddDate(0, 0, 4) {
		t.Errorf("fills %+v", f)
	}
}

// Market is a short cut for tests.
func (g *game) Market() *trading.Market { return g.Source().Market() }

// TestHalvedPositionsEnd sells half again and again: the position ends as nothing and not as a
// denormal number.
func TestHalvedPositionsEnd(t *testing.T) {
	const bars = 300
	prices := slices.Repeat([][]float64{{10}}, bars)
	m := table(prices, prices)
	m.Dates[bars-1] = m.Dates[bars-2].Add(time.Hour)
	g := start(t, open(t, m, config(nil)), rng.New(1))
	g.play(trading.Buy)
	n := 0
	for g.Positions()[0] > 0 && g.ts.Type != envs.Last {
		if q := g.Positions()[0]; q*10 < trading.Dust {
			t.Fatalf("a position of %g is left", q)
		}
		g.play(trading.Sell)
		n++
	}
	// 2000 / 2^31 is the first value below a millionth.
	if n != 31 || g.Positions()[0] != 0 {
		t.Errorf("%d sells leave %g", n, g.Positions()[0])
	}
}
