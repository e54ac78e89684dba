package bake

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// products is a model with the forms of weights that are quantised: MatMul, Gemm with and without
// transposition and bias, and Conv; and a vector that is not.
func products(t *testing.T, opset int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("products", opset)
	s := rng.New(4).Stream()
	weight := func(name string, fan int, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		for i := range w.Float32s() {
			w.Float32s()[i] = float32(s.Normal() / math.Sqrt(float64(fan)))
		}
		return b.Initializer(name, w)
	}
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(4), onnx.Known(32)}})
	y := b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{x, weight("matmul", 32, 32, 40)})})
	y = b.Op("Tanh", []onnx.Value{b.Op("Conv", []onnx.Value{y, weight("conv", 132, 16, 4, 33)}, onnx.AttrInts("pads", 16, 16))})
	y = b.Op("Reshape", []onnx.Value{y, b.Ints(-1, 640)})
	y = b.Op("Tanh", []onnx.Value{b.Op("Gemm", []onnx.Value{y, weight("gemm", 640, 640, 24), weight("bias", 24, 24)})})
	z := b.Op("Gemm", []onnx.Value{y, weight("transposed", 24, 48, 24)}, onnx.AttrInt("transB", 1))
	small := b.Op("MatMul", []onnx.Value{y, weight("small", 24, 24, 2)})
	b.Output(b.Rename(z, "z"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(48)}})
	b.Output(b.Rename(small, "small_out"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}})
	best := b.Op("ArgMax", []onnx.Value{"z"}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0))
	b.Output(b.Rename(best, "best"), onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func normals(seed uint64, shape ...int) *tensor.Tensor {
	x, s := tensor.New(tensor.Float32, shape...), rng.New(seed).Stream()
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(s.Normal())
	}
	return x
}

func encoded(t *testing.T, m *onnx.Model) int {
	t.Helper()
	b, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

func TestLowerPrecisionIsCloseAndSmall(t *testing.T) {
	x := normals(8, 200, 4, 32)
	cases := 0
	for _, opset := range []int{11, 13, 18} {
		m := products(t, opset)
		for _, k := range []struct {
			name         string
			make         func(*onnx.Model) (*onnx.Model, int, error)
			weights      int
			share, delta float64
		}{{"float16", Float16, 4, 0.6, 0.005}, {"int8", Int8, 4, 0.4, 0.2}} {
			low, n, err := k.make(m)
			if err != nil {
				t.Fatal(err)
			}
			if n != k.weights {
				t.Errorf("%s: %d weights, want %d", k.name, n, k.weights)
			}
			if have, want := encoded(t, low), int(k.share*float64(encoded(t, m))); have > want {
				t.Errorf("%s: %d bytes, want at most %d", k.name, have, want)
			}
			if v, _ := low.Meta(metaWeights); v != k.name {
				t.Errorf("%s: metadata %q", k.name, v)
			}
			if _, ok := m.Meta(metaWeights); ok {
				t.Error("the model itself has changed")
			}
			for _, c := range testengines.All(t) {
				l, err := NewLosses(c, m, low, LossPolicy{})
				if err != nil {
					t.Fatal(err)
				}
				for from := 0; from < 200; from += 100 {
					if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": x.Rows(from, from+100)}, nil); err != nil {
						t.Fatal(err)
					}
				}
				got := l.Loss()
				if got.Rows != 200 || got.Values != 200*50 || got.Choices != 200 || got.MeanDelta == 0 || got.MeanDelta > got.MaxDelta || got.MaxDelta > k.delta || got.Changed > 20 {
					t.Errorf("%s, %s, opset %d: %+v", k.name, c.Name(), opset, got)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				rowsAreIndependent(t, c, low, x)
				cases++
			}
		}
	}
	if cases < 4 {
		t.Errorf("%d cases", cases)
	}
}

// rowsAreIndependent compares rows one by one with all at once, where one row is much larger than
// the others: a server may join any requests into a batch.
func rowsAreIndependent(t *testing.T, c engine.Compiler, m *onnx.Model, x *tensor.Tensor) {
	t.Helper()
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x = x.Rows(0, 8).Clone()
	for i := range x.Rows(3, 4).Float32s() {
		x.Rows(3, 4).Float32s()[i] *= 50
	}
	all, err := runOn(t.Context(), s, map[string]*tensor.Tensor{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	for row := range 8 {
		one, err := runOn(t.Context(), s, map[string]*tensor.Tensor{"x": x.Rows(row, row+1)})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range one[0].Float32s() {
			// Rounding of a layer in float32 may move an activation to the next of 255 levels.
			if got := all[0].Rows(row, row+1).Float32s()[i]; math.Abs(float64(got-want)) > 0.02 {
				t.Errorf("%s: row %d gives %g alone and %g among others", c.Name(), row, want, got)
			}
		}
	}
}

// TestWhatIsNotQuantised changes one thing at a time that makes a weight stay as it is.
func TestWhatIsNotQuantised(t *testing.T) {
	find := func(m *onnx.Model, name string) *onnx.TensorProto {
		for _, p := range m.Graph.Initializer {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no initializer %q", name)
		return nil
	}
	node := func(m *onnx.Model, weight string) *onnx.Node {
		for _, n := range m.Graph.Node {
			if len(n.Input) > 1 && n.Input[1] == weight {
				return n
			}
		}
		t.Fatalf("no node reads %q", weight)
		return nil
	}
	for _, k := range []struct {
		name          string
		edit          func(m *onnx.Model)
		float16, int8 int
	}{
		{"alpha", func(m *onnx.Model) { node(m, "gemm").SetAttr(onnx.AttrFloat("alpha", 2)) }, 4, 3},
		{"another domain", func(m *onnx.Model) {
			node(m, "matmul").Domain = "com.example"
			m.SetOpset("com.example", 1)
		}, 4, 3},
		{"too large a number", func(m *onnx.Model) {
			w := normals(1, 32, 40)
			w.Float32s()[5] = 1e6
			*find(m, "matmul") = *onnx.ProtoOf("matmul", w)
		}, 3, 4},
		{"not a number", func(m *onnx.Model) {
			w := normals(1, 32, 40)
			w.Float32s()[5] = float32(math.NaN())
			*find(m, "matmul") = *onnx.ProtoOf("matmul", w)
		}, 3, 3},
	} {
		m := products(t, 13)
		k.edit(m)
		if _, n, err := Float16(m); err != nil || n != k.float16 {
			t.Errorf("%s: float16: %d weights, %v; want %d", k.name, n, err, k.float16)
		}
		if _, n, err := Int8(m); err != nil || n != k.int8 {
			t.Errorf("%s: int8: %d weights, %v; want %d", k.name, n, err, k.int8)
		}
	}
}

func TestLossesRefuse(t *testing.T) {
	m := products(t, 13)
	other := m.ShallowClone()
	other.Graph.Output = other.Graph.Output[1:]
	c := testengines.All(t)[0]
	if _, err := NewLosses(c, m, other, LossPolicy{}); err == nil || !strings.Contains(err.Error(), "do not begin with") {
		t.Errorf("error %v", err)
	}
	l, err := NewLosses(c, m, m, LossPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Add(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), `input x float32[-1 4 32] is not given`) {
		t.Errorf("error %v", err)
	}
	if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": normals(1, 3, 4, 32)}, nil); err != nil || l.Loss() != (Loss{Rows: 3, Values: 150, Choices: 3}) {
		t.Errorf("a model and itself: %+v, %v", l.Loss(), err)
	}
}
