package td3

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/models"
	"onnxrl/models/layer"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/gradcheck"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// exported runs the complete network, with its parameters baked in, on what the environments show.
func exported(t testing.TB, r *training, e engine.Compiler) map[string]*tensor.Tensor {
	t.Helper()
	net, params := r.a.Learner().Policy()
	m, err := net.Bake(params.View)
	if err != nil {
		t.Fatal(err)
	}
	b, rows, in := r.v.Batch(), r.v.Len(), map[string]*tensor.Tensor{}
	for i, f := range r.v.Spec().Observation {
		x := tensor.New(f.Space.DType(), append([]int{rows}, f.Space.Shape()...)...)
		if err := b.Gather(i, x); err != nil {
			t.Fatal(err)
		}
		in[f.Name] = x
	}
	out, err := gradcheck.Run(t.Context(), e, m, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPolicyIsTheActor compares the exported network with the greedy actor, in the environment's units.
func TestPolicyIsTheActor(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for what, x := range variants(t) {
			c := small()
			x.change(&c)
			v := toys(t, 3, x.spec)
			r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
			if err := r.run(t.Context(), 20, nil); err != nil {
				t.Fatal(err)
			}
			out := exported(t, r, e)
			greedy, err := actorOf(t, r.a, agents.Greedy, 3).Act(t.Context(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			action := out[agents.ActionOutput]
			if !slices.Equal(action.Shape(), greedy.Actions.Shape()) || action.DType() != greedy.Actions.DType() {
				t.Fatalf("%s: the policy gives %v, the actor %v", what, action, greedy.Actions)
			}
			for i, want := range floats64(greedy.Actions) {
				if got := floats64(action)[i]; math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: %s: the policy takes %g, the actor %g", e.Name(), what, got, want)
				}
			}
			n++
		}
	}
	if n < 7 {
		t.Errorf("%d variants", n)
	}
}

// floats64 returns the elements of a tensor of floats; nil for others.
func floats64(x *tensor.Tensor) []float64 {
	switch x.DType() {
	case tensor.Float64:
		return x.Float64s()
	case tensor.Float32:
		out := make([]float64, len(x.Float32s()))
		for i, v := range x.Float32s() {
			out[i] = float64(v)
		}
		return out
	}
	return nil
}

// TestEncoderFromFile trains with a user's ONNX model in front of actor and critics: the model's weights change, in the target networks too.
func TestEncoderFromFile(t *testing.T) {
	g := layer.New("own", rng.New(1), layer.Options{})
	x := g.Observation("features", 6)
	g.Output("z", g.Activate("tanh", g.Linear("fc", x, 5, layer.Xavier(1))))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.onnx")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := small()
	if c.Encoder, err = configs.NewKinded("file", map[string]any{"path": path}); err != nil {
		t.Fatal(err)
	}
	v := toys(t, 1, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	before := map[string][]float32{}
	for _, s := range r.a.graphs.specs {
		before[s.Name] = slices.Clone(r.a.params.View(s.Name).Float32s())
	}
	if err := r.run(t.Context(), 30, nil); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, scope := range []string{actorScope, criticScope, targetScope + "." + actorScope, targetScope + "." + criticScope} {
		name := scope + ".encoder.fc.weight"
		p := r.a.params.View(name)
		if p == nil {
			t.Fatalf("no parameter %q among %v", name, r.a.graphs.specs)
		}
		if n++; slices.Equal(p.Float32s(), before[name]) {
			t.Errorf("%q has not moved", name)
		}
	}
	if n != 4 {
		t.Errorf("%d parameters", n)
	}
}

// TestNothingFlowsAcross runs the programs one by one: each gives the gradient of its own side, finite and not zero, and leaves the other side's alone.
func TestNothingFlowsAcross(t *testing.T) {
	n := 0
	for what, c := range map[string]Config{"td3": small(), "ddpg": DDPGDefaults()} {
		c.Hidden, c.BatchSize, c.LearningStarts = []int{16, 16}, 8, 12
		v := toys(t, 1, boxToy())
		r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
		if err := r.run(t.Context(), 20, nil); err != nil {
			t.Fatal(err)
		}
		for scope, run := range map[string]func() error{actorScope: r.a.actor.Run, criticScope: r.a.critic.Run} {
			for i := range r.a.grads.Floats() {
				r.a.grads.Floats()[i] = 7
			}
			if err := run(); err != nil {
				t.Fatal(err)
			}
			for i, s := range r.a.grads.Specs() {
				own, zero := 0, 0
				g := r.a.grads.View(i).Float32s()
				for _, x := range g {
					if x != 7 {
						own++
					}
					if x == 0 {
						zero++
					}
				}
				switch {
				case !below(s.Name, scope) && own > 0:
					t.Errorf("%s: the %s's program wrote the gradient of %s", what, scope, s.Name)
				case below(s.Name, scope) && (own != len(g) || zero == len(g)):
					t.Errorf("%s: the gradient of %s is %v", what, s.Name, g)
				}
				n++
			}
		}
		if f := r.a.params.Segment(models.Frozen); len(f.Specs()) != 6+6*c.Critics || len(r.a.follow) != 1 {
			t.Errorf("%d parameters of target networks in %d ranges, expected %d in 1", len(f.Specs()), len(r.a.follow), 6+6*c.Critics)
		}
	}
	if n < 50 {
		t.Errorf("%d gradients", n)
	}
}

// TestSaturatedActionsKeepToTheBounds: an engine's tanh may round beyond 1, and environments refuse actions beyond their bounds.
func TestSaturatedActionsKeepToTheBounds(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for what, space := range map[string]envs.Box{
			"plain": envs.NewBox(-2, 2, 1), "odd": {Of: tensor.Float32, Dims: []int{2}, Low: []float64{-0.1, 0.3}, High: []float64{0.7, 1e6}}, "wide": {Of: tensor.Float64, Dims: []int{2, 1}, Low: []float64{-1. / 3}, High: []float64{0.1}},
		} {
			spec := boxToy()
			spec.Action = space
			v := toys(t, 3, spec)
			r := newTraining(t, agent(t, small(), v, e, 1), v)
			w := r.a.params.View(actorScope + ".action.weight").Float32s()
			for i := range w {
				// From slightly to hopelessly saturated.
				w[i] *= 300
			}
			for range 40 {
				if err := r.run(t.Context(), 1, nil); err != nil {
					t.Fatalf("%s, %s: %v", e.Name(), what, err)
				}
				r.a.stepped = r.a.rec.Rounds() + 1000
				action := exported(t, r, e)[agents.ActionOutput]
				for i := range 3 {
					if err := space.Check(row(action, i)); err != nil {
						t.Errorf("%s, %s: %v", e.Name(), what, err)
					}
					n++
				}
			}
		}
	}
	if n < 3*40*3 {
		t.Errorf("%d actions", n)
	}
}

// row returns row i of a batch without its first axis.
func row(x *tensor.Tensor, i int) *tensor.Tensor {
	size := len(x.Bytes()) / x.Shape()[0]
	one, err := tensor.OfBytes(x.DType(), x.Bytes()[i*size:(i+1)*size], x.Shape()[1:]...)
	if err != nil {
		panic(err)
	}
	return one
}

// TestWholePolicyFromFile trains a user's ONNX policy, whose outputs are actions before squashing.
func TestWholePolicyFromFile(t *testing.T) {
	n := 0
	for _, x := range []struct {
		spec  envs.Spec
		width int
		extra string
	}{{boxToy(), 2, ""}, {boxToy(), 4, "misfit"}} {
		g := layer.New("own", rng.New(1), layer.Options{})
		g.Output("y", g.Linear("fc", g.Observation("features", 6), x.width, layer.Xavier(1)))
		m, err := g.Model()
		if err != nil {
			t.Fatal(err)
		}
		data, err := onnx.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "own.onnx")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := small()
		if c.Policy, err = configs.NewKinded("file", map[string]any{"path": path}); err != nil {
			t.Fatal(err)
		}
		if x.extra == "misfit" {
			refuse(t, c, x.spec, "policy: it gives", "toy")
			n++
			continue
		}
		v := toys(t, 1, x.spec)
		r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
		w := r.a.params.View(actorScope + ".policy.fc.weight")
		if w == nil {
			t.Fatalf("no weights of the policy among %v", r.a.graphs.specs)
		}
		before := slices.Clone(w.Float32s())
		if err := r.run(t.Context(), 30, nil); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(before, w.Float32s()) {
			t.Errorf("a policy of %d numbers has not moved", x.width)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d cases", n)
	}
}
