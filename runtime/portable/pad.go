package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var padOperators = []operator{
	{name: "Pad", versions: []int{2}, minIn: 1, maxIn: 1, exact: true, build: buildPad},
	{name: "Pad", versions: []int{11, 13, 18, 19, 21, 23, 24, 25}, minIn: 2, maxIn: 4, exact: true, build: buildPad},
	{name: "CenterCropPad", versions: []int{18}, minIn: 2, maxIn: 2, exact: true, build: buildCenterCropPad},
}

func buildPad(n *node) (kernel, error) {
	mode := n.Str("mode", "constant")
	switch mode {
	case "constant", "reflect", "edge", "wrap":
	default:
		return nil, fmt.Errorf("mode %q is not known", mode)
	}
	attr := n.Ints("pads")
	value := tensor.Scalar(n.Float("value", 0))
	return func(c *call) error {
		x := c.arg(0)
		pads := append(c.shapeBuf(0), attr...)
		var err error
		if t := c.arg(1); t != nil {
			if pads, err = intsOf(pads[:0], t); err != nil {
				return fmt.Errorf("pads: %w", err)
			}
		}
		c.keepBuf(0, pads)
		axes, given, err := c.axesArg(1, 3, nil, x.Rank())
		if err != nil {
			return err
		}
		if !given {
			for i := range x.Rank() {
				axes = append(axes, i)
			}
			c.keepBuf(1, axes)
		}
		if len(pads) != 2*len(axes) {
			return fmt.Errorf("%d pads for %d axes", len(pads), len(axes))
		}
		lo, hi := c.shapeBuf(2), c.shapeBuf(3)
		for range x.Rank() {
			lo, hi = append(lo, 0), append(hi, 0)
		}
		c.keepBuf(2, lo)
		c.keepBuf(3, hi)
		for i, a := range axes {
			lo[a], hi[a] = pads[i], pads[len(axes)+i]
		}
		fillWith := c.arg(2)
		if fillWith != nil && (fillWith.DType() != x.DType() || fillWith.Len() != 1) {
			return fmt.Errorf("constant_value is %v, expected a scalar of %v", fillWith, x.DType())
		}
		if fillWith == nil && x.DType() != tensor.String {
			if fillWith, err = convert(value, x.DType()); err != nil {
				return err
			}
		}
		return pad(c, x, lo, hi, mode, fillWith)
	}, nil
}

type padState struct {
	copy          strided
	st, sd, shape []int
	index         [][]int
}

// pad writes x with lo elements before and hi after each axis; negative amounts cut.
func pad(c *call, x *tensor.Tensor, lo, hi []int, mode string, value *tensor.Tensor) error {
	s := keep[padState](c)
	s.shape = s.shape[:0]
	for i, d := range x.Shape() {
		if d+lo[i]+hi[i] < 0 {
			return fmt.Errorf("pads %d and %d of axis %d with extent %d", lo[i], hi[i], i, d)
		}
		s.shape = append(s.shape, d+lo[i]+hi[i])
	}
	out := c.make(0, x.DType(), s.shape...)
	dst, err := elementsOf(out)
	if err != nil {
		return err
	}
	src, _ := elementsOf(x)
	s.st, s.sd = rowMajor(s.st, x.Shape()), rowMajor(s.sd, s.shape)
	if mode != "constant" {
		return padBy(s, dst, src, x.Shape(), lo, mode)
	}
	if value == nil {
		clear(out.Strings())
	} else {
		v, err := elementsOf(value)
		if err != nil {
			return err
		}
		if err := fill(out, v); err != nil {
			return err
		}
	}
	s.copy.reset()
	for i, d := range x.Shape() {
		cut := max(0, -lo[i])
		n := d - cut - max(0, -hi[i])
		if n <= 0 {
			return nil
		}
		s.copy.axis(n, s.sd[i], s.st[i])
		s.copy.do += max(0, lo[i]) * s.sd[i]
		s.copy.so += cut * s.st[i]
	}
	s.copy.run(dst, src)
	return nil
}

// padBy copies from the position that each output position mirrors, per axis.
func padBy(s *padState, dst, src elements, in, lo []int, mode string) error {
	if product(s.shape) == 0 {
		return nil
	}
	for len(s.index) < len(in) {
		s.index = append(s.index, nil)
	}
	for a, d := range in {
		if d == 0 {
			return fmt.Errorf("axis %d has no elements to repeat", a)
		}
		s.index[a] = resize(s.index[a], s.shape[a])
		for i := range s.index[a] {
			s.index[a][i] = mirrored(i-lo[a], d, mode) * s.st[a]
		}
	}
	r := len(in) - 1
	if r < 0 {
		dst.copy(0, src, 0, 1)
		return nil
	}
	pos := make([]int, r)
	for o := 0; o < product(s.shape); o += s.shape[r] {
		base := 0
		for a, p := range pos {
			base += s.index[a][p]
		}
		for i, at := range s.index[r] {
			dst.copy(o+i, src, base+at, 1)
		}
		for a := r - 1; a >= 0; a-- {
			pos[a]++
			if pos[a] < s.shape[a] {
				break
			}
			pos[a] = 0
		}
	}
	return nil
}

// mirrored maps a position outside [0, d) into it.
func mirrored(i, d int, mode string) int {
	switch mode {
	case "edge":
		return min(max(i, 0), d-1)
	case "wrap":
		return ((i % d) + d) % d
	}
	if d == 1 {
		return 0
	}
	period := 2 * (d - 1)
	i = ((i % period) + period) % period
	if i >= d {
		i = period - i
	}
	return i
}

func buildCenterCropPad(n *node) (kernel, error) {
	attr := n.Ints("axes")
	return func(c *call) error {
		x := c.arg(0)
		want, err := intsOf(nil, c.arg(1))
		if err != nil {
			return fmt.Errorf("shape: %w", err)
		}
		axes := slices.Clone(attr)
		if attr == nil {
			for i := range x.Rank() {
				axes = append(axes, i)
			}
		}
		if len(want) != len(axes) {
			return fmt.Errorf("%d extents for %d axes", len(want), len(axes))
		}
		lo, hi := make([]int, x.Rank()), make([]int, x.Rank())
		for i, a := range axes {
			if a, err = normAxis(a, x.Rank()); err != nil {
				return err
			}
			more := want[i] - x.Shape()[a]
			if more >= 0 {
				lo[a] = more / 2
			} else {
				lo[a] = -(-more / 2)
			}
			hi[a] = more - lo[a]
		}
		var zero *tensor.Tensor
		if x.DType() != tensor.String {
			if zero, err = convert(tensor.Scalar(float32(0)), x.DType()); err != nil {
				return err
			}
		}
		return pad(c, x, lo, hi, "constant", zero)
	}, nil
}
