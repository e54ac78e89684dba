package agenttest

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// splitFLOPs is the Setup.SplitFLOPs of the agents of a test.
var splitFLOPs float64

// SplitSmall lets the agents of a test split small work over cores.
func SplitSmall(t testing.TB) {
	splitFLOPs = 1
	t.Cleanup(func() { splitFLOPs = 0 })
}

// Closing closes at the end of a test.
func Closing(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Vector steps n environments, which have been reset.
func Vector[E envs.Env](t testing.TB, n int, one func() (E, error)) *vector.Local {
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
	Closing(t, v)
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

// TinyEncoder is a small encoder of windows, without dropout or with some.
func TinyEncoder(t testing.TB, dropout float64) configs.Kinded {
	t.Helper()
	c := encoder.TimeCNNDefaults()
	c.DModel, c.NLayers, c.Dropout = 8, 1, dropout
	k, err := configs.NewKinded("timecnn", c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Agent makes an agent for environments. changes edit its setup.
func Agent(t testing.TB, m agents.Maker, v vector.Env, e engine.Compiler, threads int, changes ...func(*agents.Setup)) agents.Agent {
	t.Helper()
	s := agents.Setup{Spec: v.Spec(), Envs: v.Len(), Engine: e, Threads: threads, SplitFLOPs: splitFLOPs, Encoders: encoder.Kinds(), Key: rng.New(5)}
	for _, change := range changes {
		change(&s)
	}
	a, err := m.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, a)
	return a
}

// Actor makes an actor of an agent.
func Actor(t testing.TB, a agents.Agent, m agents.Mode, n int) agents.Actor {
	t.Helper()
	x, err := a.NewActor(m, n)
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, x)
	return x
}

// Training drives an agent as a program does.
type Training struct {
	Agent agents.Agent
	Env   vector.Env
	Actor agents.Actor
	// Done is the number of rounds, Last what the newest learner step returned.
	Done int
	Last agents.Metrics
}

// NewTraining makes the actor of a run.
func NewTraining(t testing.TB, a agents.Agent, v vector.Env) *Training {
	return &Training{Agent: a, Env: v, Actor: Actor(t, a, agents.Explore, v.Len())}
}

// Round takes one round, and does not learn.
func (r *Training) Round(t testing.TB) {
	t.Helper()
	if err := agents.Collect(t.Context(), r.Env, r.Actor, r.Agent.Recorder(), rng.New(7), r.Done, 1, nil); err != nil {
		t.Fatal(err)
	}
	r.Done++
}

// Learn takes a learner step.
func (r *Training) Learn(t testing.TB) agents.Metrics {
	t.Helper()
	var err error
	if r.Last, err = r.Agent.Learner().Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Actor.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.Last
}

// Run takes a number of rounds, and learns whenever the learner is ready.
func (r *Training) Run(t testing.TB, rounds int) {
	t.Helper()
	for range rounds {
		if r.Round(t); r.Agent.Learner().Ready() {
			r.Learn(t)
		}
	}
}

// Rollout takes rounds until the learner is ready.
func (r *Training) Rollout(t testing.TB) {
	t.Helper()
	for !r.Agent.Learner().Ready() {
		r.Round(t)
	}
}

// Update takes rounds until the learner is ready, and a learner step.
func (r *Training) Update(t testing.TB) agents.Metrics {
	t.Helper()
	r.Rollout(t)
	return r.Learn(t)
}

// Return is the mean return of some episodes of the best actions, in environments that have been reset.
func Return(t testing.TB, a agents.Agent, v vector.Env, episodes int) float64 {
	t.Helper()
	if err := v.Reset(rng.New(99)); err != nil {
		t.Fatal(err)
	}
	x, sum, n := Actor(t, a, agents.Greedy, v.Len()), 0.0, 0
	for round := 0; n < episodes; round++ {
		if err := agents.Collect(t.Context(), v, x, nil, rng.New(8), round, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.Batch().Ended {
			sum, n = sum+e.Return, n+1
		}
	}
	return sum / float64(n)
}

// Idle takes a number of rounds in which no environment takes a step, as a trainer of a data set
// does, and learns whenever the learner is ready.
func (r *Training) Idle(t testing.TB, rounds int) {
	t.Helper()
	for range rounds {
		rec := r.Agent.Recorder()
		if err := rec.Begin(r.Env.Batch(), nil); err != nil {
			t.Fatal(err)
		}
		if err := rec.End(r.Env.Batch()); err != nil {
			t.Fatal(err)
		}
		if r.Done++; r.Agent.Learner().Ready() {
			r.Learn(t)
		}
	}
}
