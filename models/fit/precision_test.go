package fit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// mlpOf is mlp in another floating-point type, with its inputs and outputs.
func mlpOf(t testing.TB, d tensor.DType) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		typed := func(name string, x *tensor.Tensor) onnx.Value {
			y, err := tensor.FromFloat32(x, d)
			if err != nil {
				t.Fatal(err)
			}
			return b.Initializer(name, y)
		}
		h := b.Op("Tanh", []onnx.Value{b.Op("Gemm", []onnx.Value{b.Input("x", batchOf(d, 4)), typed("fc1.weight", filled(1, 4, 8)), typed("fc1.bias", filled(2, 8))})})
		b.Output(b.Rename(b.Op("Gemm", []onnx.Value{h, typed("fc2.weight", filled(3, 8, 2)), typed("fc2.bias", filled(4, 2))}), "y"), batchOf(d, 2))
	})
}

// TestOtherPrecisions trains the same network in every floating-point type: in float32, from the
// weights as the type holds them, and written back in the type, with and without adapters. float32
// master weights collect updates that half precision would round away.
func TestOtherPrecisions(t *testing.T) {
	runs := 0
	for _, d := range []tensor.DType{tensor.Float64, tensor.Float16, tensor.BFloat16} {
		for _, c := range testengines.All(t) {
			for _, adapters := range []bool{false, true} {
				m := mlpOf(t, d)
				cfg := regression(table(t, 48))
				cfg.Optimizer.LR = 1e-4 // Steps below what half precision tells apart at most weights.
				if adapters {
					cfg.LoRA = &lora.Config{Rank: 2, Target: []string{"fc1.*"}}
				} else {
					cfg.Freeze = []string{"fc2.bias"}
				}
				tr := trained(t, c, m, cfg)
				// It is trained as the float32 network from the same weights.
				plain, changed, err := models.InFloat32(m)
				if err != nil || !changed {
					t.Fatal(changed, err)
				}
				reference := trained(t, c, plain, cfg)
				moved := 0
				for _, s := range reference.Params().Segments() {
					same := tr.Params().Segment(s.Role)
					if same == nil || !slices.Equal(same.Floats(), s.Floats()) {
						t.Errorf("%v on %s: %v parameters differ from those of the float32 network", d, c.Name(), s.Role)
					}
				}
				baked, err := tr.Baked()
				if err != nil {
					t.Fatal(err)
				}
				if err := onnx.Check(baked); err != nil {
					t.Error(err)
				}
				if in, _ := baked.Graph.Input[0].TensorType(); in.DType != d || tr.Precision() != d {
					t.Errorf("%v on %s: the written input is %v", d, c.Name(), in)
				}
				function, err := tr.BakedFloat32()
				if err != nil {
					t.Fatal(err)
				}
				for i, p := range baked.Graph.Initializer {
					want, err := tensor.FromFloat32(tensorOf(t, function.Graph.Initializer[i]), d)
					if err != nil {
						t.Fatal(err)
					}
					if got := tensorOf(t, p); got.DType() != d || !slices.Equal(got.Bytes(), want.Bytes()) {
						t.Errorf("%v on %s: %s is not the rounded weight", d, c.Name(), p.Name)
					}
					if !slices.Equal(tensorOf(t, p).Bytes(), tensorOf(t, m.Graph.FindInitializer(p.Name)).Bytes()) {
						moved++
					} else if !adapters && p.Name != "fc2.bias" {
						t.Errorf("%v on %s: %s has not moved", d, c.Name(), p.Name)
					}
				}
				if want := map[bool]int{false: 3, true: 1}[adapters]; moved != want {
					t.Errorf("%v on %s: %d weights have moved, want %d", d, c.Name(), moved, want)
				}
				runs++
			}
		}
	}
	if want := 3 * 2 * len(testengines.All(t)); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

// TestWeightsBeyondHalfPrecision are an error that names the parameter, not infinities in a file.
func TestWeightsBeyondHalfPrecision(t *testing.T) {
	cfg := regression(table(t, 16))
	tr := trained(t, testengines.Fastest(t), mlpOf(t, tensor.Float16), cfg)
	tr.Params().View("fc1.bias").Float32s()[3] = 70000
	if _, err := tr.Baked(); err == nil || !strings.Contains(err.Error(), `"fc1.bias": element 3 is 70000, which does not fit float16`) {
		t.Errorf("error %v", err)
	}
	tr.Params().View("fc1.bias").Float32s()[3] = 65504
	if _, err := tr.Baked(); err != nil {
		t.Error(err)
	}
}

// TestHalfPrecisionResumes: the checkpoint holds the float32 weights, not the rounded ones.
func TestHalfPrecisionResumes(t *testing.T) {
	c, cfg := testengines.Fastest(t), regression(table(t, 48))
	cfg.Optimizer.LR = 1e-4
	whole := run(t, c, mlpOf(t, tensor.Float16), cfg, runOptions{})
	store := t.TempDir()
	if r := run(t, c, mlpOf(t, tensor.Float16), cfg, runOptions{store: store, stop: whole.Steps / 2}); r.Stopped != Interrupted {
		t.Fatalf("stopped: %q", r.Stopped)
	}
	again := run(t, c, mlpOf(t, tensor.Float16), cfg, runOptions{store: store})
	if len(whole.losses) < 4 || !slices.Equal(again.losses, whole.losses[len(whole.losses)-len(again.losses):]) || len(again.losses) == len(whole.losses) {
		t.Errorf("losses %v after resuming, want the end of %v", again.losses, whole.losses)
	}
	for name, w := range sorted.All(whole.weights) {
		if !slices.Equal(w, again.weights[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestScalarParameters: a temperature and a gate are trained, saved, restored and written like the
// other weights.
func TestScalarParameters(t *testing.T) {
	net := func() *onnx.Model {
		return model(t, func(b *onnx.Builder) {
			x := b.Input("x", batchOf(tensor.Float32, 4))
			h := b.Op("Mul", []onnx.Value{b.Op("MatMul", []onnx.Value{x, b.Initializer("w", filled(1, 4, 2))}), b.Op("Exp", []onnx.Value{b.Initializer("temperature", tensor.Scalar(float32(0.5)))})})
			b.Output(b.Rename(b.Op("Add", []onnx.Value{h, b.Initializer("gate", tensor.Scalar(float32(0)))}), "y"), batchOf(tensor.Float32, 2))
		})
	}
	for _, c := range testengines.All(t) {
		cfg := regression(table(t, 48))
		whole := run(t, c, net(), cfg, runOptions{})
		for name, before := range sorted.All(map[string]float32{"temperature": 0.5, "gate": 0}) {
			if w := whole.weights[name]; len(w) != 1 || w[0] == before || math.IsNaN(float64(w[0])) {
				t.Errorf("%s: %s is %v after training from %g", c.Name(), name, w, before)
			}
		}
		store := t.TempDir()
		run(t, c, net(), cfg, runOptions{store: store, stop: whole.Steps / 2})
		if again := run(t, c, net(), cfg, runOptions{store: store}); !slices.Equal(again.weights["temperature"], whole.weights["temperature"]) {
			t.Errorf("%s: the temperature is %v after resuming, want %v", c.Name(), again.weights["temperature"], whole.weights["temperature"])
		}
		tr := trained(t, c, net(), cfg)
		m := proveExport(t, c, tr)
		if p := m.Graph.FindInitializer("temperature"); p == nil || len(p.Dims) != 0 {
			t.Errorf("%s: the written temperature is %v", c.Name(), p)
		}
		cfg.Freeze = []string{"temp*"}
		if r := run(t, c, net(), cfg, runOptions{}); r.weights["temperature"][0] != 0.5 {
			t.Errorf("%s: a frozen temperature has become %v", c.Name(), r.weights["temperature"])
		}
	}
}
