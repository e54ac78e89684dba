package live_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// decide makes orders of every bit of an observation, so that one that differs anywhere is traded
// differently.
func decide(observed []*tensor.Tensor, orders []int64) {
	h := fnv.New64a()
	for _, x := range observed {
		h.Write(x.Bytes())
	}
	sum := h.Sum64()
	for i := range orders {
		orders[i] = int64(sum >> (8 * i) % 3)
	}
}

// weigh makes target weights of the same.
func weigh(observed []*tensor.Tensor, weights []float64) {
	orders := make([]int64, len(weights))
	decide(observed, orders)
	sum := 1.0
	for i, o := range orders {
		weights[i] = float64(o)
		sum += weights[i]
	}
	weights[len(weights)-1]++
	for i := range weights {
		weights[i] /= sum
	}
}

// rules are ways to trade.
func rules(window int) []trading.Config {
	var list []trading.Config
	for _, fill := range []string{trading.NextOpen, trading.NextClose, trading.SameClose} {
		for _, split := range []string{trading.Fair, trading.Owner} {
			for _, scale := range []string{trading.Weight, trading.Raw} {
				c := trading.Defaults()
				c.Window, c.State.Scale = window, scale
				c.Execution = trading.Execution{Fill: fill, CashSplit: split, Lot: float64(5 * (len(list) % 2))}
				list = append(list, c)
			}
		}
	}
	return list
}

// replay trades a range of a set twice, in the environment and from bars as they arrive, and
// compares every input of the agent, every fill and every value. It returns the number of
// decisions, of fills and of bars at which limits on risk have changed what was traded.
func replay(t *testing.T, set *prepared.Set, f *live.Feed, list []arrival, r trading.Range, c trading.Config) (decisions, fills, bound int) {
	t.Helper()
	source, err := trading.NewSource(feed.FromSet(set).Market, c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := source.Env(r)
	if err != nil {
		t.Fatal(err)
	}
	ts, action := envs.NewTimeStep(e.Spec()), tensor.New(tensor.Int64, set.Manifest.N)
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	p, err := live.NewPortfolio(c, f)
	if err != nil {
		t.Fatal(err)
	}
	orders := make([]int64, set.Manifest.N)
	wanted, weights := make([]float64, len(orders)+1), make([]float64, len(orders)+1)
	for i, a := range list {
		if err := f.Append(a.at, a.rows); err != nil {
			t.Fatal(err)
		}
		p.Update()
		if f.Rows()-1 < e.Bar() {
			continue
		}
		where := fmt.Sprintf("%+v, row %d", c.Execution, f.Rows()-1)
		// Sides are equal before the decision: also what was filled at this bar.
		if p.Value() != e.Value() || p.Account().Cash() != e.Cash() || !slices.Equal(p.Account().Positions(), e.Positions()) || decisions > 0 && !slices.Equal(p.Account().Fills(), e.Fills()) {
			t.Fatalf("%s: value %v, cash %v, fills %v, expected %v, %v, %v", where, p.Value(), p.Account().Cash(), p.Account().Fills(), e.Value(), e.Cash(), e.Fills())
		}
		if p.Account().Bound() != e.Bound() && p.Account().Bound() != 0 { // Nothing is bound after a restart.
			t.Fatalf("%s: bound %v, expected %v", where, p.Account().Bound().Names(), e.Bound().Names())
		}
		if m := e.Risk(); m != nil {
			loss, known := m.CVaR()
			if got, _ := p.Account().Risk().CVaR(); m.Drawdown() != p.Account().Risk().Drawdown() || got != loss {
				t.Fatalf("%s: a drawdown of %v and a CVaR of %v, expected %v and %v", where, p.Account().Risk().Drawdown(), got, m.Drawdown(), loss)
			}
			if known && e.Bound() != 0 {
				bound++
			}
		}
		fills += len(e.Fills())
		have, wants := []*tensor.Tensor{f.Scaled(), p.Position(), p.Cash(), p.Mask()}, append(slices.Clone(ts.Obs[:3]), ts.Mask)
		if c.Actions == trading.Weights {
			have[3], wants[3] = p.Tradable(), ts.Obs[3]
		}
		for k, want := range wants {
			if string(have[k].Bytes()) != string(want.Bytes()) || !slices.Equal(have[k].Shape(), want.Shape()) {
				t.Fatalf("%s: input %d differs", where, k)
			}
		}
		if ts.Type == envs.Last {
			break
		}
		decide(ts.Obs[:3], action.Int64s())
		decide(have[:3], orders)
		weigh(wants, wanted)
		weigh(have, weights)
		if i%5 == 0 {
			// A restart between decisions changes nothing.
			state, err := p.SaveState()
			if err == nil {
				err = p.Hold(make([]float64, len(orders)), 1)
			}
			if err == nil {
				err = p.LoadState(state)
			}
			if err != nil {
				t.Fatal(err)
			}
			if k := len(wants) - 1; string(have[k].Bytes()) != string(wants[k].Bytes()) {
				t.Fatalf("%s: after a restart input %d differs", where, k)
			}
		}
		if c.Actions == trading.Weights {
			err = p.Rebalance(weights)
		} else {
			err = p.Decide(orders)
		}
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 1 {
			state, err := p.SaveState()
			if err != nil {
				t.Fatal(err)
			}
			fills := slices.Clone(p.Account().Fills())
			q, err := live.NewPortfolio(c, f)
			if err == nil {
				err = q.LoadState(state)
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.LookAhead() || len(fills) == 0 {
				p = q
			}
		}
		if c.Actions == trading.Weights {
			err = e.Rebalance(wanted, ts)
		} else {
			err = e.Step(action, ts)
		}
		if err != nil {
			t.Fatal(err)
		}
		decisions++
	}
	return decisions, fills, bound
}

func TestReplayEqualsTheEnvironment(t *testing.T) {
	longtest.Slow(t)
	decisions, fills, bound := 0, 0, 0
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		list := arrivals(d)
		for i, rule := range rules(set.Manifest.W) {
			if i%3 != int(seed)%10 {
				continue // The three markets of a variant share the rules.
			}
			if v.quoted && i%2 == 0 {
				rule.Account.Prices = trading.Raw
			}
			if v.quoted && i%4 < 2 || v.zone != "" {
				rule.Account.Settlement = 1
				rule.Costs = trading.Costs{Minimum: 0.5, Participation: 0.001, Slippage: trading.Slippage{BP: 10, Impact: trading.SquareRoot, Coefficient: 0.5}, Taxes: []trading.Tax{{Side: "sell", Rate: 0.001}}}
			}
			if v.quoted && i%4 == 2 {
				rule.Costs.Slippage = trading.Slippage{Impact: trading.OfDepth, Coefficient: 4}
			}
			if i%4 == 1 {
				rule.Account.Delisting = &trading.Delisting{Recovery: 0.7}
			}
			carries := rule.Costs.UsesVolume() && i%2 == 1
			for k, actions := range []string{trading.Orders, trading.Weights} {
				if rule.Actions, rule.Risk = actions, (risk.Config{}); (i/3+k)%2 == 0 {
					rule.Risk = risk.Config{
						Drawdown: risk.Drawdown{Limit: 0.05, Window: 10, Then: []string{risk.Hold, risk.Flatten}[i%2]}, CVaR: risk.CVaR{Limit: 0.01, Level: 0.8, Window: 20},
						MaxExposure: 0.8, MaxWeight: 0.3, MaxTurnover: 0.5,
					}
				}
				if rule.Costs.Rest = ""; carries && actions == trading.Orders {
					rule.Costs.Rest = trading.Carry
				}
				n, k, b := replay(t, set, mustFeed(t, set), list, trading.Range{First: 0, Last: set.Manifest.T - 1}, rule)
				decisions, fills, bound = decisions+n, fills+k, bound+b
			}
		}
	})
	if decisions < 24_000 || fills < 36_000 || bound < 1000 {
		t.Errorf("%d decisions, %d fills, limits on risk bound %d times", decisions, fills, bound)
	}
}

func TestReplayEqualsTheDemo(t *testing.T) {
	c := demo(t)
	d, err := prepared.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	set := mustBuild(t, c, d)
	h, err := prepared.NewHistory(c, d)
	if err != nil {
		t.Fatal(err)
	}
	span := set.Manifest.Split.Test
	// A feed that begins before the test range replays it from there.
	begin := h.First + span.Lo - set.Manifest.W
	f := mustFeed(t, set)
	if err := f.Prime(h.Panel, 0, begin); err != nil {
		t.Fatal(err)
	}
	var list []arrival
	for at := begin; at < len(h.Panel.Times); at++ {
		rows := make([]live.Row, len(h.Panel.Symbols))
		live.RowsAt(h.Panel, at, rows)
		list = append(list, arrival{h.Panel.Times[at], rows})
	}
	rule := trading.Defaults()
	if n, fills, _ := replay(t, set, f, list, trading.Range{First: span.Lo, Last: span.Hi - 1}, rule); n != span.Len()-1 || n < 400 || fills < 400 {
		t.Errorf("%d decisions in %d bars, %d fills", n, span.Len(), fills)
	}
}

// QuotesFor asks for what accounts trade by and for nothing else.
func TestQuotesFor(t *testing.T) {
	adjusted := []bars.QuoteColumn{bars.RawOpen, bars.RawHigh, bars.RawLow, bars.RawClose, bars.RawVolume, bars.Factor}
	limits := append(slices.Clone(adjusted), bars.PrevClose, bars.LimitUp, bars.LimitDown, bars.Amount)
	raw := func(c *trading.Config) { c.Account.Prices = trading.Raw }
	spread := func(c *trading.Config) { c.Costs.Slippage.BP = 1 }
	for _, c := range []struct {
		change func(*trading.Config)
		have   []bars.QuoteColumn
		want   string
	}{
		{nil, nil, ""},
		{raw, nil, ""},
		{nil, adjusted, ""},
		{raw, adjusted, "raw_open raw_close factor"},
		{nil, limits, "raw_open raw_close limit_up limit_down"},
		{spread, limits, "raw_open raw_close factor limit_up limit_down"},
		{func(c *trading.Config) { c.Costs.Participation = 0.1 }, adjusted, "raw_open raw_close raw_volume factor"},
		{raw, limits[6:], "limit_up limit_down"},
		{nil, append(slices.Clone(adjusted), bars.Spread, bars.Depth), ""},
		{func(c *trading.Config) { c.Costs.Slippage.Impact = trading.OfDepth }, append(slices.Clone(adjusted), bars.Spread, bars.Depth), "raw_open raw_close factor spread depth"},
	} {
		k := trading.Defaults()
		if c.change != nil {
			c.change(&k)
		}
		if got := strings.Join(live.QuotesFor(k, c.have, "factor"), " "); got != c.want {
			t.Errorf("%q, expected %q", got, c.want)
		}
	}
	if got := strings.Join(live.QuotesFor(trading.Defaults(), append(adjusted, bars.Dividend, bars.Bonus), bars.ByActions), " "); got != "dividend bonus" {
		t.Errorf("%q", got)
	}
}

func TestPortfolioRefuses(t *testing.T) {
	c, d := market(t, 3, variants[1])
	set := mustBuild(t, c, d)
	f := mustFeed(t, set)
	rule := trading.Defaults()
	if _, err := live.NewPortfolio(rule, f); err == nil || !strings.Contains(err.Error(), "windows of 20 bars, the feed has 7") {
		t.Errorf("error %v", err)
	}
	rule.Window, rule.FeeRate = 7, -1
	if _, err := live.NewPortfolio(rule, f); err == nil || !strings.Contains(err.Error(), "fee_rate") {
		t.Errorf("error %v", err)
	}
	rule.FeeRate = 0
	p, err := live.NewPortfolio(rule, f)
	if err != nil {
		t.Fatal(err)
	}
	hold := slices.Repeat([]int64{trading.Hold}, 6)
	early := p.Decide(hold)
	a := arrivals(d)[0]
	if err := f.Append(a.at, a.rows); err != nil {
		t.Fatal(err)
	}
	p.Update()
	before, err := p.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for want, err := range sorted.All(map[string]error{
		"there is no bar yet":                 early,
		"5 orders for 6 assets":               p.Decide(hold[:5]),
		"the order 3 for A":                   p.Decide([]int64{3, 0, 0, 0, 0, 0}),
		"the order -1 for B":                  p.Decide([]int64{0, -1, 0, 0, 0, 0}),
		"the position -1 in asset 2":          p.Hold([]float64{0, 0, -1, 0, 0, 0}, 1),
		"the cash -1":                         p.Hold(make([]float64, 6), -1),
		"1 positions for 6 assets":            p.Hold([]float64{1}, 1),
		"unexpected end":                      p.LoadState([]byte(`{"cash":1`)),
		"the orders [] decided on 0 assets":   p.LoadState([]byte(`{"cash":1}`)),
		"the orders [0 0 0 0 0 9] decided on": p.LoadState([]byte(`{"cash":1,"positions":[0,0,0,0,0,0],"orders":[0,0,0,0,0,9],"decided":[true,true,true,true,true,true]}`)),
		"portfolio: hold: 0 positions":        p.LoadState([]byte(`{"cash":1,"orders":[0,0,0,0,0,0],"decided":[true,true,true,true,true,true]}`)),
	}) {
		n++
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	after, err := p.SaveState()
	if err != nil || string(after) != string(before) {
		t.Errorf("error %v, %s became %s", err, before, after)
	}
	if n != 11 {
		t.Errorf("%d cases", n)
	}
}

func TestPortfolioAllocatesNothing(t *testing.T) {
	c, d := market(t, 4, variants[1])
	set := mustBuild(t, c, d)
	f := mustFeed(t, set)
	rule := trading.Defaults()
	rule.Window = set.Manifest.W
	p, err := live.NewPortfolio(rule, f)
	if err != nil {
		t.Fatal(err)
	}
	list, i, orders := arrivals(d), 0, slices.Repeat([]int64{trading.Buy}, 6)
	if n := testing.AllocsPerRun(len(list)-10, func() {
		if err := f.Append(list[i].at, list[i].rows); err != nil {
			t.Fatal(err)
		}
		p.Update()
		if err := p.Decide(orders); err != nil {
			t.Fatal(err)
		}
		i++
	}); n != 0 {
		t.Errorf("%v allocations per bar", n)
	}
	if len(p.Account().Fills()) == 0 && p.Account().Cash() > 9000 {
		t.Error("nothing was bought")
	}
}
