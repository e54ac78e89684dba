package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// maxOpenTaps bounds the kernel size up to which the weight gradient of a convolution of unknown
// extents is one product per tap. A TimesNet of the published size, whose kernels go up to 11×11,
// has 24,800 gradient nodes with products for all and 3,000 so; compiling it and six steps of 32
// rows take 38 s and 8 s of one core on ONNX Runtime 1.27.
const maxOpenTaps = 9

// openWindow is the geometry of a convolution whose spatial extents only a run can tell: what the
// attributes and the kernel say.
type openWindow struct {
	window
	group int
}

// allStatic reports whether the shapes of all values are known.
func (c *Context) allStatic(vs ...onnx.Value) bool {
	for _, v := range vs {
		if _, ok := c.Type(v).Static(); !ok {
			return false
		}
	}
	return true
}

// openWindowOf reads the attributes of a convolution with weights w. It records an error where they
// leave the padding to the extents.
func (c *Context) openWindowOf(n *onnx.Node, w onnx.Value) openWindow {
	ws := c.Shape(w)
	if c.b.Err() != nil {
		return openWindow{}
	}
	r := len(ws) - 2
	win := openWindow{newWindow(n, ws[2:], filled(1, r), filled(1, r)), n.Int("group", 1)}
	switch pad := n.Str("auto_pad", "NOTSET"); {
	case pad != "SAME_UPPER" && pad != "SAME_LOWER":
	case win.strided():
		c.failOpen(n.In(0), "the extents that auto_pad "+pad+" with a stride above 1 pads")
	default:
		// With stride 1 the kernel alone decides.
		for i := range r {
			total := (win.kernel[i] - 1) * win.dilation[i]
			win.before[i], win.after[i] = total/2, total-total/2
			if pad == "SAME_LOWER" {
				win.before[i], win.after[i] = total-total/2, total/2
			}
		}
	}
	return win
}

// attributes lists the geometry as a node has it.
func (w openWindow) attributes(pads []int) []*onnx.Attribute {
	return []*onnx.Attribute{onnx.AttrInts("strides", w.stride...), onnx.AttrInts("dilations", w.dilation...), onnx.AttrInts("pads", pads...), onnx.AttrInt("group", w.group)}
}

// convOpen is vjpConv for shapes that only a run can tell.
func (c *Context) convOpen(n *onnx.Node, g onnx.Value) ([]onnx.Value, error) {
	x, w := n.In(0), n.In(1)
	win := c.openWindowOf(n, w)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	d := make([]onnx.Value, 3)
	if c.Wants(0) {
		d[0] = c.assume(c.convInputGradOpen(g, w, x, win), x)
	}
	if c.Wants(1) {
		d[1] = c.convWeightGradOpen(x, g, w, win)
	}
	if c.Wants(2) {
		d[2] = c.assume(c.channelSum(g), n.In(2))
	}
	return d, c.b.Err()
}

// convInputGradOpen applies the adjoint of a convolution of x to g. Without strides its padding
// follows from the kernel; with strides the windows are spread out unpadded and then brought to the
// extents of x, because how many elements belong to no window depends on these.
func (c *Context) convInputGradOpen(g, w, x onnx.Value, win openWindow) onnx.Value {
	r := len(win.kernel)
	if !win.strided() {
		before, after := make([]int, r), make([]int, r)
		for i := range r {
			reach := (win.kernel[i] - 1) * win.dilation[i]
			before[i], after[i] = reach-win.before[i], reach-win.after[i]
		}
		addB, cutB := splitSign(before)
		addA, cutA := splitSign(after)
		g = c.padSpatial(g, cutB, cutA)
		return c.Op("Conv", two(g, c.flipWeights(w, win.group)), win.attributes(join(addB, addA))...)
	}
	spread := c.Op("ConvTranspose", two(g, w), win.attributes(filled(0, 2*r))...)
	rank := 2 + r
	negative := make([]int, r)
	for i := range negative {
		negative[i] = -win.before[i]
	}
	before := c.b.Ints(negative...)
	after := c.Sub(c.Sub(c.shapeSlice(x, 2, rank), c.shapeSlice(spread, 2, rank)), before)
	return c.Op("Pad", []onnx.Value{spread, c.Concat(0, before, after), "", c.b.Ints(Seq(rank)[2:]...)})
}

// convWeightGradOpen correlates x [N, C, in…] with g [N, M, out…]; the result has the shape of the
// weights w [M, C/group, kernel…]. Each tap of a small kernel is one product, as in convWeightGrad.
func (c *Context) convWeightGradOpen(x, g, w onnx.Value, win openWindow) onnx.Value {
	ws := c.Shape(w)
	rank, in, out := len(ws), ws[1], ws[0]/win.group
	x = c.padSpatial(x, win.before, win.after)
	if prod(win.kernel) > maxOpenTaps {
		return c.convWeightGradOpenByConv(x, g, ws, win)
	}
	swap := join([]int{1, 0}, Seq(rank)[2:])
	xt := c.Transpose(x, swap...)
	rows := func(v onnx.Value, channels int) onnx.Value {
		if win.group == 1 {
			return c.Op("Reshape", two(v, c.b.Ints(channels, -1)))
		}
		return c.Op("Reshape", two(v, c.b.Ints(win.group, channels, -1)))
	}
	gt := rows(c.Transpose(g, swap...), out)
	var parts []onnx.Value
	win.taps(func(tap []int) {
		t := rows(c.tapSliceOpen(xt, win, tap), in)
		var p onnx.Value
		if win.group == 1 {
			p = c.Gemm(gt, t, false, true)
		} else {
			p = c.MatMul(gt, c.Transpose(t, 0, 2, 1))
		}
		parts = append(parts, c.Reshape(p, ws[0], in, 1))
	})
	return c.Reshape(c.Concat(2, parts...), ws...)
}

// convWeightGradOpenByConv is the convolution of x with g as its kernel: see convWeightGradByConv.
// Elements that belong to no window make the result too large; they are cut off.
func (c *Context) convWeightGradOpenByConv(x, g onnx.Value, ws []int, win openWindow) onnx.Value {
	rank := len(ws)
	rest := Seq(rank)[2:]
	swap := join([]int{1, 0}, rest)
	if win.group == 1 {
		x = c.Transpose(x, swap...)
	} else {
		e := c.Extents(x)
		spatial := e[2:]
		x = c.ReshapeTo(x, append([]Extent{e[0], {N: win.group}, {N: ws[1]}}, spatial...)...)
		x = c.Transpose(x, join([]int{2, 1, 0}, plus(rest, filled(1, len(rest))))...)
		batch := -1
		if e[0].Of == "" {
			batch = e[0].N * win.group
		}
		if batch < 0 {
			c.failOpen(x, "with groups, its number of rows")
			return ""
		}
		x = c.ReshapeTo(x, append([]Extent{{N: ws[1]}, {N: batch}}, spatial...)...)
	}
	w := c.Op("Conv", two(x, c.Transpose(g, swap...)), onnx.AttrInts("strides", win.dilation...), onnx.AttrInts("dilations", win.stride...), onnx.AttrInt("group", win.group))
	w = c.Transpose(w, swap...)
	if win.strided() {
		w = c.Slice(w, filled(0, rank-2), win.kernel, rest, nil)
	}
	return c.Reshape(w, ws...)
}

// tapSliceOpen takes the element that one tap of every window reads from v, which is padded as the
// node declares. Counted from the end a tap's last position does not depend on the extent.
func (c *Context) tapSliceOpen(v onnx.Value, win openWindow, tap []int) onnx.Value {
	lead := c.Rank(v) - len(tap)
	var starts, ends, axes []int
	for i, t := range tap {
		behind := (win.kernel[i] - 1 - t) * win.dilation[i]
		end := -behind
		if behind == 0 {
			end = 1<<31 - 1
		}
		starts, ends, axes = append(starts, t*win.dilation[i]), append(ends, end), append(axes, lead+i)
	}
	return c.Slice(v, starts, ends, axes, win.stride)
}

// convTransposeOpen is vjpConvTranspose for shapes that only a run can tell. The forward node crops
// and extends its natural result by its attributes, so these also undo it.
func (c *Context) convTransposeOpen(n *onnx.Node, g onnx.Value) ([]onnx.Value, error) {
	x, w := n.In(0), n.In(1)
	win := c.openWindowOf(n, w)
	if pad := n.Str("auto_pad", "NOTSET"); pad == "SAME_UPPER" || pad == "SAME_LOWER" || n.Has("output_shape") {
		c.failOpen(x, "the extents that auto_pad or output_shape pads")
	}
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	r := len(win.kernel)
	after := win.after
	if extra := n.Ints("output_padding"); extra != nil {
		// The rows that output padding added belong to no window of x; padding less cuts them off.
		after = make([]int, r)
		for i := range after {
			after[i] = win.after[i] - extra[i]
		}
	}
	add, cut := splitSign(after)
	gc := c.padSpatial(g, filled(0, r), cut)
	d := make([]onnx.Value, 3)
	if c.Wants(0) {
		d[0] = c.assume(c.Op("Conv", two(gc, w), win.attributes(join(win.before, add))...), x)
	}
	if c.Wants(1) {
		open := win
		open.after = add
		d[1] = c.convWeightGradOpen(gc, x, w, open)
	}
	if c.Wants(2) {
		d[2] = c.assume(c.channelSum(g), n.In(2))
	}
	return d, c.b.Err()
}
