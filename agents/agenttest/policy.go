package agenttest

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Exported runs the complete network, with its parameters baked in, on what the environments show.
func Exported(t testing.TB, r *Training, e engine.Compiler) map[string]*tensor.Tensor {
	t.Helper()
	net, params := r.Agent.Learner().Policy()
	m, err := net.Bake(params.View)
	if err != nil {
		t.Fatal(err)
	}
	out, err := gradcheck.Run(t.Context(), e, m, r.shown(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// PolicyIsTheActor compares the exported network with the greedy actor, in the environment's units.
// also, unless nil, compares what else the network gives.
func PolicyIsTheActor(t *testing.T, variants map[string]Variant, also func(what string, out map[string]*tensor.Tensor, x agents.Actor, greedy *vector.Decision)) {
	t.Helper()
	variants = longtest.Few(t, variants, 2)
	n := 0
	for _, e := range testengines.All(t) {
		for what, x := range variants {
			v := Toys(t, 3, x.Spec)
			r := NewTraining(t, Agent(t, x.Maker, v, testengines.Fastest(t), 1), v)
			r.Run(t, 20)
			out := Exported(t, r, e)
			actor := Actor(t, r.Agent, agents.Greedy, 3)
			greedy, err := actor.Act(t.Context(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			action := out[agents.ActionOutput]
			if !slices.Equal(action.Shape(), greedy.Actions.Shape()) || action.DType() != greedy.Actions.DType() {
				t.Fatalf("%s: the policy gives %v, the actor %v", what, action, greedy.Actions)
			}
			for i, want := range floats64(t, greedy.Actions) {
				if got := floats64(t, action)[i]; math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: %s: the policy takes %g, the actor %g", e.Name(), what, got, want)
				}
				n++
			}
			sameLogits(t, e.Name()+", "+what, greedy.Logits, out[agents.LogProbsOutput])
			if also != nil {
				also(e.Name()+", "+what, out, actor, greedy)
			}
		}
	}
	if n < 3*len(variants) || n == 0 {
		t.Errorf("%d actions of %d variants", n, len(variants))
	}
}

// sameLogits compares those of a decision with what the network gives, nil where it does not.
// Excluded actions have any number that is small enough.
func sameLogits(t testing.TB, what string, got, want *tensor.Tensor) {
	t.Helper()
	if got == nil {
		return
	}
	if !slices.Equal(got.Shape(), want.Shape()) {
		t.Fatalf("%s: logits %v, expected %v", what, got, want)
	}
	for i, x := range want.Float32s() {
		if y := got.Float32s()[i]; x > -1e3 && math.Abs(float64(x-y)) > 1e-4 || x <= -1e3 && y > -1e3 {
			t.Errorf("%s: logit %d is %g, expected %g", what, i, y, x)
		}
	}
}

// floats64 returns the elements of a tensor of numbers.
func floats64(t testing.TB, x *tensor.Tensor) (out []float64) {
	t.Helper()
	switch x.DType() {
	case tensor.Float64:
		return x.Float64s()
	case tensor.Float32:
		for _, v := range x.Float32s() {
			out = append(out, float64(v))
		}
	case tensor.Int64:
		for _, v := range x.Int64s() {
			out = append(out, float64(v))
		}
	default:
		t.Fatalf("numbers of %v", x)
	}
	return out
}

// File is a user's ONNX model from in features to out, whose weights are fc.weight, as an encoder
// or policy of the kind file.
func File(t testing.TB, in, out int) configs.Kinded {
	t.Helper()
	g := layer.New("own", rng.New(1), layer.Options{})
	g.Output("y", g.Linear("fc", g.Observation("features", in), out, layer.Xavier(1)))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	return Own(t, m)
}

// Own saves a model and returns the section of an encoder or a policy that names it.
func Own(t testing.TB, m *onnx.Model) configs.Kinded {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	k, err := configs.NewKinded("file", map[string]any{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Network is a network without training for environments of a spec, whose action is a choice of each
// head: it takes all fields of the observation, and the mask where actions are masked.
func Network(t testing.TB, spec envs.Spec) (*models.Network, *models.Params) {
	t.Helper()
	g := layer.New("policy", rng.New(3), layer.Options{})
	var parts []onnx.Value
	for _, field := range spec.Observation {
		n := 1
		for _, d := range field.Space.Shape() {
			n *= d
		}
		parts = append(parts, g.Reshape(g.Observation(field.Name, field.Space.Shape()...), -1, n))
	}
	var mask onnx.Value
	if spec.Masked {
		mask = g.Batched(agents.MaskInput, tensor.Bool, envs.MaskLen(spec.Action))
	}
	z := g.In("body").MLP(g.Concat(1, parts...), []int{16}, "tanh", layer.Orthogonal(1))
	h := envs.Heads(spec.Action)
	c := head.NewCategorical(g, head.Logits(g, z, layer.Orthogonal(1), h...), mask, h...)
	action := c.Mode()
	if len(spec.Action.Shape()) == 0 {
		action = g.Squeeze(action, 1)
	}
	g.Output(agents.ActionOutput, action)
	g.Output(agents.LogProbsOutput, c.LogProbs)
	g.Output(agents.ValueOutput, g.Squeeze(g.Linear("value", z, 1, layer.Orthogonal(1)), 1))
	return Loaded(t, g)
}

// Loaded returns the network of a graph, with its initial values as parameters until the test ends.
func Loaded(t testing.TB, g *layer.Graph) (*models.Network, *models.Params) {
	t.Helper()
	net, values, err := g.Network(models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { params.Close() })
	if err := params.Load(values); err != nil {
		t.Fatal(err)
	}
	return net, params
}
