//go:build cgo

package ort_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// conv is a model of one convolution; w has its weights, as an initializer or an input.
func conv(t testing.TB, x, w []int, batch bool, initializer bool, attrs ...*onnx.Attribute) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("conv", 17)
	typ := onnx.TypeOf(tensor.Float32, x...)
	if batch {
		typ.Dims[0] = onnx.Symbol("batch")
	}
	in := b.Input("x", typ)
	weights, bias := tensor.New(tensor.Float32, w...), tensor.New(tensor.Float32, w[0])
	rng.New(1).Stream().FillNormal32(weights.Float32s(), 0, 1)
	rng.New(2).Stream().FillNormal32(bias.Float32s(), 0, 1)
	var kernel onnx.Value
	if initializer {
		// Made of a constant, as a sum of kernels is.
		kernel = b.Op("Add", []onnx.Value{b.Initializer("w", weights), b.Float(0.5)})
	} else {
		kernel = b.Input("w", onnx.TypeOf(tensor.Float32, w...))
	}
	y := b.Op("Conv", []onnx.Value{in, kernel, b.Initializer("bias", bias)}, attrs...)
	return finished(t, b, y)
}

// finished returns a model with these outputs, whose types are inferred.
func finished(t testing.TB, b *onnx.Builder, outputs ...onnx.Value) *onnx.Model {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	env, err := shape.Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range outputs {
		b.Output(y, env.Type(y))
	}
	if m, err = b.Model(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestProductsForConvs compares convolutions that become products with what ONNX Runtime makes of
// them itself, at several batches, and names those that stay as they are.
func TestProductsForConvs(t *testing.T) {
	e := open(t)
	defer e.Close()
	ints, n := onnx.AttrInts, 0
	for _, k := range []struct {
		x, w    []int
		batch   bool
		weights bool
		attrs   []*onnx.Attribute
		product bool
	}{
		{[]int{1, 8, 4, 5}, []int{8, 8, 7, 9}, true, true, []*onnx.Attribute{ints("pads", 3, 4, 3, 4)}, true},
		{[]int{1, 8, 3, 7}, []int{12, 8, 5, 5}, true, true, []*onnx.Attribute{ints("pads", 2, 1, 2, 3)}, true},
		{[]int{1, 16, 5, 5}, []int{8, 16, 3, 3}, false, true, []*onnx.Attribute{ints("strides", 2, 1), ints("pads", 1, 1, 1, 1)}, false},
		{[]int{1, 16, 4, 4}, []int{8, 16, 3, 3}, false, true, []*onnx.Attribute{ints("strides", 2, 1), ints("dilations", 1, 2), ints("pads", 1, 2, 0, 1)}, true},
		{[]int{1, 8, 3, 3}, []int{8, 8, 3, 3}, true, true, nil, true},
		{[]int{64, 80, 4, 5}, []int{80, 80, 7, 9}, false, true, []*onnx.Attribute{ints("pads", 3, 4, 3, 4)}, true},
		// Too large for small batches, weights from outside, few channels, groups, large images.
		{[]int{1, 80, 4, 5}, []int{80, 80, 7, 9}, true, true, []*onnx.Attribute{ints("pads", 3, 4, 3, 4)}, false},
		{[]int{1, 8, 4, 5}, []int{8, 8, 7, 9}, true, false, []*onnx.Attribute{ints("pads", 3, 4, 3, 4)}, false},
		{[]int{1, 4, 4, 5}, []int{4, 4, 7, 9}, true, true, []*onnx.Attribute{ints("pads", 3, 4, 3, 4)}, false},
		{[]int{1, 16, 4, 5}, []int{16, 8, 7, 9}, true, true, []*onnx.Attribute{ints("pads", 3, 4, 3, 4), onnx.AttrInt("group", 2)}, false},
		{[]int{1, 8, 8, 8}, []int{8, 8, 9, 9}, true, true, []*onnx.Attribute{ints("pads", 4, 4, 4, 4)}, false},
		{[]int{1, 8, 4, 5}, []int{8, 8, 7, 9}, true, true, []*onnx.Attribute{onnx.AttrStr("auto_pad", "SAME_UPPER")}, false},
	} {
		m := conv(t, k.x, k.w, k.batch, k.weights, k.attrs...)
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := ort.ProductsForConvs(m, env, engine.OptAll) != m; got != k.product {
			t.Errorf("%v by %v: a product: %v, expected %v", k.x, k.w, got, k.product)
		}
		if ort.ProductsForConvs(m, env, engine.OptNone) != m {
			t.Errorf("%v by %v: a product, and nothing would fold its matrix", k.x, k.w)
		}
		batches := []int{k.x[0]}
		if k.batch {
			batches = []int{1, 3, 40}
		}
		for _, rows := range batches {
			x := tensor.New(tensor.Float32, append([]int{rows}, k.x[1:]...)...)
			rng.New(uint64(rows)).Stream().FillNormal32(x.Float32s(), 0, 1)
			in := []*tensor.Tensor{x}
			if !k.weights {
				in = append(in, tensor.New(tensor.Float32, k.w...))
			}
			want, got := evaluated(t, e, m, engine.OptNone, in), evaluated(t, e, m, engine.OptAll, in)
			for i, y := range want {
				if math.Abs(float64(got[i]-y)) > 1e-4*(1+math.Abs(float64(y))) {
					t.Fatalf("%v by %v, %d rows: element %d is %v, expected %v", k.x, k.w, rows, i, got[i], y)
				}
			}
			n += len(want)
		}
	}
	if n != 245656 {
		t.Errorf("%d elements compared", n)
	}
}

// evaluated returns what a model with one output makes of its inputs.
func evaluated(t *testing.T, e engine.Compiler, m *onnx.Model, level engine.OptLevel, in []*tensor.Tensor) []float32 {
	t.Helper()
	s, err := e.Compile(m, engine.Options{Optimize: level})
	must(t, err)
	defer s.Close()
	out := make([]*tensor.Tensor, 1)
	must(t, s.Run(t.Context(), out, in))
	return out[0].Float32s()
}

// BenchmarkSmallConv measures a convolution of TimesNet over windows of 20 steps, 16 channels in
// and out, as a product, and how many times longer ONNX Runtime's own takes.
func BenchmarkSmallConv(b *testing.B) {
	e := open(b)
	defer e.Close()
	m := conv(b, []int{1, 16, 4, 5}, []int{16, 16, 7, 9}, true, true, onnx.AttrInts("pads", 3, 4, 3, 4))
	// With weights from outside it stays as it is.
	own := conv(b, []int{1, 16, 4, 5}, []int{16, 16, 7, 9}, true, false, onnx.AttrInts("pads", 3, 4, 3, 4))
	for _, rows := range []int{1, 5, 64, 1024} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			b.ReportAllocs()
			x, y, w := tensor.New(tensor.Float32, rows, 16, 4, 5), tensor.New(tensor.Float32, rows, 16, 4, 5), tensor.New(tensor.Float32, 16, 16, 7, 9)
			time := func(m *onnx.Model, in []*tensor.Tensor) time.Duration {
				s, err := e.Compile(m, engine.Options{Threads: 1})
				must(b, err)
				defer s.Close()
				bound, err := s.Bind([]*tensor.Tensor{y}, in)
				must(b, err)
				defer bound.Close()
				must(b, bound.Run())
				start := time.Now()
				for range b.N {
					must(b, bound.Run())
				}
				return time.Since(start)
			}
			theirs := time(own, []*tensor.Tensor{x, w})
			b.ResetTimer()
			ours := time(m, []*tensor.Tensor{x})
			b.ReportMetric(float64(theirs)/float64(ours), "times")
		})
	}
}
