package loss

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// identity is a model whose output is its input, float32[batch, dims...].
func identity(t *testing.T, dims ...int) *onnx.Model {
	b := onnx.NewBuilder("identity", 18)
	tt := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
	for _, d := range dims {
		tt.Dims = append(tt.Dims, onnx.Known(d))
	}
	b.Output(b.Rename(b.Input("x", tt), "y"), tt)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// evaluate runs the attached loss with weights 1/batch and returns all float outputs but y.
func evaluate(t *testing.T, m *onnx.Model, feed map[string]*tensor.Tensor) map[string]float64 {
	t.Helper()
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := feed["x"].Shape()[0]
	w := tensor.New(tensor.Float32, n)
	for i := range w.Float32s() {
		w.Float32s()[i] = 1 / float32(n)
	}
	feed[WeightInput] = w
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, p := range s.Inputs() {
		if in[i] = feed[p.Name]; in[i] == nil {
			t.Fatalf("no value for input %v", p)
		}
	}
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(context.Background(), out, in); err != nil {
		t.Fatal(err)
	}
	res := map[string]float64{}
	for i, p := range s.Outputs() {
		if p.Name != "y" {
			res[p.Name] = float64(out[i].Float32s()[0])
		}
	}
	return res
}

// The expected values were computed with PyTorch 2 (mse_loss, l1_loss, huber_loss, cross_entropy,
// binary_cross_entropy and its with-logits form, all with reduction mean).
func TestLossesEqualPyTorch(t *testing.T) {
	x2 := tensor.Of([]float32{0.5, -1.25, 2, 0.1, -3, 0.75}, 3, 2)
	y2 := tensor.Of([]float32{0, 1, 2.5, -0.4, -0.5, 0.7}, 3, 2)
	logits := tensor.Of([]float32{2, -1, 0.5, 0.1, 0.2, 0.3, -2, 1, 4}, 3, 3)
	labels := tensor.Of([]int64{0, 2, 1}, 3)
	sequence, next := tensor.Of([]float32{2, -1, 0.5, 0.1, 0.2, 0.3, -2, 1, 4, 1, 0.5, -0.5}, 2, 3, 2), tensor.Of([]int64{0, 2, 1, 1}, 2, 2)
	p2 := tensor.Of([]float32{0.9, 0.2, 0.4, 0.6, 0.05, 0.5}, 3, 2)
	bits := tensor.Of([]float32{1, 0, 1, 1, 0, 0}, 3, 2)
	ignore := -100
	huberWant := func(delta float64) float64 {
		s := 0.0
		for i, a := range x2.Float32s() {
			d := math.Abs(float64(a - y2.Float32s()[i]))
			if d <= delta {
				s += 0.5 * d * d
			} else {
				s += delta * (d - 0.5*delta)
			}
		}
		return s / 6
	}
	for _, c := range []struct {
		term   Term
		x, y   *tensor.Tensor
		dims   []int
		want   float64
		metric map[string]float64
	}{
		{Term{Kind: "mse"}, x2, y2, []int{2}, mseOf(x2, y2), map[string]float64{"mae": maeOf(x2, y2)}},
		{Term{Kind: "mae"}, x2, y2, []int{2}, maeOf(x2, y2), nil},
		{Term{Kind: "huber"}, x2, y2, []int{2}, huberWant(1), nil},
		{Term{Kind: "huber", Delta: 0.3}, x2, y2, []int{2}, huberWant(0.3), nil},
		{Term{Kind: "cross_entropy"}, logits, labels, []int{3}, 1.4314002, map[string]float64{"accuracy": 2.0 / 3}},
		{Term{Kind: "cross_entropy", LabelSmoothing: 0.1}, logits, labels, []int{3}, 1.4847335, nil},
		{Term{Kind: "cross_entropy"}, sequence, next, []int{3, 2}, 0.4742527, nil},
		{Term{Kind: "cross_entropy", Axis: 1}, sequence, next, []int{3, 2}, 0.4742527, nil},
		{Term{Kind: "cross_entropy", Axis: -1, LabelSmoothing: 0.1}, sequence, tensor.Of([]int64{1, 0, 1, 0, 0, 1}, 2, 3), []int{3, 2}, 1.4069059, map[string]float64{"accuracy": 0.5}},
		// PyTorch's losses of each row by itself, averaged; a row without any label counts 0.
		{Term{Kind: "cross_entropy", IgnoreIndex: &ignore}, sequence, tensor.Of([]int64{0, -100, 1, 1}, 2, 2), []int{3, 2}, 0.3718540, map[string]float64{"accuracy": 0.75}},
		{Term{Kind: "cross_entropy", IgnoreIndex: &ignore}, logits, tensor.Of([]int64{0, -100, 1}, 3), []int{3}, 1.0974190, map[string]float64{"accuracy": 1.0 / 3}},
		{Term{Kind: "bce"}, p2, bits, []int{2}, 0.4166768, nil},
		{Term{Kind: "bce_logits"}, x2, bits, []int{2}, 0.4471315, nil},
		{Term{Kind: "mse", Weight: 2.5}, x2, y2, []int{2}, 2.5 * mseOf(x2, y2), nil},
	} {
		c.term.Output = "y"
		m, metrics, err := Attach(identity(t, c.dims...), []Term{c.term})
		if err != nil {
			t.Fatal(err)
		}
		got := evaluate(t, m, map[string]*tensor.Tensor{"x": c.x, TargetInput("y"): c.y})
		if math.Abs(got[Output]-c.want) > 2e-6*(1+c.want) {
			t.Errorf("%+v: loss %.7f, want %.7f", c.term, got[Output], c.want)
		}
		for k, want := range sorted.All(c.metric) {
			if v := got[MetricOutput(k, "y")]; math.Abs(v-want) > 1e-6 {
				t.Errorf("%s: %s %g, want %g", c.term.Kind, k, v, want)
			}
		}
		if len(metrics)+1 != len(got) {
			t.Errorf("%s: metrics %v, outputs %v", c.term.Kind, metrics, got)
		}
	}
}

func mseOf(a, b *tensor.Tensor) float64 {
	s := 0.0
	for i, v := range a.Float32s() {
		d := float64(v) - float64(b.Float32s()[i])
		s += d * d
	}
	return s / float64(a.Len())
}

func maeOf(a, b *tensor.Tensor) float64 {
	s := 0.0
	for i, v := range a.Float32s() {
		s += math.Abs(float64(v) - float64(b.Float32s()[i]))
	}
	return s / float64(a.Len())
}

// userLoss is |prediction − target|³, per sample or as a mean over the batch.
func userLoss(t *testing.T, mean bool) *onnx.Model {
	b := onnx.NewBuilder("cubic", 18)
	tt := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}}
	p, y := b.Input("prediction", tt), b.Input("target", tt)
	cube := b.Op("Pow", []onnx.Value{b.Op("Abs", []onnx.Value{b.Op("Sub", []onnx.Value{p, y})}), b.Float(3)})
	axes := []onnx.Value{cube, b.Ints(1)}
	out := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: tt.Dims[:1]}
	if mean {
		axes, out = []onnx.Value{cube}, onnx.TypeOf(tensor.Float32)
	}
	b.Output(b.Rename(b.Op("ReduceMean", axes, onnx.AttrInt("keepdims", 0)), "out"), out)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestLossGraphOfTheUsersOwn(t *testing.T) {
	x := tensor.Of([]float32{1, 2, 3, 5}, 2, 2)
	y := tensor.Of([]float32{0, 0, 0, 0}, 2, 2)
	for _, mean := range []bool{false, true} {
		m, _, err := Attach(identity(t, 2), []Term{{Output: "y", Kind: "onnx", Model: userLoss(t, mean)}})
		if err != nil {
			t.Fatal(err)
		}
		got := evaluate(t, m, map[string]*tensor.Tensor{"x": x, TargetInput("y"): y})
		if want := (1.0 + 8 + 27 + 125) / 4; math.Abs(got[Output]-want) > 1e-4 {
			t.Errorf("mean %v: loss %g, want %g", mean, got[Output], want)
		}
	}
}

func TestBadTermsAreNamed(t *testing.T) {
	scalar := onnx.NewBuilder("s", 18)
	scalar.Output(scalar.Rename(scalar.Input("x", onnx.TypeOf(tensor.Float32)), "y"), onnx.TypeOf(tensor.Float32))
	sm, err := scalar.Model()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    *onnx.Model
		term Term
		want string
	}{
		{identity(t, 2), Term{Output: "z", Kind: "mse"}, `no output "z"; it has y`},
		{identity(t, 2), Term{Output: "y", Kind: "l2"}, `is "l2"`},
		{identity(t), Term{Output: "y", Kind: "cross_entropy"}, "known number of classes on axis 1"},
		{identity(t, 2), Term{Output: "y", Kind: "onnx"}, "needs the file"},
		{identity(t, 2), Term{Output: "y", Kind: "mse", Weight: math.NaN()}, "weight"},
		{identity(t, 2), Term{Output: "y", Kind: "cross_entropy", LabelSmoothing: 1}, "label_smoothing"},
		{identity(t, 2), Term{Output: "y", Kind: "mse", IgnoreIndex: new(int)}, "ignore_index"},
		{sm, Term{Output: "y", Kind: "mse"}, "batch as first extent"},
	} {
		if _, _, err := Attach(c.m, []Term{c.term}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.term, err, c.want)
		}
	}
	if _, _, err := Attach(identity(t, 2), nil); err == nil {
		t.Error("no terms were accepted")
	}
}
