package enginetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// opset is that of the suite's models.
const opset = onnx.DefaultOpset

func finish(t *testing.T, b *onnx.Builder) *onnx.Model {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// identity is x -> y of one type.
func identity(t *testing.T, in onnx.TensorType) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("identity", opset)
	x := b.Input("x", in)
	b.Output(b.Rename(x, "y"), in)
	return finish(t, b)
}

func symbolic(d tensor.DType, dims ...onnx.Dim) onnx.TensorType {
	return onnx.TensorType{DType: d, Ranked: true, Dims: dims}
}

// net is a perceptron with two tanh layers whose parameters are graph inputs.
type net struct {
	batch, obs, hidden, act int
}

// shapes of w1, b1, w2, b2, w3, b3.
func (n net) params() [][]int {
	return [][]int{{n.obs, n.hidden}, {n.hidden}, {n.hidden, n.hidden}, {n.hidden}, {n.hidden, n.act}, {n.act}}
}

var paramNames = []string{"w1", "b1", "w2", "b2", "w3", "b3"}

func (n net) model(t *testing.T, batch onnx.Dim) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("policy", opset)
	v := b.Input("obs", symbolic(tensor.Float32, batch, onnx.Known(n.obs)))
	p := make([]onnx.Value, 6)
	for i, shape := range n.params() {
		p[i] = b.Input(paramNames[i], onnx.TypeOf(tensor.Float32, shape...))
	}
	for i := 0; i < 6; i += 2 {
		v = b.Op("Gemm", []onnx.Value{v, p[i], p[i+1]})
		if i < 4 {
			v = b.Op("Tanh", []onnx.Value{v})
		}
	}
	b.Output(b.Rename(v, "logits"), symbolic(tensor.Float32, batch, onnx.Known(n.act)))
	return finish(t, b)
}

// want computes the same in double precision.
func (n net) want(in []*tensor.Tensor) []float32 {
	x := make([]float64, 0, n.batch*n.obs)
	for _, v := range in[0].Float32s() {
		x = append(x, float64(v))
	}
	cols := n.obs
	for i := 1; i < 7; i += 2 {
		w, bias := in[i].Float32s(), in[i+1].Float32s()
		out := len(bias)
		y := make([]float64, n.batch*out)
		for r := range n.batch {
			for c := range out {
				sum := float64(bias[c])
				for k := range cols {
					sum += x[r*cols+k] * float64(w[k*out+c])
				}
				if i < 5 {
					sum = math.Tanh(sum)
				}
				y[r*out+c] = sum
			}
		}
		x, cols = y, out
	}
	f := make([]float32, len(x))
	for i, v := range x {
		f[i] = float32(v)
	}
	return f
}

// inputs draws an observation and parameters.
func (n net) inputs(seed uint64, alloc func(d tensor.DType, shape ...int) *tensor.Tensor) []*tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	in := []*tensor.Tensor{alloc(tensor.Float32, n.batch, n.obs)}
	for _, shape := range n.params() {
		in = append(in, alloc(tensor.Float32, shape...))
	}
	for _, t := range in {
		for i := range t.Float32s() {
			t.Float32s()[i] = float32(r.NormFloat64()) * 0.3
		}
	}
	return in
}

// arenaAlloc carves tensors from an arena that is closed after the test.
func arenaAlloc(t *testing.T, bytes int) (func(d tensor.DType, shape ...int) *tensor.Tensor, *tensor.Arena) {
	t.Helper()
	a, err := tensor.NewArena(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	off := 0
	return func(d tensor.DType, shape ...int) *tensor.Tensor {
		v, err := a.Tensor(d, off, shape...)
		if err != nil {
			t.Fatal(err)
		}
		off += tensor.AlignUp(len(v.Bytes()))
		return v
	}, a
}

// compile returns a session that is closed after the test.
func compile(t *testing.T, e engine.Compiler, m *onnx.Model, o engine.Options) engine.Session {
	t.Helper()
	s, err := e.Compile(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return s
}

func close32(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, expected %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: element %d is %v, expected %v", what, i, got[i], want[i])
		}
	}
}
