//go:build cgo

package ort_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// pool is a model of one max pool with both outputs.
func pool(t testing.TB, x []int, attrs ...*onnx.Attribute) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("pool", 17)
	out := b.OpN("MaxPool", "", 2, []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, x...))}, attrs...)
	return finished(t, b, out...)
}

// TestPoolsWithIndices compares both outputs of max pools with ONNX Runtime's own, bit for bit,
// with ties, and names those that stay as they are.
func TestPoolsWithIndices(t *testing.T) {
	e := open(t)
	defer e.Close()
	ints := onnx.AttrInts
	type list = []*onnx.Attribute
	elements, taken := 0, 0
	for _, k := range []struct {
		x     []int
		attrs list
		stays bool
	}{
		{[]int{2, 3, 8, 8}, list{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}, false},
		{[]int{2, 3, 9, 7}, list{ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1)}, false},
		{[]int{1, 4, 12, 5}, list{ints("kernel_shape", 3, 2), ints("strides", 1, 1), ints("pads", 1, 1, 1, 0)}, false},
		{[]int{1, 2, 11, 13}, list{ints("kernel_shape", 2, 3), ints("strides", 3, 2), ints("dilations", 2, 2), ints("pads", 1, 2, 1, 2)}, false},
		{[]int{1, 2, 10, 10}, list{ints("kernel_shape", 3, 3), ints("strides", 3, 3), onnx.AttrInt("ceil_mode", 1)}, false},
		{[]int{3, 1, 6, 6}, list{ints("kernel_shape", 4, 4)}, false},
		{[]int{3, 1, 6, 40}, list{ints("kernel_shape", 1, 5), ints("strides", 1, 4), onnx.AttrStr("auto_pad", "VALID")}, false},
		{[]int{8, 32, 32, 32}, list{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}, false},
		{[]int{2, 3, 8, 8}, list{ints("kernel_shape", 3, 3), ints("strides", 2, 2), onnx.AttrStr("auto_pad", "SAME_UPPER")}, true},
		{[]int{2, 3, 8, 8}, list{ints("kernel_shape", 2, 2), onnx.AttrInt("storage_order", 1)}, true},
		{[]int{2, 3, 8}, list{ints("kernel_shape", 2)}, true},
	} {
		m := pool(t, k.x, k.attrs...)
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		stays := ort.PoolsWithIndices(m, env) == m
		if stays != k.stays {
			t.Errorf("%v %v stays: %v, expected %v", k.x, k.attrs, stays, k.stays)
		}
		if !stays {
			taken++
		}
		for threads := 1; threads <= 2; threads++ {
			x := tensor.New(tensor.Float32, k.x...)
			s := rng.New(uint64(len(k.attrs))).Stream()
			for i := range x.Float32s() {
				x.Float32s()[i] = float32(s.IntN(9)) - 4 // many are equal
			}
			in := []*tensor.Tensor{x}
			want, got := ran(t, e, m, engine.Options{Optimize: engine.OptNone}, in), ran(t, e, m, engine.Options{Training: true, Threads: threads}, in)
			if !slices.Equal(want[0].Float32s(), got[0].Float32s()) || !slices.Equal(want[1].Int64s(), got[1].Int64s()) {
				t.Errorf("%v %v, %d threads: %v %v, expected %v %v", k.x, k.attrs, threads, got[0], got[1], want[0], want[1])
			}
			elements += want[0].Len()
		}
	}
	if taken != 8 || elements != 133402 {
		t.Errorf("%d pools taken, %d elements compared", taken, elements)
	}
}

// TestPoolsByChance compares both outputs of max pools of many windows with ONNX Runtime's own.
func TestPoolsByChance(t *testing.T) {
	e := open(t)
	defer e.Close()
	taken, elements := 0, 0
	seeds := longtest.Cases(t, 400, 80)
	for seed := range uint64(seeds) {
		s := rng.New(seed).Stream()
		x := []int{1 + s.IntN(2), 1 + s.IntN(3), 1 + s.IntN(40), 1 + s.IntN(40)}
		var kernel, stride, dilation, before, after [2]int
		fits := true
		size := 1 + s.IntN(4)
		for a := range 2 {
			kernel[a], stride[a], dilation[a] = size, 1+s.IntN(3), 1
			if s.IntN(3) == 0 {
				kernel[a], dilation[a] = 1+s.IntN(4), 1+s.IntN(2)
			}
			before[a], after[a] = s.IntN(kernel[a]), s.IntN(kernel[a])
			fits = fits && x[2+a]+before[a]+after[a] >= (kernel[a]-1)*dilation[a]+1
		}
		if !fits {
			continue
		}
		m := pool(t, x, onnx.AttrInts("kernel_shape", kernel[:]...), onnx.AttrInts("strides", stride[:]...), onnx.AttrInts("dilations", dilation[:]...),
			onnx.AttrInts("pads", before[0], before[1], after[0], after[1]), onnx.AttrInt("ceil_mode", s.IntN(2)))
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if ort.PoolsWithIndices(m, env) != m {
			taken++
		}
		image := tensor.New(tensor.Float32, x...)
		for i := range image.Float32s() {
			image.Float32s()[i] = float32(s.IntN(9)) - 4
		}
		in := []*tensor.Tensor{image}
		want, got := ran(t, e, m, engine.Options{Optimize: engine.OptNone}, in), ran(t, e, m, engine.Options{Training: true}, in)
		if !slices.Equal(want[0].Float32s(), got[0].Float32s()) || !slices.Equal(want[1].Int64s(), got[1].Int64s()) {
			t.Fatalf("seed %d: %v by %v, stride %v, dilation %v, padding %v and %v: %v %v, expected %v %v", seed, x, kernel, stride, dilation, before, after, got[0], got[1], want[0], want[1])
		}
		elements += want[0].Len()
	}
	if taken < seeds*5/8 || elements < seeds*250 {
		t.Errorf("%d pools taken, %d elements compared", taken, elements)
	}
}

// TestPoolRefuses: windows that would make a node read or write what is not its own.
func TestPoolRefuses(t *testing.T) {
	e := open(t)
	defer e.Close()
	compile := func(shape, window []int) error {
		return ort.CompileKernel(e, ort.MaxPoolName, []tensor.DType{tensor.Float32, tensor.Int64}, []int{2, 3, 8, 8}, []*onnx.Attribute{onnx.AttrInts("shape", shape...), onnx.AttrInts("window", window...)})
	}
	good := []int{6, 8, 8, 4, 4, 2, 2, 2, 2, 0, 0, 1, 1}
	if err := compile([]int{2, 3, 4, 4}, good); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range good {
		for _, v := range []int{-1, 1 << 40} {
			bad := slices.Clone(good)
			bad[i] = v
			if err := compile([]int{2, 3, 4, 4}, bad); err == nil {
				t.Errorf("%d in place %d is accepted", v, i)
			}
			n++
		}
	}
	for _, s := range [][]int{{2, 3, 4}, {3, 3, 4, 4}, {2, 3, 4, 5}, {2, 3, 5, 4}, {-2, -3, 4, 4}, {1 << 40, 1 << 40, 4, 4}} {
		if err := compile(s, good); err == nil {
			t.Errorf("shape %v is accepted", s)
		}
		n++
	}
	far := slices.Clone(good)
	far[3] = 5 // a window beyond the image
	if err := compile([]int{2, 3, 5, 4}, far); err == nil {
		t.Error("a window beyond the image is accepted")
	}
	if n != 32 {
		t.Errorf("%d nodes", n)
	}
}

// BenchmarkMaxPool is a pool with indices by ONNX Runtime and by our own operator.
func BenchmarkMaxPool(b *testing.B) {
	for _, window := range [][2]int{{2, 2}, {3, 2}} {
		for _, ours := range []bool{false, true} {
			b.Run(fmt.Sprintf("kernel=%d/stride=%d/ours=%v", window[0], window[1], ours), func(b *testing.B) {
				e := open(b)
				defer e.Close()
				m := pool(b, []int{8, 32, 32, 32}, onnx.AttrInts("kernel_shape", window[0], window[0]), onnx.AttrInts("strides", window[1], window[1]))
				s, err := e.Compile(m, engine.Options{Training: ours})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				out := []*tensor.Tensor{tensor.New(tensor.Float32, s.Outputs()[0].Shape...), tensor.New(tensor.Int64, s.Outputs()[1].Shape...)}
				x := tensor.New(tensor.Float32, 8, 32, 32, 32)
				rng.New(1).Stream().FillNormal32(x.Float32s(), 0, 1)
				bound, err := s.Bind(out, []*tensor.Tensor{x})
				if err != nil {
					b.Fatal(err)
				}
				defer bound.Close()
				b.ReportAllocs()
				for b.Loop() {
					if err := bound.Run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
