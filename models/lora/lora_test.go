package lora

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// model holds one node of every kind that can be adapted: a grouped convolution, MatMul with the
// weight on either side, and Gemm with and without transB.
func model(t *testing.T) *onnx.Model {
	b := onnx.NewBuilder("net", 18)
	s := rng.New(7).Split("weights").Stream()
	w := func(name string, shape ...int) onnx.Value {
		p := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(p.Float32s(), 0, 0.5)
		return b.Initializer(name, p)
	}
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 3, 4, 10))
	c := b.Op("Conv", []onnx.Value{x, w("conv.weight", 6, 2, 3), w("conv.bias", 6)}, onnx.AttrInt("group", 2), onnx.AttrInts("strides", 2), onnx.AttrInts("pads", 1, 1))
	c = b.Op("Tanh", []onnx.Value{c})
	r := b.Op("MatMul", []onnx.Value{c, w("right.weight", 5, 4)})
	l := b.Op("MatMul", []onnx.Value{w("left.weight", 3, 6), r})
	f := b.Op("Flatten", []onnx.Value{l})
	g := b.Op("Gemm", []onnx.Value{f, w("fc1.weight", 7, 12), w("fc1.bias", 7)}, onnx.AttrInt("transB", 1), onnx.AttrFloat("alpha", 0.5))
	h := b.Op("Gemm", []onnx.Value{b.Op("Tanh", []onnx.Value{g}), w("fc2.weight", 7, 2)})
	b.Output(b.Rename(h, "y"), onnx.TypeOf(tensor.Float32, 3, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func eval(t *testing.T, m *onnx.Model, extra map[string]*tensor.Tensor) []float32 {
	t.Helper()
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x := tensor.New(tensor.Float32, 3, 4, 10)
	rng.New(1).Stream().FillNormal32(x.Float32s(), 0, 1)
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, p := range s.Inputs() {
		if in[i] = extra[p.Name]; p.Name == "x" {
			in[i] = x
		}
	}
	out := make([]*tensor.Tensor, 1)
	if err := s.Run(context.Background(), out, in); err != nil {
		t.Fatal(err)
	}
	return out[0].Float32s()
}

func maxDiff(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}

func TestAdaptersStartAsIdentityAndMergeExactly(t *testing.T) {
	m := model(t)
	base := eval(t, m, nil)
	adapted, ads, err := Apply(m, Config{Rank: 2, Alpha: 3, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(ads) != 5 {
		t.Fatalf("%d adapters, want 5: %+v", len(ads), ads)
	}
	if err := onnx.Check(adapted); err != nil {
		t.Fatal(err)
	}
	if d := maxDiff(base, eval(t, adapted, nil)); d != 0 {
		t.Fatalf("a fresh adapter changes the output by %g", d)
	}
	// Give the adapters weight, as training would.
	s := rng.New(9).Stream()
	for _, ad := range ads {
		b, err := onnx.TensorOf(adapted.Graph.FindInitializer(ad.B))
		if err != nil {
			t.Fatal(err)
		}
		s.FillNormal32(b.Float32s(), 0, 0.3)
	}
	trained := eval(t, adapted, nil)
	if d := maxDiff(base, trained); d < 1e-2 {
		t.Fatalf("trained adapters change the output by %g only", d)
	}
	merged, err := Merge(adapted)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(merged); err != nil {
		t.Fatal(err)
	}
	if len(merged.Graph.Node) != len(m.Graph.Node) || len(merged.Graph.Initializer) != len(m.Graph.Initializer) {
		t.Errorf("merged model has %d nodes and %d initializers, the original %d and %d", len(merged.Graph.Node), len(merged.Graph.Initializer), len(m.Graph.Node), len(m.Graph.Initializer))
	}
	if d := maxDiff(trained, eval(t, merged, nil)); d > 1e-5 {
		t.Errorf("merging changes the output by %g", d)
	}
	if d := maxDiff(base, eval(t, m, nil)); d != 0 {
		t.Errorf("the original model has changed by %g", d)
	}
}

// TestWeightsThatAreSplit adapts weights that reach their layers in pieces.
func TestWeightsThatAreSplit(t *testing.T) {
	b := onnx.NewBuilder("net", 18)
	s := rng.New(7).Split("weights").Stream()
	w := func(name string, shape ...int) onnx.Value {
		p := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(p.Float32s(), 0, 0.5)
		return b.Initializer(name, p)
	}
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 3, 4, 10))
	k := b.OpN("Split", "", 2, []onnx.Value{w("conv.weight", 4, 4, 3)}, onnx.AttrInt("num_outputs", 2), onnx.AttrInt("axis", 0))
	c := b.Op("Add", []onnx.Value{b.Op("Conv", []onnx.Value{x, k[0]}), b.Op("Conv", []onnx.Value{x, k[1]})})
	f := b.Op("Split", []onnx.Value{w("fc.weight", 2, 16)}, onnx.AttrInt("num_outputs", 1), onnx.AttrInt("axis", 1))
	y := b.Op("Add", []onnx.Value{b.Op("Gemm", []onnx.Value{b.Op("Flatten", []onnx.Value{c}), f}, onnx.AttrInt("transB", 1)), w("shift.weight", 3, 2)})
	b.Output(b.Rename(y, "y"), onnx.TypeOf(tensor.Float32, 3, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	base := eval(t, m, nil)
	adapted, ads, err := Apply(m, Config{Rank: 2, Alpha: 3})
	if err != nil || len(ads) != 2 {
		t.Fatalf("adapters %v: %v", ads, err)
	}
	if d := maxDiff(base, eval(t, adapted, nil)); d != 0 {
		t.Errorf("fresh adapters change the output by %g", d)
	}
	for _, ad := range ads {
		p, err := onnx.TensorOf(adapted.Graph.FindInitializer(ad.B))
		if err != nil {
			t.Fatal(err)
		}
		s.FillNormal32(p.Float32s(), 0, 0.3)
	}
	trained := eval(t, adapted, nil)
	merged, err := Merge(adapted)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(merged); err != nil {
		t.Fatal(err)
	}
	if d := maxDiff(trained, eval(t, merged, nil)); d > 1e-5 || maxDiff(base, trained) < 1e-2 {
		t.Errorf("merging changes the output by %g, training by %g", d, maxDiff(base, trained))
	}
	if len(merged.Graph.Node) != len(m.Graph.Node) || len(merged.Graph.Initializer) != len(m.Graph.Initializer) {
		t.Errorf("merged model has %d nodes and %d initializers, the original %d and %d", len(merged.Graph.Node), len(merged.Graph.Initializer), len(m.Graph.Node), len(m.Graph.Initializer))
	}
}

func TestTargetsSelectLayers(t *testing.T) {
	_, ads, err := Apply(model(t), Config{Rank: 1, Target: []string{"fc*"}})
	if err != nil || len(ads) != 2 {
		t.Fatalf("adapters %v, error %v", ads, err)
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Rank: 1, Target: []string{"attn*"}}, `"attn*" matches no MatMul`},
		{Config{}, "rank: must be at least 1"},
		{Config{Rank: 2, Alpha: -1}, "alpha: must not be negative"},
	} {
		if _, _, err := Apply(model(t), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("config %+v: error %v, want %q", c.cfg, err, c.want)
		}
	}
	once, _, err := Apply(model(t), Config{Rank: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Apply(once, Config{Rank: 1}); err == nil || !strings.Contains(err.Error(), "adapters already") {
		t.Errorf("second application: %v", err)
	}
}

func TestOnlyAdaptersAreTrainable(t *testing.T) {
	m, ads, err := Apply(model(t), Config{Rank: 2})
	if err != nil {
		t.Fatal(err)
	}
	net, _, err := models.FromModel(m, models.Options{Train: []string{Pattern}})
	if err != nil {
		t.Fatal(err)
	}
	trainable := 0
	for _, s := range net.Specs {
		if s.Role == models.Trainable {
			trainable++
		}
	}
	if trainable != 2*len(ads) {
		t.Errorf("%d trainable parameters for %d adapters", trainable, len(ads))
	}
}

func TestSharedWeightHasOneAdapter(t *testing.T) {
	b := onnx.NewBuilder("tied", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2, 3))
	w := b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, 3))
	b.Output(b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), w}), onnx.TypeOf(tensor.Float32, 2, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	_, ads, err := Apply(m, Config{Rank: 1})
	if err != nil || len(ads) != 1 || len(ads[0].Outputs) != 2 {
		t.Fatalf("adapters %+v, error %v", ads, err)
	}
}

// exported is what PyTorch's exporters write for linear layers on sequences: a Transpose between
// weight and MatMul, and an Identity for the second of two layers whose weights were equal.
func exported(t *testing.T, own bool) *onnx.Model {
	b := onnx.NewBuilder("exported", 18)
	s := rng.New(7).Split("weights").Stream()
	w := func(name string, shape ...int) onnx.Value {
		p := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(p.Float32s(), 0, 0.5)
		return b.Initializer(name, p)
	}
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 3, 4, 10))
	turn := func(v onnx.Value) onnx.Value { return b.Op("Transpose", []onnx.Value{v}, onnx.AttrInts("perm", 1, 0)) }
	h := b.Op("MatMul", []onnx.Value{x, turn(w("in.weight", 6, 10))})
	first := w("0.weight", 6, 6)
	second := onnx.Value("")
	if own {
		second = w("1.weight", 6, 6)
	} else {
		second = b.Rename(first, "1.weight")
	}
	h = b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{h, turn(first)}), turn(second)})
	h = b.Op("Reshape", []onnx.Value{h, b.Ints(12, 6)})
	h = b.Op("Gemm", []onnx.Value{h, turn(w("out.weight", 2, 6))})
	h = b.Op("Gemm", []onnx.Value{h, turn(w("back.weight", 2, 5))}, onnx.AttrInt("transB", 1))
	b.Output(b.Rename(h, "y"), onnx.TypeOf(tensor.Float32, 12, 5))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWeightsBehindTransposes(t *testing.T) {
	for _, own := range []bool{false, true} {
		want := map[bool]string{true: "in.weight right_t,0.weight right_t,1.weight right_t,out.weight right_t,back.weight right", false: "in.weight right_t,0.weight right_t,out.weight right_t,back.weight right"}[own]
		m := exported(t, own)
		base := eval(t, m, nil)
		adapted, ads, err := Apply(m, Config{Rank: 2, Alpha: 3, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for i, ad := range ads {
			kinds = append(kinds, ad.Weight+" "+ad.Kind)
			v, err := onnx.TensorOf(adapted.Graph.FindInitializer(ad.B))
			if err != nil {
				t.Fatal(err)
			}
			rng.New(uint64(i)).Stream().FillNormal32(v.Float32s(), 0, 0.3)
		}
		if got := strings.Join(kinds, ","); got != want {
			t.Errorf("adapters %s, want %s", got, want)
		}
		changed := eval(t, adapted, nil)
		if maxDiff(base, changed) < 0.1 {
			t.Error("the adapters change nothing")
		}
		merged, err := Merge(adapted)
		if err != nil {
			t.Fatal(err)
		}
		if d := maxDiff(changed, eval(t, merged, nil)); d > 2e-5 {
			t.Errorf("merged differs by %g", d)
		}
	}
}

func TestWeightOfOthersIsRefused(t *testing.T) {
	m := exported(t, false)
	for _, pattern := range []string{"1.weight", "0.weight"} {
		// The name of the initializer covers both layers, that of the copy one of them.
		_, ads, err := Apply(m, Config{Rank: 1, Target: []string{pattern}})
		if pattern == "0.weight" {
			if err != nil || len(ads) != 1 || len(ads[0].Outputs) != 2 {
				t.Errorf("%s: %+v, %v", pattern, ads, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), `weight "0.weight" is also used by`) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	untied, err := models.Untie(m, []string{"0.weight"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ads, err := Apply(untied, Config{Rank: 1, Target: []string{"1.weight"}}); err != nil || len(ads) != 1 {
		t.Errorf("untied: %+v, %v", ads, err)
	}
}
