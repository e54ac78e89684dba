package trading_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// limits are all there are, close enough to bind often.
var limits = risk.Config{
	Drawdown: risk.Drawdown{Limit: 0.02, Window: 15}, CVaR: risk.CVaR{Limit: 0.008, Level: 0.8, Window: 15, Resume: 0.006},
	MaxExposure: 0.7, MaxWeight: 0.2, MaxTurnover: 0.4,
}

// intraday gives a market three bars a day, and limits to one side.
func intraday(seed uint64, bars, assets int) *trading.Market {
	m := oneSided(randomMarket(seed, bars, assets, 1), seed)
	for b := range m.Dates {
		m.Dates[b] = day0.AddDate(0, 0, b/3).Add(time.Duration(10+2*(b%3)) * time.Hour)
	}
	return m
}

// book is the naive form of what a portfolio remembers: the values at all closes.
type book struct {
	dates  []time.Time
	values []float64
}

// drawdown is that from the highest value of the last days.
func (b *book) drawdown(days int) float64 {
	peak, seen, last := 0.0, 0, 0
	for i := len(b.values) - 1; i >= 0; i-- {
		if d := risk.DayOf(b.dates[i]); d != last {
			last = d
			if seen++; seen > days {
				break
			}
		}
		peak = max(peak, b.values[i])
	}
	return 1 - b.values[len(b.values)-1]/peak
}

// TestLimitsHoldAfterEveryFill trades random orders and weights in markets with pauses, sides and
// several bars a day, by many rules and under many limits. What holds at the prices of every fill,
// and so can be passed only by what prices do until the next one:
//
//   - no asset is more than max_weight, and all are not more than max_exposure, of the value before
//     what the fill costs, unless as much was sold as could be: that is counted;
//   - where something is bought, the day's turnover is within max_turnover of that value, and so it
//     is where no sale was demanded;
//   - beyond the drawdown, by its definition, nothing is bought, and with flatten as much is sold as
//     can be; its mask has no purchase.
func TestLimitsHoldAfterEveryFill(t *testing.T) {
	const assets, length, slack = 6, 400, 1 + 1e-9
	kinds := map[string]risk.Config{
		"exposure":         {MaxExposure: 0.5},
		"weight":           {MaxWeight: 0.15},
		"turnover":         {MaxTurnover: 0.2},
		"drawdown":         {Drawdown: limits.Drawdown},
		"drawdown flatten": {Drawdown: risk.Drawdown{Limit: 0.02, Window: 15, Then: risk.Flatten}},
		"cvar":             {CVaR: limits.CVaR},
		"all":              limits,
	}
	ways := map[string]func(*trading.Config){}
	for name, change := range sorted.All(executions) {
		ways["orders "+name] = change
	}
	for name, change := range sorted.All(rebalancings) {
		ways["weights "+name] = func(c *trading.Config) {
			if c.Actions = trading.Weights; change != nil {
				change(c)
			}
		}
	}
	// Under a rule book, with STAR's orders of 200 or more, and odd lots.
	rich := func(c *trading.Config) { c.InitialCash = 300_000 }
	ways["orders by a rule book"] = rich
	ways["weights by a rule book"] = func(c *trading.Config) {
		c.Actions = trading.Weights
		rich(c)
	}
	m := intraday(5, length, assets)
	ruled := *m
	ruled.Rules, ruled.Assets = ashare.Book{}, []string{"600000", "688001", "000001", "300001", "688002", "600004"}
	ruled.Open, ruled.Close = slices.Clone(m.Open), slices.Clone(m.Close)
	for i := range m.Open {
		ruled.Open[i], ruled.Close[i] = math.Round(m.Open[i]*100)/100, math.Round(m.Close[i]*100)/100
	}
	lots := make([]rules.Lot, assets)
	for i, name := range ruled.Assets {
		board, err := ashare.BoardOf(name)
		if err != nil {
			t.Fatal(err)
		}
		terms, err := ruled.Rules.Terms(uint8(board), bars.NewDate(day0))
		if err != nil {
			t.Fatal(err)
		}
		lots[i] = terms.Lot
	}
	steps, stuck, bound := 0, 0, [len(risk.BoundNames)]int{}
	for name, change := range sorted.All(ways) {
		for kind, r := range sorted.All(kinds) {
			c, m := config(change), m
			if c.Risk = r; strings.HasSuffix(name, "book") {
				m = &ruled
			}
			g := start(t, open(t, m, c), rng.New(1))
			c = g.Source().Config()
			s := rng.New(2).Split(name).Split(kind).Stream()
			all := &book{[]time.Time{m.Dates[g.Bar()]}, []float64{g.Value()}}
			weights, before, bought := make([]float64, assets+1), make([]float64, assets), make([]float64, assets)
			exposure, weight := c.Risk.MaxExposure, c.Risk.MaxWeight
			stopped, day, traded := false, 0, 0.0
			for g.ts.Type != envs.Last {
				bar, cash := g.Bar(), g.Cash()
				copy(before, g.Positions())
				if d := c.Risk.Drawdown; d.Limit > 0 {
					down := all.drawdown(d.Window)
					stopped = down > d.Limit || stopped && down > d.Limit/2
				}
				if g.Risk().Stopped() != stopped {
					t.Fatalf("%s, %s, bar %d: stopped %t, expected %t", name, kind, bar, !stopped, stopped)
				}
				factor := g.Risk().Factor()
				if c.Actions == trading.Weights {
					target(s, weights)
					if err := g.Rebalance(weights, g.ts); err != nil {
						t.Fatal(err)
					}
				} else {
					most, one := g.Risk().Limits()
					for i, q := range before {
						at := bar*assets + i
						open := m.Tradable[at].Allows(trading.Buy) && !stopped && g.Value()-cash < most*g.Value()*(1-1e-9) && !(q > 0 && q*m.Close[at] >= one*g.Value())
						if got := g.ts.Mask.Bools()[3*i+trading.Buy]; got != open {
							t.Fatalf("%s, %s, bar %d: asset %d may be bought %t, expected %t", name, kind, bar, i, got, open)
						}
					}
					g.play(g.random(s)...)
				}
				steps++
				all.dates, all.values = append(all.dates, m.Dates[g.Bar()]), append(all.values, g.Value())

				at, prices, sides := m.Fill(c.Execution.Fill, bar)
				prices, sides = prices[at*assets:(at+1)*assets], sides[at*assets:(at+1)*assets]
				if d := risk.DayOf(m.Dates[at]); d != day {
					day, traded = d, 0
					clear(bought)
				}
				// The part of each asset that could be sold, and was; the value, and the part that is held.
				value, held, buys, whole := cash, 0.0, 0, true
				was := traded
				for i, q := range before {
					if q != 0 {
						value += q * prices[i]
					}
				}
				could := make([]bool, assets)
				for i, q := range before {
					most := q
					if sides[i]&trading.CanSell == 0 {
						most = 0
					}
					if m.Volume[at*assets+i] < c.Costs.MinVolume {
						most = 0
					}
					if p := c.Costs.Participation; p > 0 {
						most = min(most, p*m.Volume[at*assets+i])
					}
					if c.Account.Settlement > 0 {
						most = min(most, max(q-bought[i], 0))
					}
					switch lot := c.Execution.Lot; {
					case c.Ruled():
						most = float64(lots[i].Sell(int64(most), int64(q)))
					case lot > 0 && most < q:
						most = math.Floor(most/lot) * lot
					}
					sold := 0.0
					for _, f := range g.Fills() {
						if f.Asset == i && f.Shares < 0 {
							sold -= f.Shares
						}
					}
					could[i] = most-sold > 1e-9*max(most, 1) && most*prices[i]*0.8 > max(c.Costs.Minimum, trading.Dust)
				}
				for _, f := range g.Fills() {
					traded += math.Abs(f.Shares) * f.Price
					if f.Shares > 0 {
						buys++
						bought[f.Asset] += f.Shares
					}
				}
				// A sale that costs more than it gives is left out.
				least := 1.2 * c.Costs.Minimum
				fatal := func(what string, got, most float64) {
					t.Helper()
					t.Fatalf("%s, %s, bar %d: %s is %.12g of %.12g, at most %.12g; fills %+v", name, kind, bar, what, got, value, most, g.Fills())
				}
				unsold := false
				for i, q := range g.Positions() {
					v := q * prices[i]
					if q == 0 {
						continue
					}
					held += v
					if weight > 0 && v > weight*factor*value*slack {
						if unsold = true; could[i] && v > weight*factor*value+least {
							fatal("a position", v, weight*factor*value)
						}
					}
					if whole = whole && !could[i]; stopped && c.Risk.Drawdown.Then == risk.Flatten && v > trading.Dust {
						if unsold = true; could[i] {
							fatal("a position that is to be sold", v, 0)
						}
					}
				}
				most := exposure
				if factor < 1 {
					if most == 0 {
						most = 1
					}
					most *= factor
				}
				if most > 0 && held > most*value*slack {
					if unsold = true; !whole && held > most*value+assets*least {
						fatal("exposure", held, most*value)
					}
				}
				if g.Bound()&risk.Unsold != 0 != unsold {
					t.Fatalf("%s, %s, bar %d: bound %v, expected unsold %t", name, kind, bar, g.Bound().Names(), unsold)
				}
				if unsold {
					stuck++
				}
				demanded := g.Bound()&(risk.BoundDrawdown|risk.BoundExposure|risk.BoundWeight) != 0
				if k := c.Risk.MaxTurnover; k > 0 && traded > was && (buys > 0 || !demanded) && traded > k*value*slack+assets*trading.Dust {
					fatal("the turnover of the day", traded, k*value)
				}
				if stopped && buys > 0 {
					fatal("bought, beyond the drawdown,", float64(buys), 0)
				}
				for i := range bound {
					bound[i] += int(g.Bound() >> i & 1)
				}
			}
		}
	}
	if want := len(ways) * len(kinds) * (length - 1); len(ways) != len(executions)+len(rebalancings)+2 || steps != want {
		t.Errorf("%d steps, expected %d", steps, want)
	}
	for i, n := range bound {
		if n < 1000 {
			t.Errorf("%s has bound %d times", risk.BoundNames[i], n)
		}
	}
	t.Logf("%d steps; what should be sold could not be at %d of them; bound: %v %v", steps, stuck, risk.BoundNames, bound)
}

// TestLimitsByHand follows orders and weights under one limit after another. Without fees, 1000 in
// cash, buys of half of the cash and sells of half of the position; A costs 10, then 20 from the
// second bar's close on, B always 20. Bars 1 and 2 are of one day.
func TestLimitsByHand(t *testing.T) {
	const b, s, h = trading.Buy, trading.Sell, trading.Hold
	m := table(slices.Repeat([][]float64{{10, 20}}, 5), slices.Repeat([][]float64{{10, 20}}, 5))
	for bar := 1; bar < 5; bar++ {
		if m.Close[2*bar] = 20; bar > 1 {
			m.Open[2*bar] = 20
		}
	}
	m.Dates[2] = m.Dates[1].Add(time.Hour)
	fell := table(slices.Repeat([][]float64{{10, 20}}, 5), slices.Repeat([][]float64{{5, 20}}, 5))
	fell.Close[0] = 10
	copy(fell.Open[4:], []float64{5, 20, 5, 20, 5, 20})
	type step struct {
		orders     [2]int64
		weights    [3]float64
		a, b, cash float64
		bound      risk.Bounds
	}
	for _, c := range []struct {
		name  string
		m     *trading.Market
		risk  risk.Config
		steps []step
	}{
		{"nothing is beyond a limit", m, risk.Config{MaxWeight: 1, MaxExposure: 1, MaxTurnover: 1}, []step{
			{[2]int64{b, h}, [3]float64{0.5, 0, 0.5}, 50, 0, 500, 0},
		}},
		{"one asset", m, risk.Config{MaxWeight: 0.4}, []step{
			// 500 are cut to 400.
			{[2]int64{b, h}, [3]float64{0.5, 0, 0.5}, 40, 0, 600, risk.BoundWeight},
			// A is worth 800 of 1400: what is above 560 is sold.
			{[2]int64{h, h}, [3]float64{0.4, 0, 0.6}, 28, 0, 840, risk.BoundWeight},
			{[2]int64{s, h}, [3]float64{0.2, 0, 0.8}, 14, 0, 1120, 0},
		}},
		{"all assets", m, risk.Config{MaxExposure: 0.6}, []step{
			// 500 each for A and B are cut to 300 each.
			{[2]int64{b, b}, [3]float64{0.5, 0.5, 0}, 30, 15, 400, risk.BoundExposure},
			// 600 and 300 of 1300 are cut to 780.
			{[2]int64{h, h}, [3]float64{0.6 * 2 / 3, 0.6 / 3, 0.4}, 26, 13, 520, risk.BoundExposure},
		}},
		{"the turnover of a day", m, risk.Config{MaxTurnover: 0.4}, []step{
			{[2]int64{b, h}, [3]float64{0.5, 0, 0.5}, 40, 0, 600, risk.BoundTurnover},
			// Bar 2 is of the same day: 560 of 1400 may be traded, 400 are. Half of 800 is 400.
			{[2]int64{s, h}, [3]float64{2. / 7, 0, 5. / 7}, 32, 0, 760, risk.BoundTurnover},
			// And 560 on the next.
			{[2]int64{s, h}, [3]float64{8. / 35, 0, 27. / 35}, 16, 0, 1080, 0},
		}},
		{"a drawdown", fell, risk.Config{Drawdown: risk.Drawdown{Limit: 0.2, Window: 2}}, []step{
			{[2]int64{b, h}, [3]float64{0.5, 0, 0.5}, 50, 0, 500, 0},
			// Half of the half is lost: 250 of 1000.
			{[2]int64{h, b}, [3]float64{1. / 3, 1. / 3, 1. / 3}, 50, 0, 500, risk.BoundDrawdown},
			// The highest value of two days is 750.
			{[2]int64{h, b}, [3]float64{1. / 3, 1. / 3, 1. / 3}, 50, 12.5, 250, 0},
		}},
		{"a drawdown that flattens", fell, risk.Config{Drawdown: risk.Drawdown{Limit: 0.2, Then: risk.Flatten}}, []step{
			{[2]int64{b, h}, [3]float64{0.5, 0, 0.5}, 50, 0, 500, 0},
			{[2]int64{h, b}, [3]float64{1. / 3, 1. / 3, 1. / 3}, 0, 0, 750, risk.BoundDrawdown},
			{[2]int64{b, b}, [3]float64{0.5, 0.5, 0}, 0, 0, 750, risk.BoundDrawdown},
		}},
	} {
		for _, actions := range []string{"", trading.Weights} {
			g := start(t, open(t, c.m, config(func(o *trading.Config) {
				o.InitialCash, o.FeeRate, o.BuyPct, o.Actions, o.Risk = 1000, 0, 0.5, actions, c.risk
			})), rng.New(1))
			for i, want := range c.steps {
				if actions == "" {
					g.play(want.orders[:]...)
				} else if err := g.Rebalance(want.weights[:], g.ts); err != nil {
					t.Fatal(err)
				}
				// Weights within the limits need no cut.
				bound := want.bound
				if actions == trading.Weights && i > 0 {
					bound &= risk.BoundDrawdown | risk.BoundTurnover
				}
				got := g.Bound()
				if actions == trading.Weights && i > 0 {
					got &= risk.BoundDrawdown | risk.BoundTurnover
				}
				if !near(g.Positions()[0], want.a, 1e-9) || !near(g.Positions()[1], want.b, 1e-9) || !near(g.Cash(), want.cash, 1e-9) || got != bound {
					t.Errorf("%s, %s, step %d: %v and %g, bound %q, expected %g, %g, %g, %q", c.name, actions, i+1, g.Positions(), g.Cash(), g.Bound().Names(), want.a, want.b, want.cash, bound.Names())
				}
			}
		}
	}
}
