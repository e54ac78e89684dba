package dqn

import (
	"testing"
	"time"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/models/encoder/kinds"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

var now = time.Now

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

// agent makes an agent for environments and a run of a number of env steps.
func agent(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int, total int64) *Agent {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.New(t.Context(), agents.Setup{Spec: v.Spec(), Envs: v.Len(), TotalEnvSteps: total, Engine: e, Threads: threads, Encoders: kinds.All(), Key: rng.New(5)})
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

// run drives an agent as a program does.
type run struct {
	a       *Agent
	v       vector.Env
	actor   agents.Actor
	round   int
	returns []float64
	each    func(*vector.Batch) error
}

func newRun(t testing.TB, a *Agent, v vector.Env) *run {
	r := &run{a: a, v: v, actor: actorOf(t, a, agents.Explore, v.Len())}
	r.each = func(b *vector.Batch) error {
		for _, e := range b.Ended {
			r.returns = append(r.returns, e.Return)
		}
		return nil
	}
	return r
}

// collect takes a number of rounds.
func (r *run) collect(t testing.TB, n int) error {
	err := agents.Collect(t.Context(), r.v, r.actor, r.a.Recorder(), rng.New(7), r.round, n, r.each)
	r.round += n
	return err
}

// update collects until the learner is ready and lets it take a step.
func (r *run) update(t testing.TB) agents.Metrics {
	t.Helper()
	for !r.a.learner.Ready() {
		if err := r.collect(t, 1); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.a.Learner().Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.actor.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// toy answers at random: observations of every kind, masks, rewards, and whether an episode goes on, terminates or is cut off.
type toy struct {
	spec   envs.Spec
	random rng.Stream
	// shown is the stream before the last observation was drawn.
	shown rng.Stream
}

func toySpec(t testing.TB) envs.Spec {
	table := tensor.New(tensor.Float32, 40, 2)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 8)
	if err != nil {
		t.Fatal(err)
	}
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "window", Space: envs.Unbounded(8, 2), Window: w}, {Name: "kind", Space: envs.Discrete{N: 3}}},
		Action: envs.Discrete{N: 4}, Masked: true, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

func toys(t testing.TB, n int) vector.Env {
	spec := toySpec(t)
	return vectorOf(t, n, func(int) (envs.Env, error) { return &toy{spec: spec}, nil })
}

func (e *toy) Spec() envs.Spec { return e.spec }
func (e *toy) Close() error    { return nil }

func (e *toy) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *toy) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	reward, end := e.random.Normal()+float64(action.Int64s()[0]), e.random.IntN(8)
	e.observe(ts)
	switch end {
	case 0:
		ts.Terminate(reward)
	case 1:
		ts.Truncate(reward)
	default:
		ts.Continue(reward)
	}
	return nil
}

func (e *toy) SaveState() ([]byte, error) { return e.shown.MarshalBinary() }

func (e *toy) LoadState(state []byte, ts *envs.TimeStep) error {
	if err := e.random.UnmarshalBinary(state); err != nil {
		return err
	}
	e.observe(ts)
	ts.Continue(0)
	return nil
}

func (e *toy) observe(ts *envs.TimeStep) {
	e.shown = e.random
	for i, f := range e.spec.Observation {
		switch f.Name {
		case "x":
			e.random.FillNormal32(ts.Obs[i].Float32s(), 0, 1)
		case "window":
			ts.SetWindow(i, f.Window, 7+e.random.IntN(33))
		case "kind":
			ts.Obs[i].Int64s()[0] = int64(e.random.IntN(3))
		}
	}
	mask := ts.Mask.Bools()
	for i := range mask {
		mask[i] = e.random.IntN(2) == 0
	}
	mask[e.random.IntN(len(mask))] = true
}
