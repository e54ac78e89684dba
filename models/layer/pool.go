package layer

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Pool says how the steps of a sequence become one vector.
type Pool string

// The poolings.
const (
	Last    Pool = "last"
	Average Pool = "mean"
	Largest Pool = "max"
)

// Pools lists the poolings.
func Pools() []string { return []string{string(Last), string(Average), string(Largest)} }

// PoolTime pools axis 1 of x [batch, time, …] and drops it.
func (g *Graph) PoolTime(x onnx.Value, p Pool) onnx.Value {
	return g.Squeeze(g.PoolWindows(x, g.Extent(x, 1), p), 1)
}

// PoolWindows pools every window of n consecutive steps of axis 1: from [batch, time, …] to [batch,
// time − n + 1, …].
func (g *Graph) PoolWindows(x onnx.Value, n int, p Pool) onnx.Value {
	steps := g.Extent(x, 1)
	if g.Err() != nil {
		return x
	}
	out := steps - n + 1
	if n < 1 || out < 1 {
		g.Failf("windows of %d steps do not fit into the %d steps of %v", n, steps, g.Type(x))
		return x
	}
	switch p {
	case Last:
		if n == 1 {
			return x
		}
		return g.Slice(x, 1, n-1, steps)
	case Average:
		return g.averageWindows(x, n, out)
	case Largest:
		return g.largestWindows(x, n, out)
	}
	g.Failf("pooling %q is unknown; known are %v", p, Pools())
	return x
}

// averageWindows is a product with a matrix that has 1/n in a band: a few adjacent rows of a small
// matrix cost less than sums that ONNX Runtime computes element by element.
func (g *Graph) averageWindows(x onnx.Value, n, out int) onnx.Value {
	steps := n + out - 1
	band := tensor.New(tensor.Float32, out, steps)
	for i := range out {
		for j := i; j < i+n; j++ {
			band.Float32s()[i*steps+j] = 1 / float32(n)
		}
	}
	inner := []int{-1, out}
	width := 1
	for i := 2; i < len(g.Dims(x)); i++ {
		inner = append(inner, g.Extent(x, i))
		width *= g.Extent(x, i)
	}
	return g.Reshape(g.MatMul(g.Const(band), g.Reshape(x, -1, steps, width)), inner...)
}

// largestWindows doubles the length of the windows until it would exceed n, and joins two
// overlapping ones.
func (g *Graph) largestWindows(x onnx.Value, n, out int) onnx.Value {
	have, length := 1, g.Extent(x, 1)
	for have < n {
		step := min(have, n-have)
		x = g.Max(g.Slice(x, 1, 0, length-step), g.Slice(x, 1, step, length))
		have, length = have+step, length-step
	}
	return x
}

// FoldAxis makes rows of the axis of x [batch, …, n, …]: it moves there as if every one of its
// elements were a batch of its own, and [Graph.UnfoldAxis] brings it back. The other inner extents
// must be known.
func (g *Graph) FoldAxis(x onnx.Value, axis int) onnx.Value {
	rank := len(g.Dims(x))
	if g.Err() != nil {
		return x
	}
	perm := []int{0, axis}
	shape := []int{-1}
	for i := 1; i < rank; i++ {
		if i != axis {
			perm = append(perm, i)
			shape = append(shape, g.Extent(x, i))
		}
	}
	if !slices.IsSorted(perm) {
		x = g.Transpose(x, perm...)
	}
	return g.Reshape(x, shape...)
}

// UnfoldAxis makes an axis 1 of extent n of the rows that FoldAxis made.
func (g *Graph) UnfoldAxis(x onnx.Value, n int) onnx.Value {
	shape := []int{-1, n}
	for i := 1; i < len(g.Dims(x)); i++ {
		shape = append(shape, g.Extent(x, i))
	}
	return g.Reshape(x, shape...)
}
