package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// entry is one non-zero coefficient of a linear map along one axis: output element to receives
// weight times input element from.
type entry struct {
	from, to int
	weight   float64
}

// adjoint returns the transposed map.
func adjoint(m []entry) []entry {
	t := make([]entry, len(m))
	for i, e := range m {
		t[i] = entry{e.to, e.from, e.weight}
	}
	return t
}

// maxDense bounds the elements of the constant matrix that a map along an axis is stored as.
const maxDense = 1 << 20

// maxLayers is the most scatters that such a map is written as before a large matrix is preferred.
const maxLayers = 1 << 10

// along applies a linear map to one axis of v, which then has the given extent. It is how
// interpolation, average pooling and sums over neighbours are emitted, and their gradients.
//
// The map is a constant matrix: for the gradient of a 3×3 average pool of 8×32×32×32 two products
// with banded matrices take 0.28 ms on ONNX Runtime 1.27, ConvTranspose takes 1.3 ms. For 2×2
// windows with stride 2 they take 0.13 ms, ConvTranspose 0.22 ms and Expand 1.6 ms. Where the
// matrix would be too large, every coefficient of an input element is one scatter.
func (c *Context) along(v onnx.Value, axis, extent int, m []entry) onnx.Value {
	s := c.Shape(v)
	if s == nil {
		return ""
	}
	in, after := s[axis], prod(s[axis+1:])
	out := join(s[:axis], []int{extent}, s[axis+1:])
	if in*extent > maxDense {
		depth := make([]int, in)
		for _, e := range m {
			depth[e.from]++
		}
		if len(m) == 0 || slices.Max(depth) <= maxLayers {
			return c.alongSparse(v, axis, extent, m)
		}
		if !c.small(in, extent) {
			return ""
		}
	}
	if after == 1 {
		w := make([]float64, in*extent)
		for _, e := range m {
			w[e.from*extent+e.to] += e.weight
		}
		x := c.Reshape(v, s[:axis+1]...)
		return c.Reshape(c.MatMul(x, c.matrix(v, in, extent, w)), out...)
	}
	w := make([]float64, in*extent)
	for _, e := range m {
		w[e.to*in+e.from] += e.weight
	}
	// The axes behind become one column, those before stay a batch.
	x := c.Reshape(v, prod(s[:axis]), in, after)
	return c.Reshape(c.MatMul(c.matrix(v, extent, in, w), x), out...)
}

// alongSparse splits the map into layers in which every input element has at most one coefficient,
// and adds each layer by one scatter of rows.
func (c *Context) alongSparse(v onnx.Value, axis, extent int, m []entry) onnx.Value {
	s := c.Shape(v)
	in := s[axis]
	front := []int{axis}
	for i := range s {
		if i != axis {
			front = append(front, i)
		}
	}
	back := make([]int, len(front))
	for i, a := range front {
		back[a] = i
	}
	rest := prod(s[:axis]) * prod(s[axis+1:])
	x := c.Reshape(c.Transpose(v, front...), in, rest)
	var layers [][]entry
	depth := make([]int, in)
	for _, e := range m {
		k := depth[e.from]
		depth[e.from]++
		if k == len(layers) {
			layers = append(layers, nil)
		}
		layers[k] = append(layers[k], e)
	}
	acc := c.Fill(c.DType(v), 0, extent, rest)
	for _, l := range layers {
		from, to, w := tensor.New(tensor.Int64, len(l)), tensor.New(tensor.Int64, len(l), 1), make([]float64, len(l))
		for i, e := range l {
			from.Int64s()[i], to.Int64s()[i], w[i] = int64(e.from), int64(e.to), e.weight
		}
		rows := x
		if len(l) < in {
			rows = c.Op("Gather", two(x, c.b.Const(from)), onnx.AttrInt("axis", 0))
		} else {
			for _, e := range l {
				to.Int64s()[e.from], w[e.from] = int64(e.to), e.weight
			}
		}
		rows = c.Mul(rows, c.matrix(v, len(l), 1, w))
		acc = c.Op("ScatterND", []onnx.Value{acc, c.b.Const(to), rows}, onnx.AttrStr("reduction", "add"))
	}
	shape := []int{extent}
	for i, d := range s {
		if i != axis {
			shape = append(shape, d)
		}
	}
	return c.Transpose(c.Reshape(acc, shape...), back...)
}

// matrix makes a constant matrix of the element type of like from row-major elements.
func (c *Context) matrix(like onnx.Value, rows, cols int, w []float64) onnx.Value {
	d := c.DType(like)
	switch d {
	case tensor.Float64:
		return c.b.Const(tensor.Of(w, rows, cols))
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		t := tensor.New(tensor.Float32, rows, cols)
		for i, x := range w {
			t.Float32s()[i] = float32(x)
		}
		return c.Cast(c.b.Const(t), d)
	}
	c.Fail("constant matrix of %v: a floating-point type is needed", d)
	return ""
}
