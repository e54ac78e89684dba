package fit

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// inType is the transpose of a matrix in another type.
func inType(t *testing.T, x *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	t.Helper()
	n, k := x.Shape()[0], x.Shape()[1]
	out := tensor.New(tensor.Float32, k, n)
	for i, v := range x.Float32s() {
		out.Float32s()[i%k*n+i/k] = v
	}
	out, err := tensor.FromFloat32(out, d)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// twice is y = (T[0] + tanh(x·E)·Eᵀ)·F, where T is a part of P and E, Eᵀ are initializers both, as
// an exporter writes it that folds a transpose in the given type and a slice.
func twice(t *testing.T, d tensor.DType) *onnx.Model {
	t.Helper()
	w, table := filled(1, 4, 16), filled(2, 40, 4)
	return model(t, func(b *onnx.Builder) {
		h := b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4)), b.Initializer("emb.weight", w)})})
		h = b.Op("Cast", []onnx.Value{h}, onnx.AttrInt("to", int(d)))
		h = b.Op("MatMul", []onnx.Value{h, b.Initializer("t", inType(t, w, d))})
		h = b.Op("Cast", []onnx.Value{h}, onnx.AttrInt("to", int(tensor.Float32)))
		part := b.Op("ReduceMean", []onnx.Value{b.Initializer("slice_3", table.Rows(5, 25).Clone())}, onnx.AttrInts("axes", 0))
		all := b.Op("ReduceSum", []onnx.Value{b.Initializer("pos.weight", table), b.Ints(0)})
		h = b.Op("Add", []onnx.Value{b.Op("Add", []onnx.Value{h, part}), all})
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("fc.weight", filled(3, 4, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
}

// TestTiedWeightsAreTrainedAsOne: their gradients add up, and what is written is equal, in the form
// in which it came.
func TestTiedWeightsAreTrainedAsOne(t *testing.T) {
	const pair, part = "t=transpose(emb.weight)", "slice_3=slice(pos.weight)"
	for _, c := range testengines.All(t) {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16} {
			cfg := regression(table(t, 48))
			r := run(t, c, twice(t, d), cfg, runOptions{})
			want := pair
			if d != tensor.Float32 {
				want = "t=cast(transpose(emb.weight))"
			}
			if !strings.Contains(r.logs, `tied="[`+part+" "+want+`]"`) || r.weights["t"] != nil || r.weights["slice_3"] != nil {
				t.Errorf("%s, %v: parameters %v, log\n%s", c.Name(), d, len(r.weights), r.logs)
			}
			tr := trained(t, c, twice(t, d), cfg)
			m, err := tr.Baked()
			if err != nil {
				t.Fatal(err)
			}
			if d == tensor.Float32 {
				m = proveExport(t, c, tr)
			}
			emb, folded := tensorOf(t, m.Graph.FindInitializer("emb.weight")), tensorOf(t, m.Graph.FindInitializer("t"))
			if !slices.Equal(inType(t, emb, d).Bytes(), folded.Bytes()) || folded.DType() != d || slices.Equal(emb.Float32s(), filled(1, 4, 16).Float32s()) {
				t.Errorf("%s, %v: what is written is not tied, or not trained", c.Name(), d)
			}
			pos, few := tensorOf(t, m.Graph.FindInitializer("pos.weight")), tensorOf(t, m.Graph.FindInitializer("slice_3"))
			if !slices.Equal(pos.Rows(5, 25).Float32s(), few.Float32s()) || few.Float32s()[0] == filled(2, 40, 4).Float32s()[20] {
				t.Errorf("%s, %v: the part that is written is not tied, or not trained", c.Name(), d)
			}

			cfg.Freeze = []string{"t"}
			r = run(t, c, twice(t, d), cfg, runOptions{})
			if !slices.Equal(r.weights["emb.weight"], filled(1, 4, 16).Float32s()) || slices.Equal(r.weights["fc.weight"], filled(3, 4, 2).Float32s()) {
				t.Errorf("%s, %v: freezing a tied weight by its other name does not", c.Name(), d)
			}
		}
	}
}

// TestTiesOverruled: untie trains apart, and tie joins what is too small to be found.
func TestTiesOverruled(t *testing.T) {
	c := testengines.Fastest(t)
	cfg := regression(table(t, 48))
	cfg.Untie = []string{"t"}
	r := run(t, c, twice(t, tensor.Float32), cfg, runOptions{})
	if r.weights["t"] == nil || !strings.Contains(r.logs, `tied="[slice_3=slice(pos.weight)]"`) {
		t.Errorf("untied: %s", r.logs)
	}
	if apart := inType(t, tensor.Of(r.weights["emb.weight"], 4, 16), tensor.Float32); slices.Equal(apart.Float32s(), r.weights["t"]) {
		t.Error("untied weights are still equal")
	}

	small := filled(1, 4, 3)
	m := model(t, func(b *onnx.Builder) {
		h := b.Op("MatMul", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4)), b.Initializer("a", small)})
		h = b.Op("MatMul", []onnx.Value{h, b.Initializer("b", inType(t, small, tensor.Float32))})
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("fc.weight", filled(3, 4, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
	cfg.Untie = nil
	if r := run(t, c, m, cfg, runOptions{}); r.weights["b"] == nil {
		t.Error("12 values are taken for a tied weight")
	}
	cfg.Tie = []string{"b=transpose(a)"}
	if r := run(t, c, m, cfg, runOptions{}); r.weights["b"] != nil {
		t.Error("what tie names is trained apart")
	}
}

// TestLoRALeavesTiedWeights: an adapter of a projection that is an embedding too could not be
// merged. Without targets it is left out, and by name it is refused.
func TestLoRALeavesTiedWeights(t *testing.T) {
	c := testengines.Fastest(t)
	m := model(t, func(b *onnx.Builder) {
		w := filled(1, 16, 4)
		h := b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4)), b.Initializer("fc.weight", filled(2, 4, 4))})})
		h = b.Op("Add", []onnx.Value{h, b.Op("Gather", []onnx.Value{b.Initializer("emb.weight", w), b.Const(tensor.Scalar(int64(3)))})})
		h = b.Op("MatMul", []onnx.Value{h, b.Initializer("t", inType(t, w, tensor.Float32))})
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("out.weight", filled(3, 16, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
	cfg := regression(table(t, 48))
	cfg.LoRA = &lora.Config{Rank: 2}
	tr := trained(t, c, m, cfg)
	var names []string
	for _, ad := range tr.Adapters() {
		names = append(names, ad.Weight)
	}
	if !slices.Equal(names, []string{"fc.weight", "out.weight"}) {
		t.Errorf("adapters of %v", names)
	}
	proveExport(t, c, tr)
	cfg.LoRA = &lora.Config{Rank: 2, Target: []string{"t"}}
	if _, err := tryRun(t, c, m, cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), `weight "emb.weight" is also used by`) {
		t.Errorf("error %v", err)
	}
}
