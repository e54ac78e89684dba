package fit

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// outputs runs a model on inputs by name and returns its float outputs one after the other.
func outputs(t *testing.T, c engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor) []float32 {
	t.Helper()
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var list []*tensor.Tensor
	for _, p := range s.Inputs() {
		list = append(list, in[p.Name])
	}
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(context.Background(), out, list); err != nil {
		t.Fatal(err)
	}
	var flat []float32
	for _, o := range out {
		flat = append(flat, o.Float32s()...)
	}
	return flat
}

// trained runs a configuration and returns the trainer, which the test closes.
func trained(t *testing.T, c engine.Compiler, m *onnx.Model, cfg Config) *Trainer {
	t.Helper()
	tr, err := New(m, cfg, c, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tr
}

// proveExport compares the baked model with the trained network on the table's rows and returns it.
func proveExport(t *testing.T, c engine.Compiler, tr *Trainer) *onnx.Model {
	t.Helper()
	m, err := tr.Baked()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	samples, err := tr.Samples(30)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	for i, name := range tr.Network().Inputs {
		in[name] = samples[i]
	}
	got := outputs(t, c, m, in)
	for _, s := range tr.Network().Specs {
		in[s.Name] = tr.Params().View(s.Name)
	}
	want := outputs(t, c, tr.Network().Model, in)
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
			t.Fatalf("value %d is %g, want %g", i, got[i], want[i])
		}
	}
	return m
}

func TestLoRATrainsAdaptersOnlyAndMerges(t *testing.T) {
	for _, c := range testengines.All(t) {
		m := mlp(t)
		before, _, err := weightsOf(m)
		if err != nil {
			t.Fatal(err)
		}
		cfg := regression(table(t, 60))
		cfg.LoRA = &lora.Config{Rank: 2, Target: []string{"fc1.*"}}
		tr := trained(t, c, m, cfg)
		for name, w := range sorted.All(before) {
			if !slices.Equal(w, tr.Params().View(name).Float32s()) {
				t.Errorf("base parameter %s has changed", name)
			}
		}
		if n, frozen := tr.Counts(); n != 2*(4+8) || frozen != 4*8+8+8*2+2 || len(tr.Adapters()) != 1 {
			t.Errorf("%d trained and %d frozen elements, %d adapters", n, frozen, len(tr.Adapters()))
		}
		baked := proveExport(t, c, tr)
		after, net, err := weightsOf(baked)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)); !slices.Equal(got, want) {
			t.Errorf("the merged model has the parameters %v, want %v", got, want)
		}
		if slices.Equal(before["fc1.weight"], after["fc1.weight"]) || !slices.Equal(before["fc2.weight"], after["fc2.weight"]) {
			t.Error("merging must change the adapted weight and no other")
		}
		if len(net.Model.Graph.Node) != len(m.Graph.Node) {
			t.Errorf("the merged model has %d nodes, want %d", len(net.Model.Graph.Node), len(m.Graph.Node))
		}
	}
}

// TestFilesKeepTheirForm: an export differs from what came in by its weights alone.
func TestFilesKeepTheirForm(t *testing.T) {
	m := noisy(t)
	m.SetOpset("", 15)
	m.IrVersion = 8
	m.ProducerName, m.DocString = "somebody", "a network"
	m.SetMeta("key", "value")
	for i, n := range m.Graph.Node {
		n.Name, n.DocString = "node/"+string(rune('a'+i)), "doc"
	}
	m.Graph.ValueInfo = append(m.Graph.ValueInfo, onnx.NewValueInfo(onnx.Value(m.Graph.Node[0].Output[0]), batchOf(tensor.Float32, 8)))
	cfg := stateful(table(t, 40))
	for _, c := range testengines.All(t) {
		tr := trained(t, c, m, cfg)
		got := proveExport(t, c, tr)
		for _, want := range []*onnx.Model{m} {
			a, b := got.ShallowClone(), want.ShallowClone()
			changed := 0
			for i := range b.Graph.Initializer {
				if onnx.Digest(tensorOf(t, a.Graph.Initializer[i])) != onnx.Digest(tensorOf(t, b.Graph.Initializer[i])) {
					changed++
				}
			}
			if changed != 8 {
				t.Errorf("%s: %d initializers have changed, want 8: six parameters and two running statistics", c.Name(), changed)
			}
			a.Graph.Initializer, b.Graph.Initializer = nil, nil
			x, err := onnx.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			y, err := onnx.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			if string(x) != string(y) {
				t.Errorf("%s: the export differs in more than its weights", c.Name())
			}
		}
	}
}

func tensorOf(t *testing.T, p *onnx.TensorProto) *tensor.Tensor {
	t.Helper()
	x, err := onnx.TensorOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestFixedBatchesAreFreed trains a model that was exported for one row.
func TestFixedBatchesAreFreed(t *testing.T) {
	m := mlp(t)
	for _, v := range []*onnx.ValueInfo{m.Graph.Input[0], m.Graph.Output[0]} {
		tt, _ := v.TensorType()
		tt.Dims[0] = onnx.Known(1)
		v.Type = onnx.NewValueInfo("", tt).Type
	}
	c := testengines.Fastest(t)
	cfg := regression(table(t, 40))
	got := proveExport(t, c, trained(t, c, m, cfg))
	if tt, _ := got.Graph.Input[0].TensorType(); tt.Dims[0].IsKnown() {
		t.Errorf("the input is still %v", tt)
	}
	r := run(t, c, m, cfg, runOptions{})
	if !strings.Contains(r.logs, "exported as a fixed number") {
		t.Errorf("the log does not say so:\n%s", r.logs)
	}
	if err := same(r.weights, run(t, c, mlp(t), cfg, runOptions{}).weights); err != nil {
		t.Error(err)
	}
	// A graph that depends on the number is refused.
	m = model(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.TypeOf(tensor.Float32, 1, 4))
		h := b.Op("Reshape", []onnx.Value{x, b.Ints(1, 4)})
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("w", filled(1, 4, 2))}), "y"), onnx.TypeOf(tensor.Float32, 1, 2))
	})
	if _, err := tryRun(t, c, m, cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), "exported with a fixed batch (x float32[1,4])") {
		t.Errorf("error %v", err)
	}
}

// squares is a loss graph: the mean over the batch, or the loss of every sample, of Σ k·(p − t)²
// over the outputs, with a constant k of its own.
func squares(t *testing.T, opset int, mean bool) *onnx.Model {
	b := onnx.NewBuilder("loss", opset)
	p, y := b.Input("prediction", batchOf(tensor.Float32, 2)), b.Input("target", batchOf(tensor.Float32, 2))
	d := b.Op("Sub", []onnx.Value{p, y})
	sq := b.Op("Mul", []onnx.Value{b.Op("Mul", []onnx.Value{d, d}), b.Initializer("k", tensor.Of([]float32{0.5, 0.5}, 2))})
	var l onnx.Value
	if opset >= 18 {
		l = b.Op("ReduceSum", []onnx.Value{sq, b.Ints(1)}, onnx.AttrInt("keepdims", 0))
	} else {
		l = b.Op("ReduceSumSquare", []onnx.Value{b.Op("Sqrt", []onnx.Value{sq})}, onnx.AttrInts("axes", 1), onnx.AttrInt("keepdims", 0))
	}
	out := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N")}}
	if mean {
		l, out = b.Op("ReduceMean", []onnx.Value{l}, onnx.AttrInt("keepdims", 0)), onnx.TypeOf(tensor.Float32)
	}
	b.Output(b.Rename(l, "loss"), out)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLossGraphs compares loss graphs of the user's own with the built-in mean squared error, to
// which they are equal.
func TestLossGraphs(t *testing.T) {
	cfg := regression(table(t, 48))
	for _, c := range testengines.All(t) {
		want := run(t, c, mlp(t), cfg, runOptions{})
		for _, opset := range []int{13, 17, 18, 20} {
			for _, mean := range []bool{false, true} {
				own := cfg
				own.Loss = []loss.Term{{Output: "y", Kind: "onnx", Model: squares(t, opset, mean)}}
				got := run(t, c, mlp(t), own, runOptions{})
				if d := distance(t, want.weights, got.weights); !(d < 1e-5) {
					t.Errorf("%s: opset %d, mean %v: weights differ by %g", c.Name(), opset, mean, d)
				}
			}
		}
	}
}

// TestSeveralLosses: two terms on one output share its targets and add up.
func TestSeveralLosses(t *testing.T) {
	c := testengines.Fastest(t)
	cfg := regression(table(t, 48))
	cfg.Loss = []loss.Term{{Output: "y", Kind: "mse"}}
	one := run(t, c, mlp(t), cfg, runOptions{})
	cfg.Loss = []loss.Term{{Output: "y", Kind: "mse", Weight: 0.75}, {Output: "y", Kind: "mse", Weight: 0.25}}
	two := run(t, c, mlp(t), cfg, runOptions{})
	if d := distance(t, one.weights, two.weights); !(d < 1e-5) {
		t.Errorf("weights differ by %g", d)
	}
}

// tied is a network in which two normalisation layers share a scale, a folded constant scales the
// output, and an additive mask hides nothing.
func tied(t *testing.T) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		scale, shift := b.Initializer("norm.weight", tensor.Of([]float32{1, 1, 1, 1}, 4)), b.Initializer("norm.bias", filled(3, 4))
		h := b.Op("LayerNormalization", []onnx.Value{x, scale, shift})
		h = b.Op("Gemm", []onnx.Value{h, b.Initializer("onnx::Gemm_7", filled(1, 4, 4))})
		h = b.Op("LayerNormalization", []onnx.Value{h, scale, shift})
		h = b.Op("Mul", []onnx.Value{h, b.Initializer("val_3", tensor.Of([]float32{0.5}, 1))})
		h = b.Op("Max", []onnx.Value{h, b.Initializer("mask", tensor.Of([]float32{float32(math.Inf(-1)), -3e38, 0, 0}, 4))})
		b.Output(b.Rename(b.Op("Gemm", []onnx.Value{h, b.Initializer("fc.weight", filled(2, 4, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
}

func TestConstantsAreNotTrainedAndTiesCanBeCut(t *testing.T) {
	c := testengines.Fastest(t)
	cfg := regression(table(t, 48))
	tr := trained(t, c, tied(t), cfg)
	var names []string
	for _, s := range tr.Network().Specs {
		names = append(names, s.Name)
	}
	if want := []string{"norm.weight", "norm.bias", "onnx::Gemm_7", "fc.weight", "norm.weight.2"}; !slices.Equal(names, want) {
		t.Errorf("parameters %v, want %v", names, want)
	}
	if want := []string{"val_3", "mask"}; !slices.Equal(tr.Network().Constants, want) {
		t.Errorf("constants %v, want %v", tr.Network().Constants, want)
	}
	logs := run(t, c, tied(t), cfg, runOptions{}).logs
	for _, want := range []string{`merged=norm.weight apart=[norm.weight.2]`, `parameters=[norm.bias]`, `tensors="[val_3 mask]"`} {
		if !strings.Contains(logs, want) {
			t.Errorf("the log lacks %s:\n%s", want, logs)
		}
	}

	cfg.Train = []string{"*", "val_3"}
	if r := run(t, c, tied(t), cfg, runOptions{}); r.weights["val_3"] == nil || r.weights["val_3"][0] == 0.5 {
		t.Errorf("a constant named in train is not trained: %v", r.weights["val_3"])
	}
	cfg.Train = nil

	cfg.Tie = []string{"norm.weight"}
	if r := run(t, c, tied(t), cfg, runOptions{}); r.weights["norm.weight.2"] != nil || !strings.Contains(r.logs, `parameters="[norm.weight norm.bias]"`) {
		t.Errorf("what tie names is cut apart:\n%s", r.logs)
	}
	cfg.Tie = []string{"fc.*"}
	if _, err := tryRun(t, c, tied(t), cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), `tie "fc.*": no initializer`) {
		t.Errorf("error %v", err)
	}
	cfg.Tie = nil

	cfg.Untie = []string{"norm.*"}
	tr = trained(t, c, tied(t), cfg)
	if slices.Equal(tr.Params().View("norm.weight").Float32s(), tr.Params().View("norm.weight.2").Float32s()) {
		t.Error("untied parameters are still equal")
	}
	m := proveExport(t, c, tr)
	if m.Graph.FindInitializer("norm.bias.2") == nil {
		t.Error("the export has lost an untied parameter")
	}
	cfg.Untie = []string{"fc.*"}
	if _, err := tryRun(t, c, tied(t), cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), `untie "fc.*": no initializer`) {
		t.Errorf("error %v", err)
	}
}

// TestBatchesBehindShapeArithmetic: the batch of the output goes through floating-point numbers,
// where no symbol can follow it.
func TestBatchesBehindShapeArithmetic(t *testing.T) {
	m := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		h := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", filled(1, 4, 2))})
		n := b.Op("Cast", []onnx.Value{b.Op("Shape", []onnx.Value{x}, onnx.AttrInt("end", 1))}, onnx.AttrInt("to", int(tensor.Float32)))
		n = b.Op("Cast", []onnx.Value{b.Op("Mul", []onnx.Value{n, b.Float(1)})}, onnx.AttrInt("to", int(tensor.Int64)))
		h = b.Op("Reshape", []onnx.Value{h, b.Op("Concat", []onnx.Value{n, b.Ints(2)}, onnx.AttrInt("axis", 0))})
		b.Output(b.Rename(h, "y"), batchOf(tensor.Float32, 2))
	})
	m.Graph.Output[0].Type = onnx.NewValueInfo("", onnx.TensorType{DType: tensor.Float32}).Type
	for _, c := range testengines.All(t) {
		cfg := regression(table(t, 40))
		proveExport(t, c, trained(t, c, m, cfg))
	}
}
