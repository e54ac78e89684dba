package ppo

import (
	"context"
	"testing"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/classic"
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
func vectorOf[E envs.Env](t testing.TB, n int, one func() (E, error)) *vector.Local {
	t.Helper()
	list := make([]envs.Env, n)
	for i := range list {
		e, err := one()
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

func cartpoles(t testing.TB, n int) *vector.Local {
	return vectorOf(t, n, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
}

// agentOf makes an agent for environments; change, unless nil, edits its setup.
func agentOf(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int, change func(*agents.Setup)) *Agent {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	s := agents.Setup{Spec: v.Spec(), Envs: v.Len(), Engine: e, Threads: threads, Encoders: kinds.All(), Key: rng.New(5)}
	if change != nil {
		change(&s)
	}
	a, err := m.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, a)
	return a.(*Agent)
}

func actorOf(t testing.TB, a *Agent, m agents.Mode, n int) *actor {
	t.Helper()
	x, err := a.NewActor(m, n)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, x)
	return x.(*actor)
}

// training drives an agent as a program does.
type training struct {
	a     *Agent
	v     vector.Env
	actor agents.Actor
	key   rng.Key
	round int
}

func newTraining(t testing.TB, a *Agent, v vector.Env) *training {
	return &training{a: a, v: v, actor: actorOf(t, a, agents.Explore, v.Len()), key: rng.New(7)}
}

// collect records one rollout.
func (r *training) collect(ctx context.Context) error {
	n := r.a.learner.r.rounds
	first := r.round
	r.round += n
	return agents.Collect(ctx, r.v, r.actor, r.a.Recorder(), r.key, first, n, nil)
}

// update collects one rollout and learns from it.
func (r *training) update(ctx context.Context) (agents.Metrics, error) {
	if err := r.collect(ctx); err != nil {
		return nil, err
	}
	m, err := r.a.Learner().Step(ctx)
	if err != nil {
		return nil, err
	}
	return m, r.actor.Sync(ctx)
}

// updates takes several.
func (r *training) updates(t testing.TB, n int) (m agents.Metrics) {
	t.Helper()
	for range n {
		var err error
		if m, err = r.update(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// score returns the mean return of n episodes of the greedy policy in environments that begin with a key of their own.
func score(t testing.TB, a *Agent, v vector.Env, n int) float64 {
	t.Helper()
	if err := v.Reset(rng.New(1000)); err != nil {
		t.Fatal(err)
	}
	sum, ended := 0.0, 0
	x := actorOf(t, a, agents.Greedy, v.Len())
	for round := 0; ended < n; round++ {
		if err := agents.Collect(t.Context(), v, x, nil, rng.New(3), round, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.Batch().Ended {
			sum += e.Return
			ended++
		}
	}
	return sum / float64(ended)
}
