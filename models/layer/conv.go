package layer

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Padding says what a convolution over time does at the ends of the window.
type Padding string

// The paddings. Valid gives kernel−1 steps fewer (times the dilation); Causal puts zeros before the
// first step, so that no output sees what comes after it; Same puts them on both sides.
const (
	Valid  Padding = "valid"
	Causal Padding = "causal"
	Same   Padding = "same"
)

// Conv1D appends a convolution over axis 1 of x [batch, time, …, channels]; the axes in between are
// independent of each other and share the weights. The parameters are weight [out,
// kernel·channels], oldest step first, and bias [out].
//
// It is one matrix product per tap, each adding to the one before, on slices that lie contiguously
// because channels come last. With its gradient that takes 70 ms for three layers of 64 channels,
// 50 windows of 20 steps and 16 assets on one core; ONNX Runtime's Conv takes 80 ms, and one
// product of unfolded windows 123 ms.
func (g *Graph) Conv1D(name string, x onnx.Value, out, kernel, dilation int, padding Padding, init Init) onnx.Value {
	l := g.In(name)
	channels := l.Extent(x, -1)
	reach := (kernel - 1) * dilation
	switch padding {
	case Causal:
		x = l.padTime(x, reach, 0)
	case Same:
		x = l.padTime(x, reach/2, reach-reach/2)
	}
	steps := l.Extent(x, 1) - reach
	if l.Err() != nil {
		return x
	}
	if steps < 1 {
		l.Failf("a kernel that reaches over %d steps is longer than the %d steps of %v", reach+1, steps+reach, l.Type(x))
		return x
	}
	weight := l.Param("weight", init, out, kernel*channels)
	sizes := make([]int, kernel)
	for i := range sizes {
		sizes[i] = channels
	}
	shape := []int{-1, steps}
	for i := 2; i < len(l.Dims(x))-1; i++ {
		shape = append(shape, l.Extent(x, i))
	}
	y := l.Param("bias", Zeros(), out)
	for i, w := range l.Split(weight, 1, sizes...) {
		tap := x
		if kernel > 1 {
			tap = l.Slice(x, 1, i*dilation, i*dilation+steps)
		}
		y = l.Op("Gemm", []onnx.Value{l.Reshape(tap, -1, channels), w, y}, onnx.AttrInt("transB", 1))
	}
	return l.Reshape(y, append(shape, out)...)
}

// padTime puts zeros before and after axis 1.
func (g *Graph) padTime(x onnx.Value, before, after int) onnx.Value {
	if before+after == 0 {
		return x
	}
	rank := len(g.Dims(x))
	pads := make([]int, 2*rank)
	pads[1], pads[rank+1] = before, after
	return g.Op("Pad", []onnx.Value{x, g.Ints(pads...)})
}
