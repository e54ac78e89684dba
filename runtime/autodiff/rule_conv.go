package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

var convRules = []Rule{
	{Op: "Conv", Versions: []int{1, 11, 22}, Expand: expandSmallConv, VJP: vjpConv},
	{Op: "ConvTranspose", Versions: []int{1, 11, 22}, VJP: vjpConvTranspose},
}

// maxTaps bounds the kernel size up to which the weight gradient is one product per tap.
const maxTaps = 256

// maxGathered bounds the elements that the taps of a convolution's weight gradient read in all, up
// to which they are gathered for one product: a run takes as long either way, but the graph has two
// nodes per tap instead of four.
const maxGathered = 1 << 16

// vjpConv: the gradient of the input is a convolution of g with the flipped weights, the gradient
// of the weights the correlation of input and g, and the gradient of the bias the sum over all but
// the channels.
func vjpConv(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, w := n.In(0), n.In(1)
	if !c.allStatic(x, w, g[0]) {
		return c.convOpen(n, g[0])
	}
	xs, ws, gs := c.Shape(x), c.Shape(w), c.Shape(g[0])
	group := n.Int("group", 1)
	win := newWindow(n, ws[2:], xs[2:], gs[2:])
	d := make([]onnx.Value, 3)
	if c.Wants(0) {
		d[0] = c.convInputGrad(g[0], w, win, group)
	}
	if c.Wants(1) {
		d[1] = c.convWeightGrad(x, g[0], win, group)
	}
	if c.Wants(2) {
		d[2] = c.channelSum(g[0])
	}
	return d, nil
}

// vjpConvTranspose: Y is the input gradient of a convolution from Y's extents to X's, so ∂X is that
// convolution and ∂W its weight gradient with X and g exchanged.
func vjpConvTranspose(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, w := n.In(0), n.In(1)
	if !c.allStatic(x, w, g[0]) {
		return c.convTransposeOpen(n, g[0])
	}
	xs, ws, gs := c.Shape(x), c.Shape(w), c.Shape(g[0])
	group := n.Int("group", 1)
	win := newWindow(n, ws[2:], gs[2:], xs[2:])
	transposedPads(n, &win)
	d := make([]onnx.Value, 3)
	if c.Wants(0) {
		after, crop := splitSign(win.tail())
		gc := c.padSpatial(g[0], filled(0, len(crop)), crop)
		d[0] = c.Op("Conv", two(gc, w), onnx.AttrInts("strides", win.stride...), onnx.AttrInts("dilations", win.dilation...),
			onnx.AttrInts("pads", join(win.before, after)...), onnx.AttrInt("group", group))
	}
	if c.Wants(1) {
		d[1] = c.convWeightGrad(g[0], x, win, group)
	}
	if c.Wants(2) {
		d[2] = c.channelSum(g[0])
	}
	return d, nil
}

// transposedPads resolves the padding of a ConvTranspose, whose automatic modes and output_shape
// distribute what the natural output has too much (ONNX specification of ConvTranspose: the odd
// element goes to the end for SAME_UPPER and to the start otherwise).
func transposedPads(n *onnx.Node, w *window) {
	pad := n.Str("auto_pad", "NOTSET")
	if pad == "VALID" || pad == "NOTSET" && !n.Has("output_shape") {
		return
	}
	extra := n.Ints("output_padding")
	for i := range w.before {
		total := w.span(i) - w.in[i]
		if extra != nil {
			total += extra[i]
		}
		total = max(0, total)
		w.before[i] = total - total/2
		if pad == "SAME_UPPER" {
			w.before[i] = total / 2
		}
		w.after[i] = total - w.before[i]
	}
}

// convInputGrad applies the adjoint of a convolution to g of shape [N, M, out…] with weights [M,
// C/group, kernel…]; the result is [N, C, in…].
//
// With stride 1 it is a convolution with flipped weights: for 32×64×96, kernel 3, it takes 0.70 ms
// on ONNX Runtime 1.27 where ConvTranspose takes 2.8 ms (0.87 ms when written as a 2-D one); for
// 8×32×32×32, kernel 3×3, 1.95 against 2.04 ms. With larger strides it is ConvTranspose: for
// 8×32×32×32 to 64 channels, kernel 3×3, stride 2, 0.89 ms where a convolution of the zero-filled
// gradient takes 5.8 ms and one convolution per phase 1.5 ms. One-dimensional ones are written as
// two-dimensional, which takes 0.53 instead of 1.96 ms.
func (c *Context) convInputGrad(g, w onnx.Value, win window, group int) onnx.Value {
	if !win.strided() {
		return c.convFlipped(g, w, win, group)
	}
	gs, ws := c.Shape(g), c.Shape(w)
	if c.b.Err() != nil {
		return ""
	}
	after, crop := splitSign(win.tail())
	pads := join(win.before, after)
	extra := make([]int, len(crop))
	for i, x := range crop {
		extra[i] = -x
	}
	stride, dilation := win.stride, win.dilation
	flat := len(ws) == 3
	if flat {
		g = c.Reshape(g, gs[0], gs[1], 1, gs[2])
		w = c.Reshape(w, ws[0], ws[1], 1, ws[2])
		pads = []int{0, pads[0], 0, pads[1]}
		stride, dilation, extra = []int{1, stride[0]}, []int{1, dilation[0]}, []int{0, extra[0]}
	}
	d := c.Op("ConvTranspose", two(g, w), onnx.AttrInts("strides", stride...), onnx.AttrInts("dilations", dilation...), onnx.AttrInts("pads", pads...),
		onnx.AttrInts("output_padding", extra...), onnx.AttrInt("group", group))
	if flat {
		d = c.Reshape(d, gs[0], ws[1]*group, win.in[0])
	}
	return d
}

// convFlipped is the adjoint of a convolution of stride 1: a convolution with flipped weights whose
// input and output channels have changed places.
func (c *Context) convFlipped(g, w onnx.Value, win window, group int) onnx.Value {
	before, after := make([]int, len(win.in)), make([]int, len(win.in))
	for i := range win.in {
		before[i] = (win.kernel[i]-1)*win.dilation[i] - win.before[i]
		after[i] = win.in[i] - win.out[i] + win.before[i]
	}
	addB, cutB := splitSign(before)
	addA, cutA := splitSign(after)
	g = c.padSpatial(g, cutB, cutA)
	return c.Op("Conv", two(g, c.flipWeights(w, group)), onnx.AttrInts("dilations", win.dilation...), onnx.AttrInts("pads", join(addB, addA)...),
		onnx.AttrInt("group", group))
}

// flipWeights turns [M, C/group, kernel…] into [C, M/group, reversed kernel…].
func (c *Context) flipWeights(w onnx.Value, group int) onnx.Value {
	s := c.Shape(w)
	if s == nil {
		return ""
	}
	kernel := s[2:]
	m, cg := s[0]/group, s[1]
	perm := join([]int{0, 2, 1}, Seq(len(s) + 1)[3:])
	w = c.Transpose(c.Reshape(w, join([]int{group, m, cg}, kernel)...), perm...)
	w = c.Reshape(w, join([]int{group * cg, m}, kernel)...)
	var axes []int
	for i, k := range kernel {
		if k > 1 {
			axes = append(axes, 2+i)
		}
	}
	if axes == nil {
		return w
	}
	return c.reverse(w, axes...)
}

// reverse turns the order of elements along the axes around.
func (c *Context) reverse(v onnx.Value, axes ...int) onnx.Value {
	n := len(axes)
	return c.Slice(v, filled(-1, n), filled(-1<<31, n), axes, filled(-1, n))
}

// convWeightGrad correlates the input x [N, C, in…] with g [N, M, out…] of a convolution; the
// result is [M, C/group, kernel…].
//
// Each tap of the kernel is one matrix product of g with the elements of x that the tap reads, both
// with channels in front. For 32×64×96, kernel 3, this takes 0.87 ms on ONNX Runtime 1.27 where the
// convolution of the two takes 4.1 ms and a product with all taps gathered 1.04 ms; for 8×32×32×32,
// kernel 3×3, 2.5, 6.3 and 3.1 ms; for 4×32×24×24, kernel 11×11, 8.4, 9.7 and 13 ms. Larger kernels
// use the convolution, whose graph does not grow.
func (c *Context) convWeightGrad(x, g onnx.Value, win window, group int) onnx.Value {
	xs, gs := c.Shape(x), c.Shape(g)
	if c.b.Err() != nil {
		return ""
	}
	batch, in, out, points := xs[0], xs[1]/group, gs[1]/group, prod(win.out)
	x = c.padSpatial(x, win.before, win.tail())
	if prod(win.kernel) > maxTaps {
		return c.convWeightGradByConv(x, g, win, group)
	}
	swap := join([]int{1, 0}, Seq(len(xs))[2:])
	xt := c.Transpose(x, swap...)
	gt := c.Reshape(c.Transpose(g, swap...), group, out, batch*points)
	if group == 1 {
		gt = c.Reshape(gt, out, batch*points)
	}
	if taps := prod(win.kernel); group == 1 && taps > 1 && taps*in*batch*points <= maxGathered {
		return c.convWeightGradGathered(xt, gt, win)
	}
	var parts []onnx.Value
	slice := c.tapSlicer(xt, win)
	win.taps(func(tap []int) {
		t := slice(tap)
		switch {
		case group == 1:
			parts = append(parts, c.Gemm(gt, c.Reshape(t, in, batch*points), false, true))
			return
		case in == 1 && out == 1:
			// Products of vectors: for 64 channels and 2048 points this takes 34 µs, a batched
			// matrix product 180 µs.
			t = c.Sum(c.Mul(gt, c.Reshape(t, group, 1, batch*points)), []int{2}, false)
		default:
			t = c.MatMul(gt, c.Transpose(c.Reshape(t, group, in, batch*points), 0, 2, 1))
		}
		parts = append(parts, c.Reshape(t, group*out, in, 1))
	})
	shape := join([]int{group * out, in}, win.kernel)
	if group == 1 {
		d := c.Concat(0, parts...)
		if taps := len(parts); taps > 1 {
			d = c.Transpose(c.Reshape(d, taps, out, in), 1, 2, 0)
		}
		return c.Reshape(d, shape...)
	}
	return c.Reshape(c.Concat(2, parts...), shape...)
}

// convWeightGradGathered is one product of g [M, N·out] with what all taps read of x [C, N, in…],
// the taps one above the other.
func (c *Context) convWeightGradGathered(x, g onnx.Value, win window) onnx.Value {
	var parts []onnx.Value
	win.taps(func(tap []int) { parts = append(parts, c.tapSlice(x, win, tap)) })
	xs, gs := c.Shape(x), c.Shape(g)
	if c.b.Err() != nil {
		return ""
	}
	taps, in := prod(win.kernel), xs[0]
	d := c.Gemm(g, c.Reshape(c.Concat(0, parts...), taps*in, gs[1]), false, true)
	d = c.Transpose(c.Reshape(d, gs[0], taps, in), 0, 2, 1)
	return c.Reshape(d, join([]int{gs[0], in}, win.kernel)...)
}

// convWeightGradByConv is the convolution of x with g as its kernel, batch and channels exchanged,
// strides and dilations exchanged. x is padded to the windows' span.
func (c *Context) convWeightGradByConv(x, g onnx.Value, win window, group int) onnx.Value {
	xs := c.Shape(x)
	if xs == nil {
		return ""
	}
	batch, in, rest := xs[0], xs[1]/group, Seq(len(xs))[2:]
	x = c.Reshape(x, join([]int{batch, group, in}, xs[2:])...)
	x = c.Transpose(x, join([]int{2, 1, 0}, plus(rest, filled(1, len(rest))))...)
	x = c.Reshape(x, join([]int{in, group * batch}, xs[2:])...)
	swap := join([]int{1, 0}, rest)
	w := c.Op("Conv", two(x, c.Transpose(g, swap...)), onnx.AttrInts("strides", win.dilation...), onnx.AttrInts("dilations", win.stride...), onnx.AttrInt("group", group))
	return c.Transpose(w, swap...)
}

// channelSum sums [N, M, …] over all axes but the channels. Summing the spatial axes first and the
// batch by a product with ones takes 18, 23 and 38 µs for 32×64×96, 8×32×32×32 and 32×128×96 on
// ONNX Runtime 1.27. One ReduceSum over all takes 22, 23 and 54 µs.
func (c *Context) channelSum(g onnx.Value) onnx.Value {
	s, ok := c.Type(g).Static()
	if !ok {
		return c.Sum(g, slices.Delete(Seq(c.Rank(g)), 1, 2), false)
	}
	rows := c.Sum(c.Reshape(g, s[0], s[1], prod(s[2:])), []int{2}, false)
	return c.Sum(rows, []int{0}, false)
}
