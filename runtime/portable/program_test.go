package portable_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// randomGraph grows a graph of square matrices with views, repeated operands, several outputs per
// node and values that live long. It returns the model and its nodes' values in order, all of shape
// 4×4.
func randomGraph(r *rand.Rand, nodes int) (*onnx.Model, []onnx.Value) {
	b := onnx.NewBuilder("random", onnx.DefaultOpset)
	square := onnx.TypeOf(tensor.Float32, 4, 4)
	vals := []onnx.Value{b.Input("x", square), b.Input("y", square)}
	pick := func() onnx.Value {
		// Recent values more often than old ones, so that registers are freed and taken again.
		if r.IntN(3) > 0 {
			return vals[max(0, len(vals)-1-r.IntN(4))]
		}
		return vals[r.IntN(len(vals))]
	}
	for range nodes {
		switch r.IntN(9) {
		case 0:
			vals = append(vals, b.Op("Tanh", []onnx.Value{pick()}))
		case 1:
			vals = append(vals, b.Op("Add", []onnx.Value{pick(), pick()}))
		case 2:
			v := pick()
			vals = append(vals, b.Op("Mul", []onnx.Value{v, v}), b.Op("Tanh", []onnx.Value{v}))
		case 3:
			vals = append(vals, b.Op("Identity", []onnx.Value{pick()}))
		case 4:
			flat := b.Op("Reshape", []onnx.Value{pick(), b.Ints(2, 8)})
			vals = append(vals, b.Op("Reshape", []onnx.Value{flat, b.Ints(4, 4)}))
		case 5:
			vals = append(vals, b.Op("Transpose", []onnx.Value{pick()}))
		case 6:
			h := b.OpN("Split", "", 2, []onnx.Value{pick(), b.Ints(1, 3)}, onnx.AttrInt("axis", 1))
			vals = append(vals, b.Op("Concat", []onnx.Value{h[1], h[0]}, onnx.AttrInt("axis", 1)))
		case 7:
			v := b.Op("MatMul", []onnx.Value{pick(), pick()})
			vals = append(vals, b.Op("Tanh", []onnx.Value{v}))
		case 8:
			// A result that nothing reads.
			b.OpN("Split", "", 2, []onnx.Value{pick(), b.Ints(2, 2)})
			vals = append(vals, b.Op("Sub", []onnx.Value{pick(), pick()}))
		}
	}
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m, vals
}

// TestRegistersDoNotCollide compares a graph with few outputs, whose intermediate values share
// registers, with the same graph with every value as an output.
func TestRegistersDoNotCollide(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, vals := randomGraph(r, 5+r.IntN(60))
		all := m.ShallowClone()
		square := onnx.TypeOf(tensor.Float32, 4, 4)
		for _, v := range vals {
			if !slices.ContainsFunc(all.Graph.Output, func(o *onnx.ValueInfo) bool { return o.Name == string(v) }) {
				all.Graph.Output = append(all.Graph.Output, onnx.NewValueInfo(v, square))
			}
		}
		few := m.ShallowClone()
		want := []int{len(all.Graph.Output) - 1, len(all.Graph.Output) - 1 - r.IntN(3), r.IntN(len(all.Graph.Output))}
		for _, i := range want {
			few.Graph.Output = append(few.Graph.Output, all.Graph.Output[i])
		}
		in := []*tensor.Tensor{tensor.New(tensor.Float32, 4, 4), tensor.New(tensor.Float32, 4, 4)}
		s1, s2 := compileModel(t, all), compileModel(t, few)
		out := []*tensor.Tensor{tensor.New(tensor.Float32, 4, 4), tensor.New(tensor.Float32, 4, 4), tensor.New(tensor.Float32, 4, 4)}
		bound, err := s2.Bind(out, in)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, x := range in {
				for i := range x.Float32s() {
					x.Float32s()[i] = r.Float32() - 0.5
				}
			}
			every := make([]*tensor.Tensor, len(all.Graph.Output))
			if err := s1.Run(t.Context(), every, in); err != nil {
				t.Fatal(err)
			}
			if err := bound.Run(); err != nil {
				t.Fatal(err)
			}
			for k, i := range want {
				compared++
				if !bytes.Equal(out[k].Bytes(), every[i].Bytes()) {
					t.Fatalf("seed %d: output %d differs", seed, k)
				}
			}
		}
		if err := bound.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if compared != 60*9 {
		t.Errorf("%d comparisons, expected %d", compared, 60*9)
	}
}

func compileModel(t testing.TB, m *onnx.Model) engine.Session {
	t.Helper()
	return compileWith(t, m, engine.Options{})
}

func compileWith(t testing.TB, m *onnx.Model, o engine.Options) engine.Session {
	t.Helper()
	s, err := portable.New().Compile(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func run(t testing.TB, m *onnx.Model, in ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	s := compileModel(t, m)
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestThreadsDoNotChangeResults runs products large enough to be shared out.
func TestThreadsDoNotChangeResults(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	checked := 0
	for _, c := range []struct {
		ta, tb  int
		m, n, k int
	}{{0, 0, 200, 230, 190}, {0, 1, 131, 257, 300}, {1, 0, 260, 128, 150}, {1, 1, 128, 129, 130}, {0, 0, 3, 1000, 1000}} {
		shape := func(t, a, b int) []int {
			if t == 1 {
				return []int{b, a}
			}
			return []int{a, b}
		}
		x, y := tensor.New(tensor.Float32, shape(c.ta, c.m, c.k)...), tensor.New(tensor.Float32, shape(c.tb, c.k, c.n)...)
		for _, v := range []*tensor.Tensor{x, y} {
			for i := range v.Float32s() {
				v.Float32s()[i] = r.Float32() - 0.5
			}
		}
		b := onnx.NewBuilder("product", onnx.DefaultOpset)
		p := b.Op("Gemm", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, x.Shape()...)), b.Input("y", onnx.TypeOf(tensor.Float32, y.Shape()...))},
			onnx.AttrInt("transA", c.ta), onnx.AttrInt("transB", c.tb))
		b.Output(p, onnx.TypeOf(tensor.Float32, c.m, c.n))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		var first *tensor.Tensor
		for _, threads := range []int{1, 2, 3, 7} {
			s := compileWith(t, m, engine.Options{Threads: threads})
			for range 2 {
				out := []*tensor.Tensor{nil}
				if err := s.Run(t.Context(), out, []*tensor.Tensor{x, y}); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = out[0]
				}
				checked++
				if !bytes.Equal(first.Bytes(), out[0].Bytes()) {
					t.Errorf("%+v: %d threads change the result", c, threads)
				}
			}
		}
		// The result is right, by plain sums.
		at := func(v *tensor.Tensor, tr, i, j int) float64 {
			if tr == 1 {
				i, j = j, i
			}
			return float64(v.Float32s()[i*v.Shape()[1]+j])
		}
		for range 50 {
			i, j, want := r.IntN(c.m), r.IntN(c.n), 0.0
			for l := range c.k {
				want += at(x, c.ta, i, l) * at(y, c.tb, l, j)
			}
			if got := float64(first.Float32s()[i*c.n+j]); got-want > 1e-4 || want-got > 1e-4 {
				t.Errorf("%+v: element %d, %d is %v, expected %v", c, i, j, got, want)
			}
		}
	}
	if checked != 5*4*2 {
		t.Errorf("%d runs compared, expected 40", checked)
	}
}

func TestEval(t *testing.T) {
	out, err := portable.Eval(&onnx.Node{OpType: "Split", Input: []string{"x", "sizes"}, Output: []string{"", "b"}}, 18,
		[]*tensor.Tensor{tensor.Of([]float32{1, 2, 3}, 3), tensor.Of([]int64{1, 2}, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if out[0] != nil || !slices.Equal(out[1].Float32s(), []float32{2, 3}) {
		t.Errorf("got %v", out)
	}
	out, err = portable.Eval(&onnx.Node{OpType: "Clip", Input: []string{"x", "", "hi"}, Output: []string{"y"}}, 13,
		[]*tensor.Tensor{tensor.Of([]float32{1, 9}, 2), nil, tensor.Scalar(float32(5))})
	if err != nil || !slices.Equal(out[0].Float32s(), []float32{1, 5}) {
		t.Errorf("absent input: %v, %v", out, err)
	}
	if _, err = portable.Eval(&onnx.Node{OpType: "Nonsense", Output: []string{"y"}}, 13, nil); err == nil {
		t.Error("an unknown operator was evaluated")
	}
}

// Kernels that a newer opset gave another meaning, against numbers that the standard's reference
// gives.
func TestVersions(t *testing.T) {
	twelve := tensor.Of([]float32{0, 1, 2, 3, 4, 5, 6, 7}, 1, 2, 2, 2)
	block := onnx.AttrInt("blocksize", 2)
	noop := onnx.AttrInt("noop_with_empty_axes", 1)
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		op    string
		opset int
		in    []*tensor.Tensor
		attrs []*onnx.Attribute
		want  any // numbers, or what the error says
	}{
		{"SpaceToDepth", 28, []*tensor.Tensor{twelve}, []*onnx.Attribute{block, onnx.AttrStr("mode", "CRD")}, []float32{0, 1, 2, 3, 4, 5, 6, 7}},
		{"SpaceToDepth", 28, []*tensor.Tensor{twelve}, []*onnx.Attribute{block}, []float32{0, 4, 1, 5, 2, 6, 3, 7}},
		{"SpaceToDepth", 28, []*tensor.Tensor{twelve}, []*onnx.Attribute{block, onnx.AttrStr("mode", "crd")}, `attribute "mode" is "crd", DCR, CRD expected`},
		{"SpaceToDepth", 29, []*tensor.Tensor{twelve}, []*onnx.Attribute{block}, "SpaceToDepth is not implemented for opset 29, the newest known is 28"},
		{"Add", 6, []*tensor.Tensor{twelve, twelve}, nil, "Add is not implemented in version 6, which opset 6 has; versions 7, 13, 14 are"},
		{"ReduceL1", 18, []*tensor.Tensor{tensor.Of([]float32{-3, 2}, 2)}, []*onnx.Attribute{noop}, []float32{3, 2}},
		{"ReduceL2", 18, []*tensor.Tensor{tensor.Of([]float32{-3, 2}, 2), tensor.New(tensor.Int64, 0)}, []*onnx.Attribute{noop}, []float32{3, 2}},
		{"ReduceSumSquare", 18, []*tensor.Tensor{tensor.Of([]float32{-3, 2}, 2)}, []*onnx.Attribute{noop}, []float32{9, 4}},
		{"ReduceLogSum", 18, []*tensor.Tensor{tensor.Of([]float32{1, 0}, 2)}, []*onnx.Attribute{noop}, []float32{0, -inf}},
		{"ReduceSum", 18, []*tensor.Tensor{tensor.Of([]float32{-3, 2}, 2)}, []*onnx.Attribute{noop}, []float32{-3, 2}},
		{"Mod", 28, []*tensor.Tensor{tensor.Of([]float32{-7, 7, 3, -3, 4}, 5), tensor.Of([]float32{3, -3, inf, inf, -2}, 5)}, nil, []float32{2, -2, 3, inf, float32(math.Copysign(0, -1))}},
		{"BitShift", 28, []*tensor.Tensor{tensor.Of([]int32{-8, 5, -1, 1}, 4), tensor.Of([]int32{1, 40, -1, 31}, 4)}, []*onnx.Attribute{onnx.AttrStr("direction", "RIGHT")}, []int32{-4, 0, -1, 0}},
		{"BitShift", 28, []*tensor.Tensor{tensor.Of([]int32{-8, 5, -1, 1}, 4), tensor.Of([]int32{1, 40, -1, 31}, 4)}, []*onnx.Attribute{onnx.AttrStr("direction", "LEFT")}, []int32{-16, 0, 0, math.MinInt32}},
		{"QuantizeLinear", 23, []*tensor.Tensor{twelve, tensor.Scalar(float32(1))}, []*onnx.Attribute{onnx.AttrInt("precision", int(tensor.Float16))}, "precision"},
		{"Range", 27, []*tensor.Tensor{tensor.Scalar(float32(0)), tensor.Scalar(float32(1)), tensor.Scalar(float32(1))}, []*onnx.Attribute{onnx.AttrInt("stash_type", int(tensor.Float64))}, "stash_type"},
	} {
		n := &onnx.Node{OpType: c.op, Output: []string{"y"}, Attribute: c.attrs}
		for i := range c.in {
			n.Input = append(n.Input, fmt.Sprint("x", i))
		}
		out, err := portable.Eval(n, c.opset, c.in)
		says, refused := c.want.(string)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s %d: %v, expected an error that says %q", c.op, c.opset, err, says)
		case refused:
		case err != nil:
			t.Errorf("%s %d: %v", c.op, c.opset, err)
		default:
			want, _ := c.want.([]float32)
			if list, ok := c.want.([]int32); ok && !slices.Equal(out[0].Int32s(), list) {
				t.Errorf("%s %d: %v, expected %v", c.op, c.opset, out[0].Int32s(), list)
			}
			for i, v := range want {
				if got := out[0].Float32s()[i]; got != v || math.Signbit(float64(got)) != math.Signbit(float64(v)) {
					t.Errorf("%s %d: %v, expected %v", c.op, c.opset, out[0].Float32s(), want)
					break
				}
			}
		}
	}
}
