package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxOnesRows bounds the rows that a sum over leading axes is done as a product with a vector of
// ones. Measured on ONNX Runtime 1.27: for 256 × 256 the product takes 4 µs and ReduceSum over axis
// 0 takes 77 µs; from about 24,000 rows on they are equal.
const maxOnesRows = 16384

// Sum emits the sum of v over the given axes (non-negative, any order), kept as extents of 1 when
// keep is set. Sums over leading axes of float matrices are emitted as the product of a vector of
// ones and v, which is the fastest standard form.
func (c *Context) Sum(v onnx.Value, axes []int, keep bool) onnx.Value {
	if len(axes) == 0 {
		return v
	}
	axes = slices.Clone(axes)
	slices.Sort(axes)
	shape, static := c.Type(v).Static()
	if static && prod(shape) > 0 {
		rows, trivial := 1, true
		for _, a := range axes {
			rows *= shape[a]
			trivial = trivial && shape[a] == 1
		}
		var out []int
		for i, d := range shape {
			switch {
			case !slices.Contains(axes, i):
				out = append(out, d)
			case keep:
				out = append(out, 1)
			}
		}
		if trivial {
			return c.Reshape(v, out...)
		}
		cols := prod(shape) / rows
		if c.leadingAxes(shape, axes) && cols > 1 && rows <= maxOnesRows && c.DType(v) == tensor.Float32 {
			return c.Reshape(c.MatMul(c.ones(rows), c.Reshape(v, rows, cols)), out...)
		}
	}
	k := 0
	if keep {
		k = 1
	}
	return c.Op("ReduceSum", two(v, c.b.Ints(axes...)), onnx.AttrInt("keepdims", k))
}

// leadingAxes reports whether axes are the first ones once extents of 1 are ignored.
func (c *Context) leadingAxes(shape, axes []int) bool {
	kept := false
	for i, d := range shape {
		in := slices.Contains(axes, i)
		if in && kept && d != 1 {
			return false
		}
		if !in && d != 1 {
			kept = true
		}
	}
	return true
}

// ones returns a constant float32 vector of n ones. It is stored, because a constant operand lets
// the engine plan the product.
func (c *Context) ones(n int) onnx.Value {
	t := tensor.New(tensor.Float32, n)
	for i := range t.Float32s() {
		t.Float32s()[i] = 1
	}
	return c.b.Const(t)
}

// Unbroadcast sums g, whose shape is static, down to the shape want, undoing ONNX's
// multidirectional broadcasting.
func (c *Context) Unbroadcast(g onnx.Value, want []int) onnx.Value {
	have := c.Shape(g)
	if c.b.Err() != nil || slices.Equal(have, want) {
		return g
	}
	lead := len(have) - len(want)
	if lead < 0 {
		c.Fail("gradient of shape %v cannot be summed to shape %v", have, want)
		return g
	}
	var axes []int
	for i, d := range have {
		switch {
		case i < lead:
			axes = append(axes, i)
		case want[i-lead] == 1 && d != 1:
			axes = append(axes, i)
		case want[i-lead] != d:
			c.Fail("gradient of shape %v cannot be summed to shape %v", have, want)
			return g
		}
	}
	// Extents of 1 stay only where they are wanted: then the sum has the right shape already.
	keep := lead == 0
	return c.Reshape(c.Sum(g, axes, keep), want...)
}

// UnbroadcastLike sums g down to the shape of like. Where only a run can tell which extents of like
// are 1, the axes of the sum are computed from its shape.
func (c *Context) UnbroadcastLike(g, like onnx.Value) onnx.Value {
	have, want := c.Type(g), c.Type(like)
	if sameShape(have, want) || c.b.Err() != nil {
		return g
	}
	_, ok := have.Static()
	if shape, static := want.Static(); ok && static {
		return c.Unbroadcast(g, shape)
	}
	lead := c.Rank(g) - c.Rank(like)
	if lead < 0 {
		c.Fail("gradient of type %v cannot be summed to %v", have, want)
	}
	if c.b.Err() != nil {
		return g
	}
	g = c.Sum(g, Seq(lead), false)
	var axes []int
	open := false
	for i, w := range want.Dims {
		h := have.Dims[lead+i]
		switch {
		case h == w || h == onnx.Known(1):
		case w == onnx.Known(1):
			axes = append(axes, i)
		case !w.IsKnown():
			open = true
		case h.IsKnown():
			c.Fail("gradient of type %v cannot be summed to %v", have, want)
			return g
		}
	}
	g = c.Sum(g, axes, true)
	if open {
		ones := c.Op("Equal", two(c.ShapeOf(like), c.b.Ints(1)))
		at := c.Op("Reshape", two(c.Unary("NonZero", ones), c.b.Ints(-1)))
		g = c.Op("ReduceSum", two(g, at), onnx.AttrInt("keepdims", 1), onnx.AttrInt("noop_with_empty_axes", 1))
	}
	return c.assume(g, like)
}
