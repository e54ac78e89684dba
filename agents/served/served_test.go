package served_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const bars, assets, features, window = 40, 3, 4, 5

// source returns a market whose features are random, and the table that they are as raw values:
// twice as large.
func source(t *testing.T) (*trading.Source, *tensor.Tensor) {
	t.Helper()
	s := rng.New(2).Stream()
	m := &trading.Market{
		Assets: []string{"A", "B", "C"}, Features: []string{"a", "b", "c", "d"},
		X: make([]float32, bars*assets*features), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets),
	}
	raw := tensor.New(tensor.Float32, bars, assets, features)
	for i := range m.X {
		m.X[i] = float32(s.Normal())
		raw.Float32s()[i] = 2 * m.X[i]
	}
	for i := range m.Open {
		m.Open[i], m.Close[i], m.Tradable[i] = 10+s.Float64(), 10+s.Float64(), trading.SidesAt(i%assets > 0 || i > 60, 0, 0, 0)
	}
	for i := range bars {
		m.Dates = append(m.Dates, time.Date(2020, 1, 1+i, 0, 0, 0, 0, time.UTC))
	}
	c := trading.Defaults()
	c.Window, c.Episode = window, trading.Episode{Kind: trading.Full, End: trading.Truncate}
	src, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return src, raw
}

// policy is a model for the market above; half says that it halves its windows itself.
func policy(t *testing.T, half bool) *onnx.Model {
	t.Helper()
	g := layer.New("policy", rng.New(1), layer.Options{})
	x := g.Observation("window", window, assets, features)
	position, mask := g.Observation("position", assets), g.Batched("mask", tensor.Bool, 3*assets)
	if half {
		x = g.Scale(x, 0.5)
	}
	z := g.In("body").MLP(g.Concat(1, g.Reshape(x, -1, window*assets*features), position), []int{16}, "tanh", layer.Orthogonal(1))
	c := head.NewCategorical(g, head.Logits(g, z, layer.Orthogonal(1), 3, 3, 3), mask, 3, 3, 3)
	g.Output("action", c.Mode())
	g.Output("log_probs", c.LogProbs)
	g.Output("value", g.Squeeze(g.Linear("value", z, 1, layer.Orthogonal(1)), 1))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func portfolio(t *testing.T, src *trading.Source) vector.Env {
	t.Helper()
	e, err := src.Env(trading.Range{First: 0, Last: bars - 1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.New([]envs.Env{e}, vector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func actor(t *testing.T, p *served.Policy, spec envs.Spec, o served.Options) *served.Actor {
	t.Helper()
	a, err := served.NewActor(p, spec, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestActs drives three actors through the same market: one batch on scaled windows, one on
// unscaled ones that the model scales itself, and one that observes step by step. All must decide
// alike, within the mask, and their values must be the network's.
func TestActs(t *testing.T) {
	src, raw := source(t)
	for _, c := range testengines.All(t) {
		path := filepath.Join(t.TempDir(), "policy.onnx")
		m := policy(t, true)
		m.SetMeta("onnxrl.seed", "7")
		if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		plain, err := served.New(t.Context(), policy(t, false), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		scaling, err := served.Open(t.Context(), path, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := scaling.Meta("onnxrl.seed"); v != "7" || !ok || scaling.Rows() != 1 || strings.Join(scaling.Inputs(), " ") != "window position mask" || strings.Join(scaling.Outputs(), " ") != "action log_probs value" {
			t.Errorf("%s: metadata %q, inputs %v, outputs %v", c.Name(), v, scaling.Inputs(), scaling.Outputs())
		}
		v := portfolio(t, src)
		a := actor(t, plain, v.Spec(), served.Options{})
		b := actor(t, scaling, v.Spec(), served.Options{Tables: map[string]*tensor.Tensor{"window": raw}})
		alone, err := src.Env(trading.Range{First: 0, Last: bars - 1})
		if err != nil {
			t.Fatal(err)
		}
		ts := envs.NewTimeStep(alone.Spec())
		if err := alone.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		if err := v.Reset(rng.New(1)); err != nil {
			t.Fatal(err)
		}
		decided, masked := 0, 0
		for range bars - window {
			x, err := a.Act(t.Context(), rng.Key{}, v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			y, err := b.Act(t.Context(), rng.Key{}, v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			if string(x.Actions.Bytes()) != string(y.Actions.Bytes()) || math.Abs(float64(x.Value[0]-y.Value[0])) > 1e-5 || x.Value[0] == 0 {
				t.Fatalf("%s: scaled %v %v, unscaled %v %v", c.Name(), x.Actions.Int64s(), x.Value, y.Actions.Int64s(), y.Value)
			}
			for i, k := range y.Actions.Int64s() {
				if !v.Batch().Mask.Bools()[3*i+int(k)] {
					t.Errorf("%s: asset %d: action %d is masked", c.Name(), i, k)
				}
				if !v.Batch().Mask.Bools()[3*i] {
					masked++
				}
				decided++
			}
			want := append([]int64(nil), y.Actions.Int64s()...)
			if err := b.Observe(0, ts); err != nil {
				t.Fatal(err)
			}
			if y, err = b.Decide(); err != nil {
				t.Fatal(err)
			}
			for i, k := range y.Actions.Int64s() {
				if k != want[i] {
					t.Errorf("%s: asset %d: %d step by step, %d in a batch", c.Name(), i, k, want[i])
				}
			}
			if err := v.Step(y.Actions); err != nil {
				t.Fatal(err)
			}
			if err := alone.Step(y.Actions.Reshape(assets), ts); err != nil {
				t.Fatal(err)
			}
		}
		if decided < 100 || masked < 10 {
			t.Errorf("%s: %d decisions, %d masked", c.Name(), decided, masked)
		}
		if err := a.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestRowsAreIndependent compares a batch with its rows one by one.
func TestRowsAreIndependent(t *testing.T) {
	src, _ := source(t)
	spec := portfolio(t, src).Spec()
	for _, c := range testengines.All(t) {
		many, err := served.New(t.Context(), policy(t, false), c, 4)
		if err != nil {
			t.Fatal(err)
		}
		one, err := served.New(t.Context(), policy(t, false), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		a, b := actor(t, many, spec, served.Options{}), actor(t, one, spec, served.Options{})
		steps := make([]*envs.TimeStep, 4)
		for i := range steps {
			e, err := src.Env(trading.Range{First: 5 * i, Last: bars - 1})
			if err != nil {
				t.Fatal(err)
			}
			steps[i] = envs.NewTimeStep(e.Spec())
			if err := e.Reset(rng.New(1), steps[i]); err != nil {
				t.Fatal(err)
			}
			if err := a.Observe(i, steps[i]); err != nil {
				t.Fatal(err)
			}
		}
		all, err := a.Decide()
		if err != nil {
			t.Fatal(err)
		}
		for i := range steps {
			if err := b.Observe(0, steps[i]); err != nil {
				t.Fatal(err)
			}
			d, err := b.Decide()
			if err != nil {
				t.Fatal(err)
			}
			if string(d.Actions.Bytes()) != string(all.Actions.Rows(i, i+1).Bytes()) || math.Abs(float64(d.Value[0]-all.Value[i])) > 1e-5 {
				t.Errorf("%s: row %d differs", c.Name(), i)
			}
		}
	}
}

func TestActAllocatesNothing(t *testing.T) {
	src, raw := source(t)
	for _, c := range testengines.All(t) {
		p, err := served.New(t.Context(), policy(t, true), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		v := portfolio(t, src)
		a := actor(t, p, v.Spec(), served.Options{Tables: map[string]*tensor.Tensor{"window": raw}})
		if err := v.Reset(rng.New(1)); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		act := func() {
			if _, err := a.Act(ctx, rng.Key{}, v.Batch()); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(100, act); n != 0 {
			t.Errorf("%s: %g allocations per run", c.Name(), n)
		}
	}
}

// small builds a policy for the corridor from what an edit makes of its graph.
func small(t *testing.T, build func(g *layer.Graph)) *onnx.Model {
	t.Helper()
	g := layer.New("small", rng.New(1), layer.Options{})
	build(g)
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func logits(g *layer.Graph, x onnx.Value, n int) onnx.Value {
	return g.Op("ArgMax", []onnx.Value{g.Linear("logits", x, n, layer.Orthogonal(1))}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0))
}

// TestErrorsNameBothShapes gives models that do not fit.
func TestErrorsNameBothShapes(t *testing.T) {
	e, err := corridor.New(corridor.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	src, raw := source(t)
	market := portfolio(t, src).Spec()
	cases := []struct {
		name  string
		build func(g *layer.Graph)
		spec  envs.Spec
		o     served.Options
		want  string
	}{
		{"another width", func(g *layer.Graph) { g.Output("action", logits(g, g.Observation("position", 2), 2)) }, e.Spec(), served.Options{}, "input position is float32[2] of the batch in the model, and the environment's is float32[1]"},
		{"another name", func(g *layer.Graph) { g.Output("action", logits(g, g.Observation("place", 1), 2)) }, e.Spec(), served.Options{}, `an input "place", and the observation only [position]`},
		{"no mask", func(g *layer.Graph) { g.Output("action", logits(g, g.Observation("position", 1), 2)) }, e.Spec(), served.Options{}, `no input "mask" bool[batch 2]`},
		{"another mask", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 3)
			g.Output("action", logits(g, g.Observation("position", 1), 2))
		}, e.Spec(), served.Options{}, "input mask is bool[3] of the batch in the model, and the environment's is bool[2]"},
		{"another action", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 2)
			g.Output("action", g.Linear("mean", g.Observation("position", 1), 1, layer.Orthogonal(1)))
		}, e.Spec(), served.Options{}, "output action is float32[1] of the batch in the model, and the environment's is int64[]"},
		{"another value", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 2)
			x := g.Observation("position", 1)
			g.Output("action", logits(g, x, 2))
			g.Output("value", g.Linear("value", x, 1, layer.Orthogonal(1)))
		}, e.Spec(), served.Options{}, "output value is float32[1] of the batch in the model, and the environment's is float32[]"},
		{"another window", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 9)
			g.Output("action", g.Op("ArgMax", []onnx.Value{g.Reshape(g.Observation("window", 6, 3, 4), -1, 9, 8)}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)))
		}, market, served.Options{}, "input window is float32[6 3 4] of the batch in the model, and the environment's is float32[5 3 4]"},
		{"another table", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 9)
			g.Output("action", g.Op("ArgMax", []onnx.Value{g.Reshape(g.Observation("window", 5, 3, 4), -1, 10, 6)}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)))
		}, market, served.Options{Tables: map[string]*tensor.Tensor{"window": raw.Rows(0, 7)}}, `the table for "window" is`},
		{"a table for a number", func(g *layer.Graph) {
			g.Batched("mask", tensor.Bool, 9)
			g.Output("action", logits(g, g.Observation("position", 3), 3))
		}, market, served.Options{Tables: map[string]*tensor.Tensor{"position": raw}}, `"position", which is no window`},
	}
	for _, k := range cases {
		p, err := served.New(t.Context(), small(t, k.build), portable.New(), 3)
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		if _, err := served.NewActor(p, k.spec, k.o); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: error %v, want %q", k.name, err, k.want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(cases) != 9 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestModelsThatAreNoPolicies(t *testing.T) {
	edit := func(f func(m *onnx.Model)) *onnx.Model {
		m := policy(t, false)
		f(m)
		return m
	}
	dims := func(d ...onnx.Dim) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: d}
	}
	for _, k := range []struct {
		m    *onnx.Model
		rows int
		want string
	}{
		{policy(t, false), 0, "a batch of 0 rows"},
		{&onnx.Model{}, 1, "no graph"},
		{edit(func(m *onnx.Model) { m.Graph.Output = m.Graph.Output[1:] }), 1, `has an output "action"; this model's are`},
		{edit(func(m *onnx.Model) {
			m.Graph.Input[0].Type = onnx.NewValueInfo("", dims(onnx.Known(7), onnx.Known(5), onnx.Known(3), onnx.Known(4))).Type
		}), 2, "for batches of 7 rows only; 2 are asked for"},
		{edit(func(m *onnx.Model) {
			m.Graph.Input[0].Type = onnx.NewValueInfo("", dims(onnx.Symbol("batch"), onnx.Symbol("time"), onnx.Known(3), onnx.Known(4))).Type
		}), 2, "float32[batch,time,3,4]: only the batch may be symbolic"},
		{edit(func(m *onnx.Model) { m.Graph.Input[0].Type = onnx.NewValueInfo("", onnx.TypeOf(tensor.Float32)).Type }), 2, "expected a tensor with a batch in front"},
		{small(t, func(g *layer.Graph) { g.Output("action", g.Sum(g.Observation("x", 3), 0)) }), 2, `output "action" is float32[3] for a batch of 2 rows`},
	} {
		p, err := served.New(t.Context(), k.m, portable.New(), k.rows)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("error %v, want %q", err, k.want)
		}
		if err == nil {
			p.Close()
		}
	}
	if _, err := served.Open(t.Context(), filepath.Join(t.TempDir(), "none.onnx"), portable.New(), 1); err == nil || !strings.Contains(err.Error(), "none.onnx") {
		t.Errorf("a missing file: error %v", err)
	}
	if agents.ActionOutput != "action" {
		t.Error("these tests write the name out")
	}
}

// TestUndefined: NaN in any output of a row that is present is an error, whatever the action.
func TestUndefined(t *testing.T) {
	g := layer.New("root", rng.New(1), layer.Options{})
	x := g.Observation("x", 1)
	g.Output("action", g.Scale(x, 0.5))
	g.Output("root", g.Op("Sqrt", []onnx.Value{x}))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := served.New(t.Context(), m, portable.New(), 2)
	if err != nil {
		t.Fatal(err)
	}
	spec := envs.Spec{Name: "root", Observation: envs.Dict{{Name: "x", Space: envs.NewBox(-1, 1, 1)}}, Action: envs.NewBox(-1, 1, 1)}
	a := actor(t, p, spec, served.Options{})
	f, err := vector.NewFrame(spec, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Batch()
	copy(b.Obs[0].Float32s(), []float32{1, -1})
	if _, err := a.Act(t.Context(), rng.Key{}, b); err == nil || !strings.Contains(err.Error(), `output "root" of the model is NaN at element 0`) {
		t.Errorf("NaN: %v", err)
	}
	b.Present = []bool{true, false}
	if d, err := a.Act(t.Context(), rng.Key{}, b); err != nil || d.Actions.Float32s()[0] != 0.5 {
		t.Errorf("a row that is absent: %v, %v", d, err)
	}
}
