package backtest_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

var (
	ctx  = context.Background()
	key  = rng.New(1)
	day0 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
)

// randomMarket returns a random walk. The second asset is listed at bar 30, and the third is now
// and then suspended.
func randomMarket(seed uint64, bars, assets int) *trading.Market {
	s := rng.New(seed).Split("market").Stream()
	m := &trading.Market{
		Features: []string{"noise"}, X: make([]float32, bars*assets),
		Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets),
	}
	volumes := rng.New(seed).Split("volumes").Stream()
	for range bars * assets {
		m.Volume = append(m.Volume, 500*volumes.Float64())
	}
	price := make([]float64, assets)
	for i := range price {
		m.Assets = append(m.Assets, string(rune('A'+i)))
		price[i] = 20 + 60*s.Float64()
	}
	for b := range bars {
		m.Dates = append(m.Dates, day0.AddDate(0, 0, b))
		for a := range assets {
			i := b*assets + a
			move := func() float64 {
				price[a] *= math.Exp(0.02 * s.Normal())
				return price[a]
			}
			m.X[i], m.Open[i], m.Close[i], m.Tradable[i] = float32(s.Normal()), move(), move(), trading.Both
			switch {
			case a == 1 && b < 30:
				m.Open[i], m.Close[i], m.Tradable[i] = math.NaN(), math.NaN(), 0
			case a == 2 && b > 0 && s.Bernoulli(0.1):
				m.Open[i], m.Close[i], m.Tradable[i] = m.Close[i-assets], m.Close[i-assets], 0
				price[a] = m.Close[i]
			}
		}
	}
	return m
}

func source(t testing.TB, m *trading.Market, change func(*trading.Config)) *trading.Source {
	t.Helper()
	c := trading.Defaults()
	c.Window = 5
	if change != nil {
		change(&c)
	}
	s, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// executions are the ways of trading that every property holds for.
var executions = map[string]func(*trading.Config){
	"next open":  nil,
	"next close": func(c *trading.Config) { c.Execution.Fill = trading.NextClose },
	"same close": func(c *trading.Config) { c.Execution.Fill = trading.SameClose },
	"owner":      func(c *trading.Config) { c.Execution.CashSplit = trading.Owner },
	"lots":       func(c *trading.Config) { c.Execution.Lot = 10 },
	"log":        func(c *trading.Config) { c.Reward = trading.Log },
	"costs": func(c *trading.Config) {
		c.Account.Settlement = 1
		c.Costs = trading.Costs{Minimum: 1, Participation: 0.1, Slippage: trading.Slippage{BP: 5, Impact: trading.SquareRoot, Coefficient: 0.1}, Taxes: []trading.Tax{{Side: "sell", Rate: 0.001}}}
	},
	"free": func(c *trading.Config) { c.FeeRate = 0 },
}

// momentum buys what the feature calls good and sells what it calls bad, but nothing whose weight
// it finds too high: it depends on features and on the portfolio.
type momentum struct{ fixed bool }

func (momentum) Name() string                      { return "momentum" }
func (momentum) Begin(*trading.Env, rng.Key) error { return nil }
func (p momentum) Decide(_ context.Context, e *trading.Env, ts *envs.TimeStep, orders []int64) error {
	n := len(orders)
	now := ts.Obs[0].Float32s()[4*n:]
	for i := range orders {
		switch {
		case !p.fixed && ts.Obs[1].Float32s()[i] > 0.4:
			orders[i] = trading.Sell
		case now[i] > 0.3:
			orders[i] = trading.Buy
		case now[i] < -0.3:
			orders[i] = trading.Sell
		}
	}
	return nil
}

type named struct {
	name string
	run  func(*trading.Source, trading.Range) (*backtest.Record, error)
}

// everything lists all baselines and policies; a new one belongs here.
func everything(t testing.TB) []named {
	var list []named
	late, err := backtest.Lagged(momentum{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []backtest.Policy{backtest.HoldCash(), backtest.Random(42), momentum{}, late} {
		list = append(list, named{p.Name(), func(s *trading.Source, r trading.Range) (*backtest.Record, error) {
			return backtest.Run(ctx, s, r, p, key)
		}})
	}
	rules := []backtest.Rule{backtest.BuyAndHold(), backtest.BuyListed()}
	for _, n := range []int{2, 10, 20, 30} {
		r, err := backtest.MovingAverage(n)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	for _, rule := range rules {
		list = append(list, named{rule.Name(), func(s *trading.Source, r trading.Range) (*backtest.Record, error) {
			return backtest.Accounts(ctx, s, r, rule)
		}})
	}
	return list
}

func must(t testing.TB) func(r *backtest.Record, err error) *backtest.Record {
	return func(r *backtest.Record, err error) *backtest.Record {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol*max(1, math.Abs(b)) }

// shuffled returns the market with the bars after cut in another order.
func shuffled(m *trading.Market, cut int, s *rng.Stream) *trading.Market {
	n, o := len(m.Assets), *m
	o.X, o.Open, o.Close, o.Tradable = slices.Clone(m.X), slices.Clone(m.Open), slices.Clone(m.Close), slices.Clone(m.Tradable)
	order := make([]int, m.Len()-cut-1)
	s.Perm(order)
	for i, j := range order {
		to, from := (cut+1+i)*n, (cut+1+j)*n
		copy(o.X[to:to+n], m.X[from:])
		copy(o.Open[to:to+n], m.Open[from:])
		copy(o.Close[to:to+n], m.Close[from:])
		copy(o.Tradable[to:to+n], m.Tradable[from:])
	}
	return &o
}
