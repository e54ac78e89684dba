package served_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Pushes of the cart.
const (
	left  = 0
	right = 1
)

// patience is how many decisions of an episode the model below waits.
const patience = 3

// waiting is a policy that goes left for some decisions of an episode and right afterwards: it
// counts them. Its memory begins at 10.
func waiting(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("waiting", 13)
	row := func(d tensor.DType, n ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
		for _, k := range n {
			tt.Dims = append(tt.Dims, onnx.Known(k))
		}
		return tt
	}
	x, count := b.Input("observation", row(tensor.Float32, 4)), b.Input("count", row(tensor.Float32, 1))
	late := b.Op("Squeeze", []onnx.Value{b.Op("GreaterOrEqual", []onnx.Value{count, b.Float(10 + patience)}), b.Ints(1)})
	action := b.Op("Where", []onnx.Value{late, b.Int(right), b.Int(left)})
	b.Output(b.Rename(action, agents.ActionOutput), row(tensor.Int64))
	next := b.Op("Add", []onnx.Value{b.Op("Add", []onnx.Value{count, b.Float(1)}), b.Op("Mul", []onnx.Value{b.Op("ReduceMin", []onnx.Value{x}, onnx.AttrInts("axes", 1)), b.Float(0)})})
	b.Output(b.Rename(next, "counted"), row(tensor.Float32, 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := models.AddStates(m, []models.State{{Input: "count", Output: "counted", Shape: []int{1}, Initial: []float32{10}}}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMemoryBeginsWithEveryEpisode acts in several environments whose episodes end at different
// times, and in one by itself.
func TestMemoryBeginsWithEveryEpisode(t *testing.T) {
	const rows, rounds = 3, 60
	m := waiting(t)
	for _, c := range testengines.All(t) {
		list := make([]envs.Env, rows)
		for i := range list {
			e, err := classic.NewCartPole(classic.CartPoleConfig{MaxSteps: 12})
			if err != nil {
				t.Fatal(err)
			}
			list[i] = e
		}
		v, err := vector.New(list, vector.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Reset(rng.New(1)); err != nil {
			t.Fatal(err)
		}
		p, err := served.New(t.Context(), m, c, rows)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Remembers("count") || p.Remembers("observation") {
			t.Error("the policy remembers its count")
		}
		a, err := served.NewActor(p, v.Spec(), served.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var age [rows]int
		ended := 0
		for round := range rounds {
			d, err := a.Act(t.Context(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range d.Actions.Int64s() {
				want := int64(left)
				if age[i] >= patience {
					want = right
				}
				if got != want {
					t.Fatalf("%s: round %d, environment %d, decision %d of its episode: %d", c.Name(), round, i, age[i], got)
				}
				age[i]++
			}
			if err := v.Step(d.Actions); err != nil {
				t.Fatal(err)
			}
			for _, e := range v.Batch().Ended {
				age[e.Env] = 0
				ended++
			}
		}
		if ended < 10 {
			t.Errorf("%s: only %d episodes ended", c.Name(), ended)
		}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := a.Act(t.Context(), rng.Key{}, v.Batch()); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.Name(), n)
		}
		// One environment by itself.
		ts := envs.NewTimeStep(v.Spec())
		for episode := range 2 {
			ts.Type = envs.First
			for n := range patience + 2 {
				if err := a.Observe(1, ts); err != nil {
					t.Fatal(err)
				}
				d, err := a.Decide()
				if err != nil {
					t.Fatal(err)
				}
				if got := d.Actions.Int64s()[1] == right; got != (n >= patience) {
					t.Errorf("%s: episode %d, decision %d: right is %v", c.Name(), episode, n, got)
				}
				ts.Type = envs.Mid
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	bad := m.ShallowClone()
	bad.SetMeta(models.StateKey, `[{"input":"count","output":"counted","shape":[2],"initial":[0]}]`)
	if _, err := served.New(t.Context(), bad, testengines.Fastest(t), 1); err == nil || !strings.Contains(err.Error(), "state: ") {
		t.Errorf("a state of another shape: %v", err)
	}
}

// TestTheNewestOfAStack gives a model of single observations those of an environment that shows
// stacks, and takes its actions back by a scale.
func TestTheNewestOfAStack(t *testing.T) {
	const rows = 2
	b := onnx.NewBuilder("newest", 13)
	in := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input("x", in)}), agents.ActionOutput), in)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, shape := range [][]int{{6}, {3, 2}} {
		spec := envs.Spec{Name: "stacks", Observation: envs.Dict{{Name: "x", Space: envs.NewBox(-100, 100, shape...)}}, Action: envs.NewBox(-1, 1, 2), MaxSteps: 5}
		o := served.Options{Newest: map[string][]int{"x": {2}}, Actions: func(to, from []float32) {
			for i, v := range from {
				to[i] = v / 10
			}
		}}
		for _, c := range testengines.All(t) {
			p, err := served.New(t.Context(), m, c, rows)
			if err != nil {
				t.Fatal(err)
			}
			a, err := served.NewActor(p, spec, o)
			if err != nil {
				t.Fatal(err)
			}
			f, err := vector.NewFrame(spec, rows, false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Batch().Obs[0].Float32s() {
				f.Batch().Obs[0].Float32s()[i] = float32(i)
			}
			d, err := a.Act(t.Context(), rng.New(1), f.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []float32{-0.4, -0.5, -1, -1.1} {
				if got := d.Actions.Float32s()[i]; got != want {
					t.Errorf("%s, stack %v: action %d is %g, expected %g", c.Name(), shape, i, got, want)
				}
				checked++
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		p, err := served.New(t.Context(), m, testengines.Fastest(t), rows)
		if err != nil {
			t.Fatal(err)
		}
		o.Newest = map[string][]int{"x": {5}}
		if _, err := served.NewActor(p, spec, o); err == nil || !strings.Contains(err.Error(), "no stack of [5]") {
			t.Errorf("error %v", err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if checked != 8*len(testengines.All(t)) {
		t.Errorf("%d values", checked)
	}
}
