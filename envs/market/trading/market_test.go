package trading_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var day0 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// randomMarket has prices that wander around 50, so that portfolios neither vanish nor explode.
// Asset 1 is listed at bar 10, NaN before; asset 2 ceases to trade for good at four fifths; others
// pause now and then.
func randomMarket(seed uint64, bars, assets, features int) *trading.Market {
	s := rng.New(seed).Split("market").Stream()
	m := &trading.Market{
		Dates: make([]time.Time, bars), Assets: make([]string, assets), Features: make([]string, features),
		X: make([]float32, bars*assets*features), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets),
	}
	for i := range m.Assets {
		m.Assets[i] = string(rune('A' + i))
	}
	for i := range m.Features {
		m.Features[i] = string(rune('a' + i))
	}
	volumes := rng.New(seed).Split("volumes").Stream()
	for range bars * assets {
		m.Volume = append(m.Volume, 500*volumes.Float64())
	}
	// Now and then the book is not known.
	books := rng.New(seed).Split("books").Stream()
	for i := range bars * assets {
		m.Spread, m.Depth = append(m.Spread, 0.1*books.Float64()), append(m.Depth, 200*books.Float64())
		switch {
		case books.Bernoulli(0.02):
			m.Spread[i] = math.NaN()
		case books.Bernoulli(0.02):
			m.Depth[i] = 0
		}
	}
	for i := range m.X {
		m.X[i] = float32(s.Normal())
	}
	price := make([]float64, assets)
	for i := range price {
		price[i] = 20 + 60*s.Float64()
	}
	for b := range bars {
		m.Dates[b] = day0.AddDate(0, 0, b)
		for a := range assets {
			i := b*assets + a
			move := func() float64 {
				price[a] *= math.Exp(0.02*s.Normal() - 0.02*math.Log(price[a]/50))
				return price[a]
			}
			m.Open[i], m.Close[i], m.Tradable[i] = move(), move(), trading.Both
			switch {
			case a == 1 && b < 10:
				m.Open[i], m.Close[i], m.Tradable[i] = math.NaN(), math.NaN(), 0
			case a == 2 && b > bars*4/5 || b > 20 && s.Bernoulli(0.05):
				m.Open[i], m.Close[i], m.Tradable[i] = m.Close[i-assets], m.Close[i-assets], 0
				price[a] = m.Close[i]
			}
		}
	}
	return m
}

// table returns a market of given prices, all tradable, with one feature that is 0.
func table(open, close [][]float64) *trading.Market {
	n := len(open[0])
	m := &trading.Market{Assets: []string{"A", "B", "C", "D"}[:n], Features: []string{"zero"}, X: make([]float32, len(open)*n), Tradable: slices.Repeat([]trading.Sides{trading.Both}, len(open)*n)}
	for b := range open {
		m.Dates = append(m.Dates, day0.AddDate(0, 0, b))
		m.Open, m.Close = append(m.Open, open[b]...), append(m.Close, close[b]...)
	}
	return m
}

// config returns the defaults with a window of one bar, changed.
func config(change func(*trading.Config)) trading.Config {
	c := trading.Defaults()
	c.Window = 1
	if change != nil {
		change(&c)
	}
	return c
}

func open(t testing.TB, m *trading.Market, c trading.Config) *trading.Env {
	t.Helper()
	s, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Env(trading.Range{First: 0, Last: m.Len() - 1})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// game is an environment with its buffers.
type game struct {
	*trading.Env
	t      testing.TB
	ts     *envs.TimeStep
	action *tensor.Tensor
}

func start(t testing.TB, e *trading.Env, key rng.Key) *game {
	t.Helper()
	g := &game{Env: e, t: t, ts: envs.NewTimeStep(e.Spec()), action: tensor.New(tensor.Int64, len(e.Positions()))}
	if err := e.Reset(key, g.ts); err != nil {
		t.Fatal(err)
	}
	return g
}

// play takes one step.
func (g *game) play(orders ...int64) {
	g.t.Helper()
	copy(g.action.Int64s(), orders)
	if err := g.Step(g.action, g.ts); err != nil {
		g.t.Fatal(err)
	}
}

// random fills the action with orders, valid or not.
func (g *game) random(s *rng.Stream) []int64 {
	a := g.action.Int64s()
	for i := range a {
		a[i] = int64(s.IntN(3))
	}
	return a
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }
