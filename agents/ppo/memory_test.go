package ppo

import (
	"context"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// recall shows one of two signs in the first step of an episode, nothing in three more, and then
// rewards the action that repeats the sign. Whoever does not remember is right half of the time.
type recall struct {
	random rng.Stream
	sign   int
	at     int
}

const recallSteps = 4

func (e *recall) Spec() envs.Spec {
	return envs.Spec{Name: "recall", Observation: envs.Dict{{Name: "x", Space: envs.NewBox(-1, 1, 2)}}, Action: envs.Discrete{N: 2}, Reward: envs.Range{Low: 0, High: 1}, MaxSteps: recallSteps, Random: true}
}

func (e *recall) Close() error { return nil }

func (e *recall) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.sign, e.at = e.random.IntN(2), 0
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *recall) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	e.at++
	e.observe(ts)
	switch {
	case e.at < recallSteps:
		ts.Continue(0)
	case action.Int64s()[0] == int64(e.sign):
		ts.Terminate(1)
	default:
		ts.Terminate(0)
	}
	return nil
}

func (e *recall) observe(ts *envs.TimeStep) {
	x := ts.Obs[0].Float32s()
	x[0], x[1] = 0, 0
	if e.at == 0 {
		x[0] = float32(2*e.sign - 1)
	}
	if e.at == recallSteps-1 {
		x[1] = 1
	}
}

func recalls(t testing.TB, n int) *vector.Local {
	return agenttest.Vector(t, n, func() (*recall, error) { return &recall{}, nil })
}

// TestMemoryIsLearnt trains on recall with and without a memory.
func TestMemoryIsLearnt(t *testing.T) {
	c := Defaults()
	c.NSteps, c.BatchSize, c.NEpochs, c.LearningRate, c.Gamma, c.EntCoef, c.Hidden = 8, 64, 5, 5e-3, 0.9, 0.01, []int{16}
	n := 0
	for _, x := range []struct {
		name   string
		change func(c *Config)
		learns bool
	}{
		{"none", func(*Config) {}, false},
		{"lstm", func(c *Config) { c.Recurrent = Recurrent{LSTM, 12, 1, Separate, 0} }, true},
		{"lstm in pieces, critic shares", func(c *Config) { c.Recurrent = Recurrent{LSTM, 12, 1, Shared, 4} }, true},
	} {
		c := c
		x.change(&c)
		v := recalls(t, 16)
		a := agentOf(t, c, v, testengines.Fastest(t), 1)
		updates(t, agenttest.NewTraining(t, a, v), 60)
		got := agenttest.Return(t, a, recalls(t, 8), 200)
		t.Logf("%s: %.2f", x.name, got)
		if n++; x.learns != (got > 0.95) || !x.learns && got > 0.65 {
			t.Errorf("%s: right in %.2f of the episodes", x.name, got)
		}
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}

// TestMemoryIsForgotten compares the decisions of an actor in a vector, whose episodes follow each
// other, with those of a fresh actor that begins with each episode: in a beginning episode nothing
// of the one before is left.
func TestMemoryIsForgotten(t *testing.T) {
	c := lone()
	c.Recurrent = Recurrent{LSTM, 4, 1, Separate, 0}
	n, carried := 0, 0
	for _, e := range testengines.All(t) {
		v := agenttest.Toys(t, 1, spec(envs.Discrete{N: 3}, false))
		a := agentOf(t, c, v, e, 1)
		b := v.Batch()
		act := func(x agents.Actor) float32 {
			d, err := x.Act(context.Background(), rng.New(1), b)
			if err != nil {
				t.Fatal(err)
			}
			return d.Value[0]
		}
		long, fresh := agenttest.Actor(t, a, agents.Greedy, 1), agenttest.Actor(t, a, agents.Greedy, 1)
		for range 60 {
			if b.Type[0] != envs.Mid {
				fresh = agenttest.Actor(t, a, agents.Greedy, 1)
			}
			other := act(agenttest.Actor(t, a, agents.Explore, 1))
			x, y := act(long), act(fresh)
			if n++; x != y {
				t.Fatalf("%s: round %d: the value is %v, and without the episodes before %v", e.Name(), n, x, y)
			}
			if math.Abs(float64(x-other)) > 1e-6 {
				carried++
			}
			if err := v.Step(long.(*onpolicy.Actor).Decision.Actions); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 60*len(testengines.All(t)) || carried < n/2 {
		t.Errorf("%d decisions, %d of which depend on the steps before", n, carried)
	}
}

// TestBootstrapsRemember checks the values that sequences end with: after the rollout, that of the
// next decision; of a last observation, what a memory that saw the episode says of it.
func TestBootstrapsRemember(t *testing.T) {
	c := lone()
	c.Recurrent = Recurrent{LSTM, 4, 1, Separate, 0}
	n, cut := 0, 0
	for _, e := range testengines.All(t) {
		const rows = 3
		v := agenttest.Toys(t, rows, spec(envs.Discrete{N: 3}, false))
		r := agenttest.NewTraining(t, agentOf(t, c, v, e, 1), v)
		d := &diary{Recorder: r.Agent.Recorder(), spec: v.Spec()}
		if err := agents.Collect(t.Context(), v, r.Actor, d, rng.New(4), 0, c.NSteps, nil); err != nil {
			t.Fatal(err)
		}
		policy, l := newNaive(c, v.Spec(), r.Agent.Learner().(*learner).Params), r.Agent.Learner().(*learner)
		zero := func() memory64 {
			return memory64{"actor": {make([]float64, 4), make([]float64, 4)}, "critic": {make([]float64, 4), make([]float64, 4)}}
		}
		for e := range rows {
			m := zero()
			for i := e; i < len(d.samples); i += rows {
				s := d.samples[i]
				if s.begins {
					m = zero()
				}
				policy.value(s.x, m)
				if s.last {
					at := memory64{"critic": m["critic"]}
					if s.discount > 0 {
						cut++
						if n++; math.Abs(policy.value(s.final, at)-l.Rollout.Final[i]) > 1e-5 {
							t.Errorf("the last observation of sample %d is worth %v, expected %v", i, l.Rollout.Final[i], policy.value(s.final, memory64{"critic": m["critic"]}))
						}
					}
					m = zero()
				}
			}
			if n++; math.Abs(policy.value(d.samples[len(d.samples)-rows+e].next, m)-l.Rollout.Bootstrap[e]) > 1e-5 {
				t.Errorf("after the rollout environment %d is worth %v", e, l.Rollout.Bootstrap[e])
			}
		}
	}
	if n < 3 || cut == 0 {
		t.Errorf("%d comparisons, %d episodes cut off", n, cut)
	}
}
