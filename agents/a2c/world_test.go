package a2c

import (
	"context"
	"testing"
	"time"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/corridor"
	"onnxrl/envs/market/trading"
	"onnxrl/envs/vector"
	"onnxrl/models/encoder/kinds"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/rng"
)

// closing closes at the end of a test.
func closing(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// vectorOf steps n environments, which have been reset.
func vectorOf(t testing.TB, n int, one func(i int) (envs.Env, error)) vector.Env {
	t.Helper()
	list := make([]envs.Env, n)
	for i := range list {
		e, err := one(i)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = e
	}
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, v)
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

func corridors(t testing.TB, n int) vector.Env {
	return vectorOf(t, n, func(int) (envs.Env, error) { return corridor.New(corridor.Defaults()) })
}

// agent makes an agent for environments.
func agent(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int) *Agent {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.New(t.Context(), agents.Setup{Spec: v.Spec(), Envs: v.Len(), Engine: e, Threads: threads, Encoders: kinds.All(), Key: rng.New(5)})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, a)
	return a.(*Agent)
}

func actorOf(t testing.TB, a *Agent, m agents.Mode, n int) agents.Actor {
	t.Helper()
	x, err := a.NewActor(m, n)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	return x
}

// training drives an agent as a program does.
type training struct {
	a     *Agent
	v     vector.Env
	actor agents.Actor
	round int
}

func newTrainingRun(t testing.TB, a *Agent, v vector.Env) *training {
	return &training{a: a, v: v, actor: actorOf(t, a, agents.Explore, v.Len())}
}

// update collects one rollout and learns from it.
func (r *training) update(ctx context.Context) (agents.Metrics, error) {
	n := r.a.learner.rec.rounds
	if err := agents.Collect(ctx, r.v, r.actor, r.a.Recorder(), rng.New(7), r.round, n, nil); err != nil {
		return nil, err
	}
	r.round += n
	m, err := r.a.Learner().Step(ctx)
	if err != nil {
		return nil, err
	}
	return m, r.actor.Sync(ctx)
}

// market returns bars of random prices and features in which feature 0 of an asset tells its next move by its sign, when signal is set.
func market(bars, assets, features int, signal bool) *trading.Market {
	s := rng.New(3).Stream()
	m := &trading.Market{
		Assets: make([]string, assets), Features: make([]string, features), Dates: make([]time.Time, bars),
		X: make([]float32, bars*assets*features), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]bool, bars*assets),
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
			m.Tradable[i] = a != 1 || b >= bars/3
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
	return vectorOf(t, n, func(int) (envs.Env, error) { return s.Env(trading.Range{First: 0, Last: m.Len() - 1}) })
}
