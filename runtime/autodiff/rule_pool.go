package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var poolRules = []Rule{
	{Op: "MaxPool", Versions: []int{8, 10, 11, 12, 22}, VJP: vjpMaxPool},
	{Op: "AveragePool", Versions: []int{7, 10, 11, 19, 22}, Expand: expandAveragePool, VJP: vjpAveragePool},
	{Op: "LpPool", Versions: []int{2, 11, 18, 22}, VJP: vjpLpPool},
	{Op: "GlobalAveragePool", Versions: []int{1, 22}, VJP: vjpGlobalAveragePool},
	{Op: "GlobalMaxPool", Versions: []int{1, 22}, VJP: vjpGlobalMaxPool},
	{Op: "GlobalLpPool", Versions: []int{2, 22}, VJP: vjpGlobalLpPool},
	{Op: "MaxUnpool", Versions: []int{9, 11, 22}, VJP: vjpMaxUnpool},
}

// vjpMaxPool adds each window's gradient to the element whose index the forward node reports, which
// is the first of equal ones. When no element is in two windows the sum is an assignment, which
// MaxUnpool does in 66 µs for 8×32×32×32 and 2×2 windows on ONNX Runtime 1.27 where ScatterElements
// takes 300 µs and ScatterND 370 µs.
func vjpMaxPool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, y := n.In(0), n.Out(0)
	if g[0] == "" {
		return nil, nil
	}
	var index onnx.Value
	if n.Int("storage_order", 0) == 0 {
		index = c.ExtraOutput(n, 1)
	} else {
		// The node's own indices count columns first: ask again for row-major ones.
		again := n.ShallowClone()
		again.DelAttr("storage_order")
		index = c.OpN("MaxPool", 2, []onnx.Value{x}, again.Attribute...)[1]
	}
	xs, ok := c.Type(x).Static()
	ys, ok2 := c.Type(y).Static()
	if !ok || !ok2 {
		flat := c.b.Ints(-1)
		d := c.Op("ScatterElements", []onnx.Value{c.flatZeros(x), c.Op("Reshape", two(index, flat)), c.Op("Reshape", two(g[0], flat))}, onnx.AttrStr("reduction", "add"))
		return []onnx.Value{c.ReshapeLike(d, x)}, nil
	}
	win := newWindow(n, n.Ints("kernel_shape"), xs[2:], ys[2:])
	if c.DType(x) == tensor.Float32 && len(xs) == 4 && !win.overlapping() && isZero(win.before) && isZero(win.tail()) && isOnes(win.dilation) {
		return []onnx.Value{c.Op("MaxUnpool", two(g[0], index), onnx.AttrInts("kernel_shape", win.kernel...), onnx.AttrInts("strides", win.stride...))}, nil
	}
	zeros := c.Fill(c.DType(x), 0, prod(xs))
	d := c.Op("ScatterElements", []onnx.Value{zeros, c.Reshape(index, prod(ys)), c.Reshape(g[0], prod(ys))}, onnx.AttrStr("reduction", "add"))
	return []onnx.Value{c.Reshape(d, xs...)}, nil
}

func isOnes(v []int) bool {
	for _, x := range v {
		if x != 1 {
			return false
		}
	}
	return true
}

// expandAveragePool replaces only pools that count padding and, in ceil mode, have windows beyond
// it: the specification divides by the elements within the declared padding, ONNX Runtime 1.27 by
// the whole kernel. The linear map gives the specified result on every engine.
func expandAveragePool(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	if n.Int("count_include_pad", 0) == 0 || n.Int("ceil_mode", 0) == 0 {
		return nil, nil
	}
	win, ok := c.poolWindow(n)
	if !ok {
		return nil, c.b.Err()
	}
	beyond := false
	for i, t := range win.tail() {
		beyond = beyond || t > win.after[i]
	}
	if !beyond {
		return nil, nil
	}
	y := n.In(0)
	for a := range win.in {
		y = c.along(y, 2+a, win.out[a], win.averages(a, true))
	}
	return []onnx.Value{y}, nil
}

// vjpAveragePool: averaging is one linear map per axis, because the number of elements in a window
// is the product of the numbers along the axes.
func vjpAveragePool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	win, ok := c.poolWindow(n)
	if !ok {
		return nil, c.b.Err()
	}
	d := g[0]
	for a := range win.in {
		d = c.along(d, 2+a, win.in[a], adjoint(win.averages(a, n.Int("count_include_pad", 0) != 0)))
	}
	return []onnx.Value{d}, nil
}

// sums is the map from the elements along an axis to their sums over windows.
func (w window) sums(axis int) []entry {
	var m []entry
	for o := range w.out[axis] {
		for t := range w.kernel[axis] {
			if p := o*w.stride[axis] + t*w.dilation[axis] - w.before[axis]; p >= 0 && p < w.in[axis] {
				m = append(m, entry{p, o, 1})
			}
		}
	}
	return m
}

// averages is the map from the elements along an axis to their averages over windows, with or
// without counting the declared padding.
func (w window) averages(axis int, padded bool) []entry {
	m := w.sums(axis)
	count := make([]float64, w.out[axis])
	for o := range count {
		for t := range w.kernel[axis] {
			p := o*w.stride[axis] + t*w.dilation[axis] - w.before[axis]
			if p >= 0 && p < w.in[axis] || padded && p < w.in[axis]+w.after[axis] {
				count[o]++
			}
		}
	}
	for i := range m {
		m[i].weight /= count[m[i].to]
	}
	return m
}

// poolWindow returns the geometry of a pooling node with a kernel_shape attribute.
func (c *Context) poolWindow(n *onnx.Node) (window, bool) {
	xs, ys := c.Shape(n.In(0)), c.Shape(n.Out(0))
	if c.b.Err() != nil {
		return window{}, false
	}
	win := newWindow(n, n.Ints("kernel_shape"), xs[2:], ys[2:])
	for i, k := range win.kernel {
		if !c.small(k, win.out[i]) {
			return win, false
		}
	}
	return win, true
}

// vjpLpPool: y = (Σ|x|ᵖ)^(1/p), so ∂x = sign(x)·|x|ᵖ⁻¹ · Σ g/yᵖ⁻¹ over the windows that x is in. A
// window of zeros has no gradient.
func vjpLpPool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	win, ok := c.poolWindow(n)
	if !ok {
		return nil, c.b.Err()
	}
	q := c.lpScale(g[0], n.Out(0), n.Int("p", 2))
	for a := range win.in {
		q = c.along(q, 2+a, win.in[a], adjoint(win.sums(a)))
	}
	return []onnx.Value{c.lpInner(n.In(0), q, n.Int("p", 2))}, nil
}

// lpScale returns g/yᵖ⁻¹, and g where y is 0.
func (c *Context) lpScale(g, y onnx.Value, p int) onnx.Value {
	if p == 1 {
		return g
	}
	safe := c.Where(c.Op("Equal", two(y, c.Scalar(y, 0))), c.Scalar(y, 1), y)
	if p > 2 {
		safe = c.Op("Pow", two(safe, c.Scalar(y, float64(p-1))))
	}
	return c.Div(g, safe)
}

// lpInner returns q·sign(x)·|x|ᵖ⁻¹.
func (c *Context) lpInner(x, q onnx.Value, p int) onnx.Value {
	switch p {
	case 1:
		return c.Mul(q, c.Unary("Sign", x))
	case 2:
		return c.Mul(q, x)
	}
	return c.Mul(q, c.Mul(c.Unary("Sign", x), c.Op("Pow", two(c.Unary("Abs", x), c.Scalar(x, float64(p-1))))))
}

func vjpGlobalAveragePool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	e := c.Extents(n.In(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	return []onnx.Value{c.ExpandLike(c.share(g[0], e[2:]), n.In(0))}, nil
}

// vjpGlobalMaxPool shares the gradient equally among the elements that attain the maximum.
func vjpGlobalMaxPool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, y := n.In(0), n.Out(0)
	mask := c.Cast(c.Op("Equal", two(x, y)), c.DType(x))
	count := c.Sum(mask, Seq(c.Rank(x))[2:], true)
	return []onnx.Value{c.Mul(mask, c.Div(g[0], count))}, nil
}

func vjpGlobalLpPool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	p := n.Int("p", 2)
	return []onnx.Value{c.lpInner(n.In(0), c.lpScale(g[0], n.Out(0), p), p)}, nil
}

// vjpMaxUnpool reads g where the forward node wrote.
func vjpMaxUnpool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, index := n.In(0), n.In(1)
	xs, ys := c.Shape(x), c.Shape(n.Out(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	if n.In(2) != "" {
		// Engines disagree on what an index means when output_shape differs from the natural
		// extents.
		win := newWindow(n, n.Ints("kernel_shape"), ys[2:], xs[2:])
		for i, t := range win.tail() {
			if t != win.after[i] {
				c.Fail("output_shape %v differs from the extents that kernel, strides and pads give", ys)
				return nil, c.b.Err()
			}
		}
	}
	d := c.Op("Gather", two(c.Reshape(g[0], prod(ys)), c.Reshape(index, prod(xs))))
	return []onnx.Value{c.Reshape(d, xs...)}, nil
}
