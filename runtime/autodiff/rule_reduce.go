package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var reduceRules = []Rule{
	{Op: "ReduceSum", Versions: []int{13}, VJP: reducing(func(c *Context, r reduction) onnx.Value { return c.ExpandLike(r.g, r.x) })},
	{Op: "ReduceMean", Versions: []int{13, 18}, VJP: reducing(func(c *Context, r reduction) onnx.Value {
		return c.ExpandLike(r.share(r.g), r.x)
	})},
	{Op: "ReduceSumSquare", Versions: []int{13, 18}, VJP: reducing(func(c *Context, r reduction) onnx.Value { return c.Mul(r.x, c.Scale(r.g, 2)) })},
	{Op: "ReduceL1", Versions: []int{13, 18}, VJP: reducing(func(c *Context, r reduction) onnx.Value { return c.Mul(r.g, c.Sign(r.x)) })},
	{Op: "ReduceL2", Versions: []int{13, 18}, VJP: reducing(dReduceL2)},
	{Op: "ReduceLogSum", Versions: []int{13, 18, 28}, VJP: reducing(func(c *Context, r reduction) onnx.Value {
		return c.ExpandLike(c.Div(r.g, c.Unary("Exp", r.y)), r.x)
	})},
	{Op: "ReduceLogSumExp", Versions: []int{13, 18, 28}, VJP: reducing(func(c *Context, r reduction) onnx.Value {
		return c.Mul(r.g, c.Unary("Exp", c.Sub(r.x, r.y)))
	})},
	{Op: "ReduceMax", Versions: []int{13, 18, 20}, VJP: reducing(dReduceExtremum)},
	{Op: "ReduceMin", Versions: []int{13, 18, 20}, VJP: reducing(dReduceExtremum)},
	{Op: "ReduceProd", Versions: []int{13, 18}, VJP: reducing(dReduceProd)},
	{Op: "LpNormalization", Versions: []int{1, 22}, VJP: vjpLpNormalization},
	{Op: "CumSum", Versions: []int{11, 14}, VJP: vjpCumSum},
	{Op: "CumProd", Versions: []int{26}, Expand: expandCumProd},
}

// reduction is what the rules of the Reduce operators work with. g and y, the gradient and the
// result, have the reduced axes as extents of 1, so that they broadcast against x. share divides by
// the number of elements that each result was made of; sum and product reduce a value of the shape
// of x as the node does, keeping the axes.
type reduction struct {
	x, y, g             onnx.Value
	share, sum, product func(v onnx.Value) onnx.Value
}

// share emits g divided by a product of extents.
func (c *Context) share(g onnx.Value, count []Extent) onnx.Value {
	if n, ok := numbers(count); ok {
		return c.Scale(g, 1/float64(prod(n)))
	}
	return c.Div(g, c.count(count, g))
}

// reducing makes the rule of a Reduce operator from the gradient in terms of a reduction.
func reducing(d func(c *Context, r reduction) onnx.Value) VJP {
	return func(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
		r := reduction{x: n.In(0)}
		if _, ok := c.KnownInts(n.In(1)); n.In(1) != "" && !ok {
			if c.reduceOpen(n, g[0], &r); c.b.Err() != nil {
				return nil, c.b.Err()
			}
			return []onnx.Value{d(c, r)}, c.b.Err()
		}
		kept := c.Extents(r.x)
		axes := c.reducedAxes(n, len(kept))
		if c.b.Err() != nil {
			return nil, c.b.Err()
		}
		var count []Extent
		for _, a := range axes {
			count = append(count, kept[a])
			kept[a] = Extent{N: 1}
		}
		r.share = func(v onnx.Value) onnx.Value { return c.share(v, count) }
		r.sum = func(v onnx.Value) onnx.Value { return c.Sum(v, axes, true) }
		r.product = func(v onnx.Value) onnx.Value {
			if len(axes) == 0 {
				return v
			}
			return c.Op("ReduceProd", two(v, c.b.Ints(axes...)))
		}
		r.g, r.y = c.ReshapeTo(g[0], kept...), c.ReshapeTo(n.Out(0), kept...)
		return []onnx.Value{d(c, r)}, nil
	}
}

// reduceOpen fills in a reduction over axes that only a run can tell.
func (c *Context) reduceOpen(n *onnx.Node, g onnx.Value, r *reduction) {
	shape, noop := c.ShapeOf(r.x), n.Int("noop_with_empty_axes", 0)
	axes := n.In(1)
	if d := c.Type(axes).Dims; noop == 0 && (len(d) != 1 || d[0].Value < 1) {
		// No axes at all stand for all axes.
		c.failOpen(axes, "whether it is empty")
		return
	}
	ones := c.FillTo(tensor.Int64, 1, c.Extents(axes)...)
	kept := c.scatterElements(shape, axes, ones, 0, "none")
	view := func(v onnx.Value) onnx.Value {
		return c.Op("Reshape", two(v, kept), onnx.AttrInt("allowzero", 1))
	}
	r.g, r.y = view(g), view(n.Out(0))
	r.share = func(v onnx.Value) onnx.Value {
		all := c.Op("ReduceProd", []onnx.Value{shape}, onnx.AttrInt("keepdims", 0))
		left := c.Op("ReduceProd", []onnx.Value{kept}, onnx.AttrInt("keepdims", 0))
		return c.Div(v, c.Div(c.Cast(all, c.DType(v)), c.Cast(left, c.DType(v))))
	}
	again := func(op string) func(v onnx.Value) onnx.Value {
		return func(v onnx.Value) onnx.Value {
			return c.Op(op, two(v, axes), onnx.AttrInt("noop_with_empty_axes", noop))
		}
	}
	r.sum, r.product = again("ReduceSum"), again("ReduceProd")
}

// reducedAxes returns the axes that a Reduce node reduces, non-negative and sorted. No axes means
// all, or none where the node says so.
func (c *Context) reducedAxes(n *onnx.Node, rank int) []int {
	axes := n.Ints("axes")
	if in := n.In(1); in != "" {
		var ok bool
		if axes, ok = c.KnownInts(in); !ok {
			c.Fail("the axes %q are not constant", in)
			return nil
		}
	}
	if len(axes) == 0 {
		if n.Int("noop_with_empty_axes", 0) != 0 {
			return nil
		}
		return Seq(rank)
	}
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = Axis(a, rank)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// safe replaces zeros by one. It keeps a quotient finite whose other factor is zero there.
func (c *Context) safe(v onnx.Value) onnx.Value {
	return c.Where(c.Op("Equal", two(v, c.Scalar(v, 0))), c.Scalar(v, 1), v)
}

// dReduceL2: ∂x = g·x/y, and 0 where the norm is 0.
func dReduceL2(c *Context, r reduction) onnx.Value {
	return c.Mul(r.x, c.Div(r.g, c.safe(r.y)))
}

// dReduceExtremum shares the gradient equally among the elements that equal the result.
func dReduceExtremum(c *Context, r reduction) onnx.Value {
	hit := c.Cast(c.Op("Equal", two(r.x, r.y)), c.DType(r.x))
	return c.Mul(hit, c.Div(r.g, r.sum(hit)))
}

// dReduceProd is the product of all other elements. With one zero among them only that element has
// a gradient, with more none has: the product is taken over the elements that are not zero, and
// counts as one element's share where the zeros are exactly the element itself.
func dReduceProd(c *Context, r reduction) onnx.Value {
	zero := c.Op("Equal", two(r.x, c.Scalar(r.x, 0)))
	isZero := c.Cast(zero, c.DType(r.x))
	x := c.Where(zero, c.Scalar(r.x, 1), r.x)
	product := r.product(x)
	counts := c.Op("Equal", two(isZero, r.sum(isZero)))
	return c.Mask(c.Div(c.Mul(r.g, product), x), counts)
}

// vjpLpNormalization: y = x/‖x‖ₚ along an axis. ∂x = (g − s·Σ(g·y))/‖x‖ₚ with s = y for p = 2 and
// sign x for p = 1; 0 where the norm is 0.
func vjpLpNormalization(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, y := n.In(0), n.Out(0)
	axis := c.line(n, x)
	s, norm := y, onnx.Value("")
	if n.Int("p", 2) == 1 {
		s = c.Sign(x)
		norm = c.Sum(c.Unary("Abs", x), axis, true)
	} else {
		norm = c.Unary("Sqrt", c.Sum(c.Square(x), axis, true))
	}
	zero := c.Scalar(x, 0)
	flat := c.Op("Equal", two(norm, zero))
	inverse := c.Where(flat, zero, c.Unary("Reciprocal", c.Where(flat, c.Scalar(x, 1), norm)))
	along := c.Sum(c.Mul(g[0], y), axis, true)
	return []onnx.Value{c.Mul(c.Sub(g[0], c.Mul(s, along)), inverse)}, nil
}

// vjpCumSum sums the gradient in the other direction.
func vjpCumSum(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	d := c.Op("CumSum", two(g[0], n.In(1)), onnx.AttrInt("exclusive", n.Int("exclusive", 0)), onnx.AttrInt("reverse", 1-n.Int("reverse", 0)))
	return []onnx.Value{d, ""}, nil
}

// expandCumProd builds the running product by doubling (Hillis and Steele 1986): after step k every
// element is the product of the 2ᵏ elements that end with it. That takes log₂ n products and,
// unlike y/x, has a correct gradient where elements are zero.
func expandCumProd(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := n.In(0)
	shape := c.Shape(x)
	axes, ok := c.KnownInts(n.In(1))
	if !ok || len(axes) != 1 {
		c.Fail("the axis %q is not constant", n.In(1))
	}
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	axis := Axis(axes[0], len(shape))
	reverse := n.Int("reverse", 0) != 0
	// shift moves the elements by d along the axis, against the direction of the product, and fills
	// with ones.
	shift := func(v onnx.Value, d int) onnx.Value {
		ones := slices.Clone(shape)
		ones[axis] = d
		fill := c.Fill(c.DType(x), 1, ones...)
		if reverse {
			return c.Concat(axis, c.Slice(v, []int{d}, []int{shape[axis]}, []int{axis}, nil), fill)
		}
		return c.Concat(axis, fill, c.Slice(v, []int{0}, []int{shape[axis] - d}, []int{axis}, nil))
	}
	y := x
	if n.Int("exclusive", 0) != 0 && shape[axis] > 0 {
		y = shift(y, 1)
	}
	for d := 1; d < shape[axis]; d *= 2 {
		y = c.Mul(y, shift(y, d))
	}
	return []onnx.Value{y}, nil
}
