package a2c

import (
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

func corridors(t testing.TB, n int) vector.Env {
	return agenttest.Vector(t, n, func() (envs.Env, error) { return corridor.New(corridor.Defaults()) })
}

// made is an agent with its learner.
type made struct {
	agents.Agent
	learner *learner
}

// agent makes an agent for environments. changes edit its setup.
func agent(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int, changes ...func(*agents.Setup)) *made {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a := agenttest.Agent(t, m, v, e, threads, changes...)
	return &made{a, a.Learner().(*learner)}
}

// market returns bars of random prices and features in which feature 0 of an asset tells its next
// move by its sign, when signal is set.
func market(bars, assets, features int, signal bool) *trading.Market {
	s := rng.New(3).Stream()
	m := &trading.Market{
		Assets: make([]string, assets), Features: make([]string, features), Dates: make([]time.Time, bars),
		X: make([]float32, bars*assets*features), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets),
	}
	for i := range m.Assets {
		m.Assets[i] = string(rune('A' + i))
	}
	for i := range m.Features {
		m.Features[i] = "f" + string(rune('a'+i))
	}
	s.FillNormal32(m.X, 0, 1)
	for b := range bars {
		m.Dates[b] = time.Date(2001, 1, 1+b, 0, 0, 0, 0, time.UTC)
		for a := range assets {
			i := b*assets + a
			// Asset 1 is listed late.
			m.Tradable[i] = trading.SidesAt(a != 1 || b >= bars/3, 0, 0, 0)
			m.Open[i] = 100
			if b > 0 {
				m.Open[i] = m.Close[i-assets]
			}
			move := 0.02 * float64(1-2*s.IntN(2))
			m.Close[i] = m.Open[i] * (1 + move)
			if signal && b > 0 {
				m.X[(i-assets)*features] = float32(50 * move)
			}
		}
	}
	return m
}

// markets steps n environments over one market.
func markets(t testing.TB, m *trading.Market, n int, change func(c *trading.Config)) vector.Env {
	t.Helper()
	c := trading.Defaults()
	if change != nil {
		change(&c)
	}
	s, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Vector(t, n, func() (envs.Env, error) { return s.Env(trading.Range{First: 0, Last: m.Len() - 1}) })
}
