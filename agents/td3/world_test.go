package td3

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
func vectorOf(t testing.TB, n int, one func(i int) (envs.Env, error)) *vector.Local {
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

func pendulums(t testing.TB, n int) *vector.Local {
	return vectorOf(t, n, func(int) (envs.Env, error) { return classic.NewPendulum(classic.PendulumDefaults()) })
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
	last  agents.Metrics
}

func newTraining(t testing.TB, a *Agent, v vector.Env) *training {
	return &training{a: a, v: v, actor: actorOf(t, a, agents.Explore, v.Len())}
}

// run takes a number of rounds, and learns whenever the learner is ready.
func (r *training) run(ctx context.Context, rounds int, each func(*vector.Batch) error) error {
	for range rounds {
		if err := agents.Collect(ctx, r.v, r.actor, r.a.Recorder(), rng.New(7), r.round, 1, each); err != nil {
			return err
		}
		r.round++
		if !r.a.Learner().Ready() {
			continue
		}
		m, err := r.a.Learner().Step(ctx)
		if err != nil {
			return err
		}
		r.last = m
		if err := r.actor.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}
