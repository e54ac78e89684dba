package portable

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var convOperators = []operator{
	{name: "Conv", versions: []int{1, 11, 22}, minIn: 2, maxIn: 3, build: buildConv},
	{name: "ConvTranspose", versions: []int{1, 11, 22}, minIn: 2, maxIn: 3, build: buildConvTranspose},
	{name: "Col2Im", versions: []int{18}, minIn: 3, maxIn: 3, build: buildCol2Im},
}

func buildConv(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	group := n.Int("group", 1)
	return byFloat(func(c *call) error { return conv[float32](c, w, group) }, func(c *call) error { return conv[float64](c, w, group) }), nil
}

// convShapes checks a convolution's operands.
func convShapes(x, weight, bias *tensor.Tensor, group, inAxis int) error {
	if x.DType() != weight.DType() || x.Rank() < 3 || weight.Rank() != x.Rank() || group < 1 {
		return fmt.Errorf("input %v with weights %v in %d groups", x, weight, group)
	}
	channels := weight.Shape()[1] * group
	maps := weight.Shape()[0]
	if inAxis == 0 {
		channels, maps = weight.Shape()[0], weight.Shape()[1]*group
	}
	if channels != x.Shape()[1] || maps%group != 0 || channels%group != 0 {
		return fmt.Errorf("input %v with weights %v in %d groups", x, weight, group)
	}
	if bias != nil && (bias.Len() != maps || bias.DType() != x.DType()) {
		return fmt.Errorf("bias is %v, expected %d elements of %v", bias, maps, x.DType())
	}
	return nil
}

func conv[T float](c *call, w window, group int) error {
	x, weight, bias := c.arg(0), c.arg(1), c.arg(2)
	if err := convShapes(x, weight, bias, group, 1); err != nil {
		return err
	}
	in, out, err := w.convolves(x.Shape(), weight.Shape())
	if err != nil {
		return err
	}
	batch, channels, maps := x.Shape()[0], x.Shape()[1]/group, weight.Shape()[0]/group
	shape := w.appendSpatial(append(c.shapeBuf(0), batch, maps*group), out)
	dst := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	src, wd := data[T](x), data[T](weight)
	inLen, outLen, taps := volume(in), volume(out), volume(w.kernel)
	patch := channels * taps
	// A window of one element with stride 1 and no padding reads the input as it lies.
	direct := taps == 1 && inLen == outLen && w.begin == [3]int{} && w.end == [3]int{} && w.stride == [3]int{1, 1, 1}
	var rows []T
	if !direct {
		rows = scratch[T](c, 0, outLen*patch)
	}
	for b := range batch {
		for g := range group {
			xs := src[(b*group+g)*channels*inLen:][:channels*inLen]
			ws := wd[g*maps*patch:][:maps*patch]
			ys := dst[(b*group+g)*maps*outLen:][:maps*outLen]
			if direct {
				gemm(c, false, false, maps, outLen, patch, 1, ws, patch, xs, outLen, 0, ys, outLen)
			} else {
				im2row(rows, xs, &w, in, out, channels)
				gemm(c, false, true, maps, outLen, patch, 1, ws, patch, rows, patch, 0, ys, outLen)
			}
		}
	}
	addBias(dst, bias, maps*group, outLen)
	return nil
}

// addBias adds one value to each channel of an N×C×… array.
func addBias[T float](dst []T, bias *tensor.Tensor, channels, inner int) {
	if bias == nil || inner == 0 {
		return
	}
	b := data[T](bias)
	for i := 0; i < len(dst); i += inner {
		v := b[i/inner%channels]
		row := dst[i : i+inner]
		for j := range row {
			row[j] += v
		}
	}
}

// im2row writes, for every output position, the elements under the window as one row: channel by
// channel, tap by tap, zero outside.
func im2row[T float](rows, x []T, w *window, in, out [3]int, channels int) {
	at := 0
	for o0 := range out[0] {
		p0 := o0*w.stride[0] - w.begin[0]
		for o1 := range out[1] {
			p1 := o1*w.stride[1] - w.begin[1]
			for o2 := range out[2] {
				p2 := o2*w.stride[2] - w.begin[2]
				for ch := range channels {
					plane := x[ch*volume(in):]
					for k0 := range w.kernel[0] {
						i0 := p0 + k0*w.dilation[0]
						for k1 := range w.kernel[1] {
							i1 := p1 + k1*w.dilation[1]
							line := rows[at : at+w.kernel[2]]
							at += w.kernel[2]
							if uint(i0) >= uint(in[0]) || uint(i1) >= uint(in[1]) {
								clear(line)
								continue
							}
							base := (i0*in[1] + i1) * in[2]
							for k2 := range line {
								i2 := p2 + k2*w.dilation[2]
								if uint(i2) < uint(in[2]) {
									line[k2] = plane[base+i2]
								} else {
									line[k2] = 0
								}
							}
						}
					}
				}
			}
		}
	}
}

// col2im adds columns back: cols is (channels·taps)×positions, and every element goes to the place
// of image that its window position covers.
func col2im[T float](image, cols []T, w *window, in, out [3]int, channels int) {
	positions := volume(out)
	r := 0
	for ch := range channels {
		plane := image[ch*volume(in):][:volume(in)]
		for k0 := range w.kernel[0] {
			for k1 := range w.kernel[1] {
				for k2 := range w.kernel[2] {
					row := cols[r*positions:][:positions]
					r++
					at := 0
					for o0 := range out[0] {
						i0 := o0*w.stride[0] - w.begin[0] + k0*w.dilation[0]
						for o1 := range out[1] {
							i1 := o1*w.stride[1] - w.begin[1] + k1*w.dilation[1]
							if uint(i0) >= uint(in[0]) || uint(i1) >= uint(in[1]) {
								at += out[2]
								continue
							}
							base := (i0*in[1] + i1) * in[2]
							for o2 := range out[2] {
								if i2 := o2*w.stride[2] - w.begin[2] + k2*w.dilation[2]; uint(i2) < uint(in[2]) {
									plane[base+i2] += row[at]
								}
								at++
							}
						}
					}
				}
			}
		}
	}
}

func buildConvTranspose(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	t := transposed{window: w, group: n.Int("group", 1), extra: n.Ints("output_padding"), shape: n.Ints("output_shape")}
	return byFloat(func(c *call) error { return convTranspose[float32](c, t) }, func(c *call) error { return convTranspose[float64](c, t) }), nil
}

type transposed struct {
	window
	group        int
	extra, shape []int
}

// output inverts the window's arithmetic: the extents whose convolution gives in. Where
// output_shape or automatic padding fixes the extents, the padding follows.
func (t *transposed) output(in [3]int) ([3]int, error) {
	out := [3]int{1, 1, 1}
	if t.extra != nil && len(t.extra) != t.rank {
		return out, fmt.Errorf("output_padding has %d elements for %d axes", len(t.extra), t.rank)
	}
	shape := t.shape
	if len(shape) == t.rank+2 {
		shape = shape[2:]
	}
	if shape != nil && len(shape) != t.rank {
		return out, fmt.Errorf("output_shape has %d elements for %d axes", len(t.shape), t.rank)
	}
	for i := 3 - t.rank; i < 3; i++ {
		a := i - (3 - t.rank)
		full := t.stride[i]*(in[i]-1) + t.span(i)
		if t.extra != nil {
			full += t.extra[a]
		}
		same := t.auto == "SAME_UPPER" || t.auto == "SAME_LOWER"
		switch {
		case shape != nil:
			out[i] = shape[a]
		case same:
			out[i] = in[i] * t.stride[i]
		default:
			if t.auto == "VALID" {
				t.begin[i], t.end[i] = 0, 0
			}
			out[i] = full - t.begin[i] - t.end[i]
		}
		if shape != nil || same {
			total := max(0, full-out[i])
			t.begin[i] = total - total/2
			if t.auto == "SAME_UPPER" {
				t.begin[i] = total / 2
			}
			t.end[i] = total - t.begin[i]
		}
		if out[i] < 0 {
			return out, fmt.Errorf("extent %d with padding %d and %d gives an output of %d", in[i], t.begin[i], t.end[i], out[i])
		}
	}
	return out, nil
}

func convTranspose[T float](c *call, t transposed) error {
	x, weight, bias := c.arg(0), c.arg(1), c.arg(2)
	if err := convShapes(x, weight, bias, t.group, 0); err != nil {
		return err
	}
	if err := t.setKernel(weight.Shape()); err != nil {
		return err
	}
	in, err := t.spatial(x.Shape())
	if err != nil {
		return err
	}
	out, err := t.output(in)
	if err != nil {
		return err
	}
	batch, channels, maps := x.Shape()[0], x.Shape()[1]/t.group, weight.Shape()[1]
	shape := t.appendSpatial(append(c.shapeBuf(0), batch, maps*t.group), out)
	dst := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	src, wd := data[T](x), data[T](weight)
	inLen, outLen, patch := volume(in), volume(out), maps*volume(t.kernel)
	cols := scratch[T](c, 0, patch*inLen)
	clear(dst)
	for b := range batch {
		for g := range t.group {
			xs := src[(b*t.group+g)*channels*inLen:][:channels*inLen]
			ws := wd[g*channels*patch:][:channels*patch]
			gemm(c, true, false, patch, inLen, channels, 1, ws, patch, xs, inLen, 0, cols, inLen)
			col2im(dst[(b*t.group+g)*maps*outLen:][:maps*outLen], cols, &t.window, out, in, maps)
		}
	}
	addBias(dst, bias, maps*t.group, outLen)
	return nil
}

func buildCol2Im(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	return byFloat(func(c *call) error { return col2imKernel[float32](c, w) }, func(c *call) error { return col2imKernel[float64](c, w) }), nil
}

func col2imKernel[T float](c *call, w window) error {
	x := c.arg(0)
	image, err := intsOf(c.shapeBuf(1), c.arg(1))
	if err != nil {
		return fmt.Errorf("image_shape: %w", err)
	}
	block, err := intsOf(c.shapeBuf(2), c.arg(2))
	if err != nil {
		return fmt.Errorf("block_shape: %w", err)
	}
	c.keepBuf(1, image)
	c.keepBuf(2, block)
	if len(block) != len(image) || len(image) < 1 || len(image) > 3 || x.Rank() != 3 {
		return unsupported("input %v, image of %d axes, block of %d", x, len(image), len(block))
	}
	in := [3]int{1, 1, 1}
	w.rank = len(image)
	off := 3 - w.rank
	copy(in[off:], image)
	for i, b := range block {
		if b < 1 || image[i] < 0 {
			return fmt.Errorf("block_shape %v, image_shape %v", append([]int{}, block...), append([]int{}, image...))
		}
		w.kernel[off+i] = b
	}
	out, err := w.output(in)
	if err != nil {
		return err
	}
	taps := volume(w.kernel)
	if x.Shape()[1]%taps != 0 || x.Shape()[2] != volume(out) {
		return fmt.Errorf("input %v for blocks of %d elements at %d positions", x, taps, volume(out))
	}
	batch, channels := x.Shape()[0], x.Shape()[1]/taps
	shape := append(append(c.shapeBuf(0), batch, channels), image...)
	dst := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	clear(dst)
	size, src := x.Shape()[1]*x.Shape()[2], data[T](x)
	for b := range batch {
		col2im(dst[b*channels*volume(in):][:channels*volume(in)], src[b*size:][:size], &w, in, out, channels)
	}
	return nil
}
