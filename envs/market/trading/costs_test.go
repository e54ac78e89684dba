package trading_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func date(t testing.TB, text string) (d bars.Date) {
	t.Helper()
	d, err := bars.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// duties are those of Shanghai and Shenzhen since 2008, with a transfer fee beside the stamp duty.
func duties(t testing.TB) []trading.Tax {
	return []trading.Tax{
		{Name: "stamp_duty", Side: "both", Rate: 0.003},
		{Name: "stamp_duty", From: date(t, "2008-04-24"), Side: "both", Rate: 0.001},
		{Name: "stamp_duty", From: date(t, "2008-09-19"), Side: "buy", Rate: 0},
		{Name: "stamp_duty", From: date(t, "2023-08-28"), Side: "sell", Rate: 0.0005},
		{Name: "transfer_fee", From: date(t, "2015-08-01"), Side: "both", Rate: 0.00002},
	}
}

// TestFees compares fees with figures worked out by hand, among them the golden ones of rqalpha for
// the stamp duty of August 2023 and zipline's least commissions.
func TestFees(t *testing.T) {
	stamp := []trading.Tax{{Side: "sell", Rate: 0.001}, {From: date(t, "2023-08-28"), Side: "sell", Rate: 0.0005}}
	for _, c := range []struct {
		rate   float64
		costs  trading.Costs
		date   string
		side   int64
		amount float64
		want   float64
	}{
		{0.0005, trading.Costs{}, "2020-01-01", trading.Buy, 1000, 0.5},
		{0, trading.Costs{}, "2020-01-01", trading.Sell, 1000, 0},
		{0.0008, trading.Costs{Taxes: stamp}, "2023-08-25", trading.Sell, 11230, 8.984 + 11.23},
		{0.0008, trading.Costs{Taxes: stamp}, "2023-08-28", trading.Sell, 11520, 9.216 + 5.76},
		{0.0008, trading.Costs{Taxes: stamp}, "2023-08-28", trading.Buy, 11520, 9.216},
		{0.0008, trading.Costs{Minimum: 5}, "2020-01-01", trading.Buy, 891, 5},
		{0.0008, trading.Costs{Minimum: 5, Taxes: stamp}, "2020-01-01", trading.Sell, 891, 5.891},
		{0.0008, trading.Costs{Minimum: 5}, "2020-01-01", trading.Buy, 6250, 5},
		{0.0008, trading.Costs{Minimum: 5}, "2020-01-01", trading.Buy, 10000, 8},
		{0, trading.Costs{Taxes: duties(t)}, "2007-06-01", trading.Buy, 1e4, 30},
		{0, trading.Costs{Taxes: duties(t)}, "2008-04-23", trading.Sell, 1e4, 30},
		{0, trading.Costs{Taxes: duties(t)}, "2008-04-24", trading.Sell, 1e4, 10},
		{0, trading.Costs{Taxes: duties(t)}, "2008-09-18", trading.Buy, 1e4, 10},
		{0, trading.Costs{Taxes: duties(t)}, "2008-09-19", trading.Buy, 1e4, 0},
		{0, trading.Costs{Taxes: duties(t)}, "2008-09-19", trading.Sell, 1e4, 10},
		{0, trading.Costs{Taxes: duties(t)}, "2015-08-01", trading.Buy, 1e4, 0.2},
		{0, trading.Costs{Taxes: duties(t)}, "2023-08-28", trading.Sell, 1e4, 5.2},
	} {
		day, err := time.Parse(time.DateOnly, c.date)
		if err != nil {
			t.Fatal(err)
		}
		k := config(func(k *trading.Config) { k.FeeRate, k.Costs = c.rate, c.costs })
		x := k.Charges(&trading.Bar{Date: day.Add(14 * time.Hour)})
		if got := x.Fee(c.side, c.amount); !near(got, c.want, 1e-9) {
			t.Errorf("%+v: %g", c, got)
		}
		// Each amount spent pays for itself, to a rounding error.
		if amount := x.Spend(c.amount); c.side == trading.Buy && !near(amount+x.Fee(trading.Buy, amount), c.amount, 1e-9) {
			t.Errorf("%+v: %g of amount and %g of fee", c, amount, x.Fee(trading.Buy, amount))
		}
	}
}

// TestSlippage compares prices with figures worked out by hand.
func TestSlippage(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		slip           trading.Slippage
		side           int64
		shares, volume float64
		down, up, want float64
	}{
		{trading.Slippage{}, trading.Buy, 10, 100, 0, 0, 50},
		{trading.Slippage{BP: 10}, trading.Buy, 10, 100, 0, 0, 50.05},
		{trading.Slippage{BP: 10}, trading.Sell, 10, 100, 0, 0, 49.95},
		{trading.Slippage{Impact: trading.Linear, Coefficient: 0.1}, trading.Buy, 5, 100, 0, 0, 50 * 1.005},
		{trading.Slippage{Impact: trading.Linear, Coefficient: 0.1}, trading.Sell, 5, 100, 0, 0, 50 * 0.995},
		{trading.Slippage{Impact: trading.SquareRoot, Coefficient: 0.1}, trading.Buy, 4, 100, 0, 0, 51},
		{trading.Slippage{BP: 100, Impact: trading.SquareRoot, Coefficient: 0.1}, trading.Sell, 4, 100, 0, 0, 48.5},
		{trading.Slippage{Impact: trading.Linear, Coefficient: 0.1}, trading.Buy, 500, 100, 0, 0, 55},
		{trading.Slippage{Impact: trading.Linear, Coefficient: 0.1}, trading.Buy, 5, 0, 0, 0, 55},
		// The spread is 0.2 and the depth the volume.
		{trading.Slippage{Impact: trading.OfDepth}, trading.Buy, 10, 100, 0, 0, 50.1},
		{trading.Slippage{Impact: trading.OfDepth, Coefficient: 5}, trading.Buy, 10, 100, 0, 0, 50.2},
		{trading.Slippage{Impact: trading.OfDepth, Coefficient: 5}, trading.Sell, 50, 100, 0, 0, 49.4},
		{trading.Slippage{Impact: trading.OfDepth, Coefficient: 5}, trading.Sell, 50, 100, 49.5, 55, 49.5},
		{trading.Slippage{BP: 100}, trading.Buy, 10, 100, 45, 50.2, 50.2},
		{trading.Slippage{BP: 100}, trading.Sell, 10, 100, 49.9, 55, 49.9},
		{trading.Slippage{BP: 100}, trading.Buy, 10, 100, nan, nan, 50.5},
	} {
		k := config(func(k *trading.Config) { k.Costs.Slippage = c.slip })
		b := trading.Bar{Price: []float64{50}, Volume: []float64{c.volume}, Spread: []float64{0.2}, Depth: []float64{c.volume}, LimitUp: []float64{c.up}, LimitDown: []float64{c.down}}
		x := k.Charges(&b)
		if got := x.Price(c.side, 0, c.shares); !near(got, c.want, 1e-9) {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

// TestCostsByHand plays orders whose rest is cancelled, that do not pay the least commission, and
// that move the price.
func TestCostsByHand(t *testing.T) {
	const b, s, h = trading.Buy, trading.Sell, trading.Hold
	type row struct {
		order                   int64
		cash, shares, fee, skip float64
	}
	cases := map[string]struct {
		change func(*trading.Config)
		rows   []row
	}{
		// A tenth of 100 shares a bar, at 10: 10 of the 20 that 200 buys; then half of 10 is 5.
		"participation": {func(c *trading.Config) { c.FeeRate, c.Costs.Participation = 0, 0.1 }, []row{{b, 900, 10, 0, 0}, {s, 950, 5, 0, 0}, {b, 850, 15, 0, 0}}},
		// Of 20 shares that 200 buys a bar has 6: the rest takes three more, though nothing is
		// ordered; then half of 20 is sold in the same way, until a purchase ends that.
		"rests": {func(c *trading.Config) { c.FeeRate, c.Costs.Participation, c.Costs.Rest = 0, 0.06, trading.Carry }, []row{{b, 940, 6, 0, 0}, {h, 880, 12, 0, 0}, {h, 820, 18, 0, 0}, {h, 800, 20, 0, 0}, {h, 800, 20, 0, 0}, {s, 860, 14, 0, 0}, {b, 800, 20, 0, 0}}},
		// The volume of 100 is below the least: nothing is filled, and the order is forgotten.
		"least volume":    {func(c *trading.Config) { c.FeeRate, c.Costs.MinVolume = 0, 101 }, []row{{b, 1000, 0, 0, 1}, {h, 1000, 0, 0, 0}}},
		"no least volume": {func(c *trading.Config) { c.FeeRate, c.Costs.MinVolume = 0, 100 }, []row{{b, 800, 20, 0, 0}}},
		// 2.5 of 20 wanted at 2.5 % of a volume of 100, in whole shares.
		"participation in lots": {func(c *trading.Config) { c.FeeRate, c.Costs.Participation, c.Execution.Lot = 0, 0.025, 1 }, []row{{b, 980, 2, 0, 0}, {b, 960, 4, 0, 0}}},
		// 200 pays for 195 and the least commission of 5; half of 19.5 brings 97.5 − 5.
		"minimum": {func(c *trading.Config) { c.FeeRate, c.Costs.Minimum = 0.001, 5 }, []row{{b, 800, 19.5, 5, 0}, {s, 892.5, 9.75, 5, 0}}},
		// 2 % of the cash is 20, less than the least commission.
		"minimum of too much": {func(c *trading.Config) { c.BuyPct, c.Costs.Minimum = 0.02, 25 }, []row{{b, 1000, 0, 0, 1}}},
		// A fill at 10.1 for 200 without fees; half of it at 9.9.
		"spread": {func(c *trading.Config) { c.FeeRate, c.Costs.Slippage.BP = 0, 100 }, []row{{b, 800, 200 / 10.1, 0, 0}, {s, 800 + 100/10.1*9.9, 100 / 10.1, 0, 0}}},
		// 20 shares are a fifth of the volume: 2 % worse; half of them are 100/10.2 shares.
		"linear": {func(c *trading.Config) {
			c.FeeRate, c.Costs.Slippage = 0, trading.Slippage{Impact: trading.Linear, Coefficient: 0.1}
		}, []row{{b, 800, 200 / 10.2, 0, 0}, {s, 800 + 100/10.2*10*(1-0.1*100/10.2/100), 100 / 10.2, 0, 0}}},
		// A commission of 1 %, a duty of 1 % on sales, 10 shares of 200/1.01.
		"a duty": {func(c *trading.Config) {
			c.FeeRate, c.Costs.Taxes = 0.01, []trading.Tax{{Name: "duty", Side: "sell", Rate: 0.01}}
		}, []row{{b, 800, 20 / 1.01, 200 - 200/1.01, 0}, {s, 800 + 100/1.01*0.98, 10 / 1.01, 100 / 1.01 * 0.02, 0}}},
	}
	for name, c := range sorted.All(cases) {
		prices := slices.Repeat([][]float64{{10}}, 9)
		m := table(prices, prices)
		m.Volume = slices.Repeat([]float64{100}, 9)
		g := start(t, open(t, m, config(func(k *trading.Config) { k.InitialCash = 1000; c.change(k) })), rng.New(1))
		for i, r := range c.rows {
			g.play(r.order)
			if !near(g.Cash(), r.cash, 1e-9) || !near(g.Positions()[0], r.shares, 1e-9) || !near(g.ts.Info[trading.InfoFees], r.fee, 1e-9) || g.ts.Info[trading.InfoSkipped] != r.skip {
				t.Errorf("%s, step %d: cash %g, %g shares, fee %g, %g skipped; expected %+v", name, i, g.Cash(), g.Positions()[0], g.ts.Info[trading.InfoFees], g.ts.Info[trading.InfoSkipped], r)
			}
		}
	}
}

// TestNothingIsAllocated steps environments of every execution, at adjusted prices and at raw ones.
func TestNothingIsAllocated(t *testing.T) {
	m := quoted(randomMarket(3, 300, 6, 1), 3)
	n := 0
	for name, change := range sorted.All(executions) {
		for _, prices := range []string{trading.Adjusted, trading.Raw} {
			g := start(t, open(t, m, config(func(c *trading.Config) {
				if change != nil {
					change(c)
				}
				c.Account = trading.AccountRules{Prices: prices, Settlement: 1}
			})), rng.New(1))
			s := rng.New(9).Stream()
			n++
			if allocs := testing.AllocsPerRun(250, func() { g.play(g.random(s)...) }); allocs != 0 {
				t.Errorf("%s, %s: %g allocations per step", name, prices, allocs)
			}
		}
	}
	if n != 2*len(executions) {
		t.Errorf("%d environments", n)
	}
}

// TestCostsText says every part of the costs, and of the simplest what it always said.
func TestCostsText(t *testing.T) {
	c := config(nil)
	if got, want := c.CostsText(), "Fees are 0.05 % of every trade's amount; there is no slippage, no spread and no market impact, and cash earns nothing."; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	c.Costs = trading.Costs{Minimum: 5, Participation: 0.1, Slippage: trading.Slippage{BP: 2, Impact: trading.SquareRoot, Coefficient: 0.1}, Taxes: []trading.Tax{{Name: "stamp_duty", From: date(t, "2023-08-28"), Side: "sell", Rate: 0.0005}, {Side: "both", Rate: 0.00001}}}
	if got, want := c.CostsText(), "Trades cost a commission of 0.05 % of the amount, at least 5, stamp_duty of 0.05 % on a sale from 2023-08-28, 0.001 %; fills are 2 basis points worse than the price of their bar and 0.1 times the square root of the order's part of its volume; what is more than 10 % of a bar's volume is cancelled; cash earns nothing."; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	// Another fee rate is instead of all that, but for what a bar allows.
	s, err := trading.NewSource(randomMarket(1, 40, 3, 1), c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.WithFee(0.001)
	if k := v.Config(); err != nil || k.FeeRate != 0.001 || k.Costs.Participation != 0.1 || k.Costs.Minimum != 0 || k.Costs.Taxes != nil || k.Costs.Slippage != (trading.Slippage{}) {
		t.Errorf("%+v: %v", k, err)
	}
}

// TestCostsInDocuments reads costs as a document has them, and refuses what makes no sense by its
// key.
func TestCostsInDocuments(t *testing.T) {
	decode := func(text string) (c trading.Config, err error) {
		doc, err := configs.Parse("a.yaml", []byte(text))
		if err != nil {
			return c, err
		}
		c = trading.Defaults()
		return c, doc.Decode(&c)
	}
	c, err := decode("costs: {minimum: 5, taxes: [{name: stamp_duty, from: 2023-08-28, side: sell, rate: 0.0005}], slippage: {bp: 1, impact: sqrt, coefficient: 0.1}, participation: 0.1}\naccount: {prices: raw, settlement: 1}\n")
	if err != nil || len(c.Costs.Taxes) != 1 || c.Costs.Taxes[0].From.String() != "2023-08-28" || c.Costs.Slippage.Impact != trading.SquareRoot || c.Account.Settlement != 1 {
		t.Errorf("%+v: %v", c, err)
	}
	n := 0
	for text, want := range sorted.All(map[string]string{
		"costs: {minimum: -1}":                                                "costs.minimum",
		"costs: {rest: carry}":                                                "costs.rest: no bar is too small for an order",
		"costs: {rest: carry, min_volume: 5}\nslots: 3":                       "costs.rest: is for orders of assets that have their place",
		"costs: {rest: later}":                                                "costs.rest: must be one of",
		"costs: {participation: 1.5}":                                         "costs.participation: 1.5",
		"costs: {slippage: {bp: -1}}":                                         "costs.slippage.bp",
		"costs: {slippage: {impact: cubic, coefficient: 1}}":                  "costs.slippage.impact",
		"costs: {slippage: {impact: linear}}":                                 "costs.slippage.coefficient",
		"costs: {slippage: {coefficient: 0.1}}":                               "costs.slippage.coefficient",
		"costs: {slippage: {impact: depth, bp: 1}}":                           "costs.slippage.bp",
		"costs: {slippage: {impact: depth, coefficient: -1}}":                 "costs.slippage.coefficient",
		"costs: {taxes: [{side: sell, rate: 0.1}, {side: short, rate: 0.1}]}": "costs.taxes[1].side",
		"costs: {taxes: [{side: sell, rate: 2}]}":                             "costs.taxes[0].rate: 2",
		"costs: {taxes: [{side: sell, rate: 0.1}, {side: both, rate: 0.2}]}":  "costs.taxes[1]: the same name",
		"costs: {taxes: [{side: sell, rate: 0.1, from: never}]}":              "from",
		"account: {settlement: 2}":                                            "account.settlement: 2",
		"account: {prices: real}":                                             "account.prices",
	}) {
		n++
		if _, err := decode(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", text, err, want)
		}
	}
	if n != 17 {
		t.Errorf("%d cases", n)
	}
	m := randomMarket(1, 40, 3, 1)
	m.Volume = nil
	if _, err := trading.NewSource(m, config(func(c *trading.Config) { c.Costs.Participation = 0.1 })); err == nil || !strings.Contains(err.Error(), "costs.participation, costs.min_volume and costs.slippage.impact need the volume") {
		t.Errorf("error %v", err)
	}
	m.Depth = nil
	if _, err := trading.NewSource(m, config(func(c *trading.Config) { c.Costs.Slippage.Impact = trading.OfDepth })); err == nil || !strings.Contains(err.Error(), "depth needs the spread and the depth of bars") {
		t.Errorf("error %v", err)
	}
}
