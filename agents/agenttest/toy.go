package agenttest

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Toy answers at random: observations, masks, rewards, and whether an episode goes on, terminates
// or is cut off, and costs that grow with the size of the reward. Windows jump about in their
// table.
type Toy struct {
	spec   envs.Spec
	heads  []int
	random rng.Stream
	// before is what the present observation was drawn from.
	before rng.Stream
	// stepped says that the present observation is not the first of its episode.
	stepped bool
}

// Box has a vector and a discrete field, and actions of two components with bounds of their own.
func Box() envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "kind", Space: envs.Discrete{N: 3}}},
		Action: envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-2, 0.1}, High: []float64{2, 0.7}}, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// Costly is a spec whose steps have two costs.
func Costly(s envs.Spec) envs.Spec {
	s.Costs = []string{"risk", "toll"}
	return s
}

// Skilled is a spec whose observations have a skill, one of three.
func Skilled(s envs.Spec) envs.Spec {
	s.Observation = append(slices.Clone(s.Observation), envs.Field{Name: wrap.SkillField, Space: envs.NewBox(0, 1, 3)})
	return s
}

// Wide has actions of float64 in rows and columns.
func Wide() envs.Spec {
	s := Box()
	s.Action = envs.Box{Of: tensor.Float64, Dims: []int{2, 2}, Low: []float64{-3}, High: []float64{1}}
	return s
}

// Choice has masked Discrete actions.
func Choice() envs.Spec {
	s := Box()
	s.Action, s.Masked = envs.Discrete{N: 4}, true
	return s
}

// Series has windows of 8 rows with 4 features out of a table of 60, beside a vector.
func Series(t testing.TB) envs.Spec {
	s := Box()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(8, 4), Window: Window(t, 60, 4)}, {Name: "x", Space: envs.Unbounded(2)}}
	return s
}

// Assets has windows of 3 assets, each with a component of the action, beside their positions.
func Assets(t testing.TB) envs.Spec {
	s := Box()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(8, 3, 4), Window: Window(t, 60, 3, 4)}, {Name: "position", Space: envs.Unbounded(3)}}
	s.Action = envs.NewBox(-1, 1, 3)
	return s
}

// Window is one of 8 rows of a table of random numbers.
func Window(t testing.TB, shape ...int) *envs.Window {
	t.Helper()
	table := tensor.New(tensor.Float32, shape...)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 8)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Windowed reports whether a spec has a window.
func Windowed(s envs.Spec) bool {
	return slices.ContainsFunc(s.Observation, func(f envs.Field) bool { return f.Window != nil })
}

// Toys steps n environments of a spec.
func Toys(t testing.TB, n int, s envs.Spec) *vector.Local {
	t.Helper()
	f, err := network.NewFrame(s)
	if err != nil {
		t.Fatal(err)
	}
	return Vector(t, n, func() (*Toy, error) { return &Toy{spec: s, heads: f.Heads}, nil })
}

// Spec implements envs.Env.
func (e *Toy) Spec() envs.Spec { return e.spec }

// Close implements envs.Env.
func (e *Toy) Close() error { return nil }

// Reset implements envs.Env.
func (e *Toy) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.stepped = false
	e.observe(ts)
	ts.Restart()
	return nil
}

// Step implements envs.Env. It refuses what is not an element of the action space.
func (e *Toy) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := e.spec.Action.Check(action); err != nil {
		return err
	}
	reward := e.random.Normal()
	switch action.DType() {
	case tensor.Float32:
		reward += float64(action.Float32s()[0])
	case tensor.Int64:
		reward += float64(action.Int64s()[0])
	}
	for i := range ts.Costs {
		ts.Costs[i] = math.Abs(reward) * float64(i+1)
	}
	end := e.random.IntN(8)
	e.stepped = true
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

func (e *Toy) observe(ts *envs.TimeStep) {
	e.before = e.random
	for i, f := range e.spec.Observation {
		switch w := f.Window; {
		case w != nil:
			ts.SetWindow(i, w, w.Len()-1+e.random.IntN(w.Table().Shape()[0]-w.Len()+1))
		case f.Space.DType() == tensor.Int64:
			ts.Obs[i].Int64s()[0] = int64(e.random.IntN(f.Space.(envs.Discrete).N))
		case f.Name == wrap.SkillField:
			z := ts.Obs[i].Float32s()
			clear(z)
			z[e.random.IntN(len(z))] = 1
		default:
			e.random.FillNormal32(ts.Obs[i].Float32s(), 0, 1)
		}
	}
	if !e.spec.Masked {
		return
	}
	mask := ts.Mask.Bools()
	for _, k := range e.heads {
		for i := range k {
			mask[i] = e.random.IntN(2) == 0
		}
		mask[e.random.IntN(k)] = true
		mask = mask[k:]
	}
}

// SaveState implements envs.Saver.
func (e *Toy) SaveState() ([]byte, error) {
	data, err := e.before.MarshalBinary()
	if e.stepped {
		return append(data, 1), err
	}
	return append(data, 0), err
}

// LoadState implements envs.Saver.
func (e *Toy) LoadState(data []byte, ts *envs.TimeStep) error {
	clear(ts.Costs)
	n := len(data) - 1
	if err := e.random.UnmarshalBinary(data[:n]); err != nil {
		return err
	}
	e.observe(ts)
	if e.stepped = data[n] == 1; e.stepped {
		ts.Continue(0)
	} else {
		ts.Restart()
	}
	return nil
}
