package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// window holds the attributes that convolutions and pools share, one entry per spatial axis.
type window struct {
	kernel    []onnx.Dim
	strides   []int
	dilations []int
	pads      []int // begins, then ends
	auto      string
	ceil      bool
}

// window reads strides, pads, dilations and auto_pad for n spatial axes; a missing list means ones
// or zeros.
func (c *call) window(n int) (*window, error) {
	w := &window{strides: c.ints("strides"), dilations: c.ints("dilations"), pads: c.ints("pads"), auto: c.str("auto_pad", "NOTSET"), ceil: c.int("ceil_mode", 0) != 0}
	fill := func(name string, list []int, n, def, least int) ([]int, error) {
		if list == nil {
			list = make([]int, n)
			for i := range list {
				list[i] = def
			}
		}
		if len(list) != n {
			return nil, fmt.Errorf("attribute %q has %d numbers, want %d", name, len(list), n)
		}
		for _, v := range list {
			if v < least {
				return nil, fmt.Errorf("attribute %q is %v", name, list)
			}
		}
		return list, nil
	}
	var err error
	if w.strides, err = fill("strides", w.strides, n, 1, 1); err != nil {
		return nil, err
	}
	if w.dilations, err = fill("dilations", w.dilations, n, 1, 1); err != nil {
		return nil, err
	}
	if w.auto != "NOTSET" && w.auto != "" {
		// Explicit pads beside auto_pad say nothing.
		w.pads = nil
	}
	if w.pads, err = fill("pads", w.pads, 2*n, 0, -maxMagnitude); err != nil {
		return nil, err
	}
	switch w.auto {
	case "":
		w.auto = "NOTSET"
	case "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER":
	default:
		return nil, fmt.Errorf("auto_pad %q is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER", w.auto)
	}
	return w, nil
}

// kernelAttr reads kernel_shape as extents.
func (c *call) kernelAttr() ([]onnx.Dim, error) {
	k := c.ints("kernel_shape")
	out := make([]onnx.Dim, len(k))
	for i, v := range k {
		if v < 1 {
			return nil, fmt.Errorf("kernel_shape is %v", k)
		}
		out[i] = onnx.Known(v)
	}
	return out, nil
}

// slide returns the number of positions of the window on spatial axis i of extent d.
func (s *state) slide(w *window, i int, d onnx.Dim) (onnx.Dim, error) {
	in, stride := ofDim(d), int64(w.strides[i])
	if w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" {
		// ceil(in / stride)
		return s.divFloor(s.add(in, num(stride-1)), stride).dim(), nil
	}
	n := len(w.kernel)
	k := ofDim(w.kernel[i])
	// The last element that a dilated kernel covers: dilation·(k-1).
	last := s.mul(s.add(k, num(-1)), num(int64(w.dilations[i])))
	padded := s.add(in, num(int64(w.pads[i])+int64(w.pads[n+i])))
	span := s.sub(s.sub(padded, last), num(1))
	if span.known && span.n < 0 {
		return onnx.Dim{}, fmt.Errorf("the kernel covers %d elements, but spatial axis %d has %d with padding", last.n+1, i, padded.n)
	}
	out := s.add(s.divFloor(span, stride), num(1))
	if w.ceil && stride > 1 {
		up := s.add(s.divFloor(s.add(span, num(stride-1)), stride), num(1))
		if !up.known || !in.known {
			if up != out {
				return onnx.Symbol(""), nil
			}
		} else if (up.n-1)*stride < in.n+int64(w.pads[i]) {
			// A window that would start in the padding at the end is left out.
			out = up
		} else {
			out = num(up.n - 1)
		}
	}
	return out.dim(), nil
}

func conv(c *call) error {
	out, err := c.convDims(c.typ(0), c.typ(1))
	if err != nil {
		return err
	}
	if out.Ranked && c.node.OpType == "Conv" {
		if err := c.bias(2, out.Dims[1]); err != nil {
			return err
		}
	}
	c.set(0, withDType(out, c.dtype(0)))
	return nil
}

// bias checks that an optional input is a list of as many numbers as there are output channels.
func (c *call) bias(i int, channels onnx.Dim) error {
	t := c.typ(i)
	if !t.Ranked {
		return nil
	}
	if len(t.Dims) != 1 {
		return fmt.Errorf("bias %q is %v, want one number per output channel", c.node.In(i), t)
	}
	if _, ok := mergeDim(t.Dims[0], channels); !ok {
		return fmt.Errorf("bias %q is %v, but there are %v output channels", c.node.In(i), t, channels)
	}
	return nil
}

// convDims is the output shape of a convolution of x [N, C, D…] with w [M, C/group, k…].
func (c *call) convDims(x, w onnx.TensorType) (onnx.TensorType, error) {
	var out onnx.TensorType
	if w.Ranked && len(w.Dims) < 3 {
		return out, fmt.Errorf("weights %v: want output channels, input channels and at least one spatial axis", w)
	}
	if !x.Ranked {
		if w.Ranked {
			out = onnx.TensorType{Ranked: true, Dims: unknownDims(len(w.Dims))}
			out.Dims[1] = w.Dims[0]
		}
		return out, nil
	}
	n := len(x.Dims) - 2
	if n < 1 {
		return out, fmt.Errorf("input %v: want batch, channels and at least one spatial axis", x)
	}
	if w.Ranked && len(w.Dims) != n+2 {
		return out, fmt.Errorf("weights %v must have the rank of input %v", w, x)
	}
	win, err := c.window(n)
	if err != nil {
		return out, err
	}
	if win.kernel, err = c.kernelAttr(); err != nil {
		return out, err
	}
	group := c.int("group", 1)
	if group < 1 {
		return out, fmt.Errorf("group is %d", group)
	}
	if len(win.kernel) == 0 {
		win.kernel = unknownDims(n)
	}
	if len(win.kernel) != n {
		return out, fmt.Errorf("kernel_shape has %d numbers for %d spatial axes", len(win.kernel), n)
	}
	m := onnx.Symbol("")
	if w.Ranked {
		m = w.Dims[0]
		for i := range n {
			if win.kernel[i], err = agree(win.kernel[i], w.Dims[2+i], "kernel_shape and weights"); err != nil {
				return out, err
			}
		}
		if ch, per := x.Dims[1], w.Dims[1]; ch.IsKnown() && per.IsKnown() && ch.Value != per.Value*group {
			return out, fmt.Errorf("input %v has %d channels, but weights %v in %d groups want %d", x, ch.Value, w, group, per.Value*group)
		}
		if m.IsKnown() && m.Value%group != 0 {
			return out, fmt.Errorf("%d output channels do not divide into %d groups", m.Value, group)
		}
	}
	out = onnx.TensorType{Ranked: true, Dims: []onnx.Dim{x.Dims[0], m}}
	for i, d := range x.Dims[2:] {
		o, err := c.env.slide(win, i, d)
		if err != nil {
			return out, fmt.Errorf("input %v, weights %v: %w", x, w, err)
		}
		out.Dims = append(out.Dims, o)
	}
	return out, nil
}

func convInteger(c *call) error {
	out, err := c.convDims(c.typ(0), c.typ(1))
	c.set(0, withDType(out, tensor.Int32))
	return err
}

// qLinearConv has the inputs x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale,
// y_zero_point, bias.
func qLinearConv(c *call) error {
	out, err := c.convDims(c.typ(0), c.typ(3))
	c.set(0, withDType(out, c.dtype(7)))
	return err
}

// convTranspose is the gradient of a convolution towards its input: w is [C, M/group, k…].
func convTranspose(c *call) error {
	x, w := c.typ(0), c.typ(1)
	if !x.Ranked {
		c.setUnranked(0, x.DType)
		return nil
	}
	n := len(x.Dims) - 2
	if n < 1 {
		return fmt.Errorf("input %v: want batch, channels and at least one spatial axis", x)
	}
	if w.Ranked && len(w.Dims) != n+2 {
		return fmt.Errorf("weights %v must have the rank of input %v", w, x)
	}
	win, err := c.window(n)
	if err != nil {
		return err
	}
	if win.kernel, err = c.kernelAttr(); err != nil {
		return err
	}
	if len(win.kernel) == 0 {
		win.kernel = unknownDims(n)
	}
	if len(win.kernel) != n {
		return fmt.Errorf("kernel_shape has %d numbers for %d spatial axes", len(win.kernel), n)
	}
	group := c.int("group", 1)
	if group < 1 {
		return fmt.Errorf("group is %d", group)
	}
	m := onnx.Symbol("")
	if w.Ranked {
		for i := range n {
			if win.kernel[i], err = agree(win.kernel[i], w.Dims[2+i], "kernel_shape and weights"); err != nil {
				return err
			}
		}
		if _, err := agree(x.Dims[1], w.Dims[0], fmt.Sprintf("channels of input %v and of weights %v", x, w)); err != nil {
			return err
		}
		m = c.env.mul(ofDim(w.Dims[1]), num(int64(group))).dim()
	}
	if err := c.bias(2, m); err != nil {
		return err
	}
	outPad, outShape := c.ints("output_padding"), c.ints("output_shape")
	if outPad == nil {
		outPad = make([]int, n)
	}
	if len(outPad) != n || outShape != nil && len(outShape) < n {
		return fmt.Errorf("output_padding %v and output_shape %v for %d spatial axes", outPad, outShape, n)
	}
	// output_shape may list batch and channels too.
	outShape = outShape[max(0, len(outShape)-n):]
	dims := []onnx.Dim{x.Dims[0], m}
	s := c.env.state
	for i, d := range x.Dims[2:] {
		if len(outShape) > 0 {
			if outShape[i] < 0 {
				return fmt.Errorf("output_shape is %v", outShape)
			}
			// Without padding, and with the most that output_padding may add: stride·in +
			// dilation·(k-1)
			last := s.mul(s.add(ofDim(win.kernel[i]), num(-1)), num(int64(win.dilations[i])))
			most := s.add(s.mul(ofDim(d), num(int64(win.strides[i]))), last)
			if most.known && int64(outShape[i]) > most.n {
				return fmt.Errorf("output_shape is %v, but input %v and weights %v reach at most %d elements on spatial axis %d", outShape, x, w, most.n, i)
			}
			dims = append(dims, onnx.Known(outShape[i]))
			continue
		}
		stride := num(int64(win.strides[i]))
		if win.auto == "SAME_UPPER" || win.auto == "SAME_LOWER" {
			dims = append(dims, s.mul(ofDim(d), stride).dim())
			continue
		}
		// stride·(in-1) + output_padding + dilation·(k-1) + 1 - pads
		last := s.mul(s.add(ofDim(win.kernel[i]), num(-1)), num(int64(win.dilations[i])))
		v := s.add(s.mul(s.add(ofDim(d), num(-1)), stride), s.add(last, num(int64(1+outPad[i]-win.pads[i]-win.pads[n+i]))))
		if v.known && v.n < 0 {
			return fmt.Errorf("input %v, weights %v: spatial axis %d of the output has %d elements", x, w, i, v.n)
		}
		dims = append(dims, v.dim())
	}
	c.setDims(0, x.DType, dims...)
	return nil
}

// deformConv has the inputs X, W, offset, B, mask; the output shape is that of a convolution.
func deformConv(c *call) error {
	out, err := c.convDims(c.typ(0), c.typ(1))
	c.set(0, withDType(out, c.dtype(0)))
	return err
}

// causalConv keeps the length of [batch, channels, length]; its state is the last kernel-1
// positions.
func causalConv(c *call) error {
	x, w := c.typ(0), c.typ(1)
	if err := c.rankIs(0, 3); err != nil {
		return err
	}
	if err := c.rankIs(1, 3); err != nil {
		return err
	}
	c.set(0, x)
	batch, ch, past := onnx.Symbol(""), onnx.Symbol(""), onnx.Symbol("")
	if x.Ranked {
		batch, ch = x.Dims[0], x.Dims[1]
	}
	if w.Ranked {
		if d := w.Dims[1]; d.IsKnown() && d.Value != 1 {
			return fmt.Errorf("weights %v: want one input channel per output channel", w)
		}
		var err error
		if ch, err = agree(ch, w.Dims[0], "channels of input and weights"); err != nil {
			return err
		}
		past = c.env.add(ofDim(w.Dims[2]), num(-1)).dim()
	}
	c.setDims(1, x.DType, batch, ch, past)
	return c.mergeState(3, 1)
}

// col2ImColumns checks that there are as many columns as positions of the block on the image.
func (c *call) col2ImColumns(image []val) error {
	w, err := c.window(len(image))
	if err != nil {
		return err
	}
	block, ok := c.values(2)
	if !ok {
		return nil
	}
	if len(block) != len(image) {
		return fmt.Errorf("block_shape %v and image_shape %v have different lengths", texts(block), texts(image))
	}
	columns := num(1)
	for _, b := range block {
		if b.known && b.n < 1 {
			return fmt.Errorf("block_shape is %v", texts(block))
		}
		w.kernel = append(w.kernel, b.dim())
	}
	for i, v := range image {
		d, err := c.env.slide(w, i, v.dim())
		if err != nil {
			return err
		}
		columns = c.env.mul(columns, ofDim(d))
	}
	if t := c.typ(0); t.Ranked {
		if _, err := agree(t.Dims[2], columns.dim(), fmt.Sprintf("columns of %v and positions of blocks %v on %v", t, texts(block), texts(image))); err != nil {
			return err
		}
	}
	return nil
}

// col2Im adds columns [N, C·block, L] up into an image [N, C, image…].
func col2Im(c *call) error {
	if err := c.rankIs(0, 3); err != nil {
		return err
	}
	t := c.typ(0)
	image, ok := c.values(1)
	if !ok {
		n, known := c.lengthOf(1)
		if !known || n > maxRank {
			c.setUnranked(0, t.DType)
			return nil
		}
		image = make([]val, n)
	}
	dims := []onnx.Dim{onnx.Symbol(""), onnx.Symbol("")}
	if t.Ranked {
		dims[0] = t.Dims[0]
		if block, ok := c.values(2); ok {
			v := num(1)
			for _, b := range block {
				v = c.env.mul(v, b)
			}
			if t.Dims[1].IsKnown() && v.known && (v.n <= 0 || int64(t.Dims[1].Value)%v.n != 0) {
				return fmt.Errorf("axis 1 of %v does not divide into blocks %v", t, texts(block))
			}
			dims[1] = c.env.quotient(ofDim(t.Dims[1]), v).dim()
		}
	}
	for _, v := range image {
		if v.known && v.n < 0 {
			return fmt.Errorf("image_shape is %v", texts(image))
		}
		dims = append(dims, v.dim())
	}
	if err := c.col2ImColumns(image); err != nil {
		return err
	}
	c.setDims(0, t.DType, dims...)
	return nil
}
