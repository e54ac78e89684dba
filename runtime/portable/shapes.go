package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that read or change shapes and leave the elements where they are.
var shapeOperators = []operator{
	{name: "Identity", versions: []int{1, 13, 14, 16, 19, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, alias: true, build: plain(identity)},
	{name: "Reshape", versions: []int{5, 13, 14, 19, 21, 23, 24, 25}, minIn: 2, maxIn: 2, exact: true, alias: true, build: buildReshape},
	{name: "Flatten", versions: []int{1, 9, 11, 13, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, alias: true, build: buildFlatten},
	{name: "Squeeze", versions: []int{1, 11}, minIn: 1, maxIn: 1, exact: true, alias: true, build: buildSqueeze},
	{name: "Squeeze", versions: []int{13, 21, 23, 24, 25}, minIn: 1, maxIn: 2, exact: true, alias: true, build: buildSqueeze},
	{name: "Unsqueeze", versions: []int{1, 11}, minIn: 1, maxIn: 1, exact: true, alias: true, build: buildUnsqueeze},
	{name: "Unsqueeze", versions: []int{13, 21, 23, 24, 25}, minIn: 2, maxIn: 2, exact: true, alias: true, build: buildUnsqueeze},
	{name: "Shape", versions: []int{1, 13, 15, 19, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, build: buildShape},
	{name: "Size", versions: []int{1, 13, 19, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, build: plain(size)},
}

func identity(c *call) error {
	if s := c.seq(0); s != nil || c.arg(0) == nil {
		c.giveSeq(0, s)
		return nil
	}
	c.view(0, c.arg(0), c.arg(0).Shape()...)
	return nil
}

func buildReshape(n *node) (kernel, error) {
	allowZero := n.Int("allowzero", 0) != 0
	return func(c *call) error {
		x := c.arg(0)
		want, err := intsOf(c.shapeBuf(0), c.arg(1))
		if err != nil {
			return fmt.Errorf("shape: %w", err)
		}
		c.keepBuf(0, want)
		free, known := -1, 1
		for i, d := range want {
			switch {
			case d == 0 && !allowZero:
				if i >= x.Rank() {
					return fmt.Errorf("shape %v copies axis %d of an input of rank %d", slices.Clone(want), i, x.Rank())
				}
				want[i] = x.Shape()[i]
				known *= want[i]
			case d == -1 && free < 0:
				free = i
			case d < 0:
				return fmt.Errorf("shape %v is not valid", slices.Clone(want))
			default:
				known *= d
			}
		}
		if free >= 0 {
			if known == 0 || x.Len()%known != 0 {
				return fmt.Errorf("%d elements do not fit shape %v", x.Len(), slices.Clone(want))
			}
			want[free] = x.Len() / known
		}
		if product(want) != x.Len() {
			return fmt.Errorf("%d elements do not fit shape %v", x.Len(), slices.Clone(want))
		}
		c.view(0, x, want...)
		return nil
	}, nil
}

func buildFlatten(n *node) (kernel, error) {
	axis := n.Int("axis", 1)
	return func(c *call) error {
		x := c.arg(0)
		a := axis
		if a < 0 {
			a += x.Rank()
		}
		if a < 0 || a > x.Rank() {
			return fmt.Errorf("axis %d is out of range for rank %d", axis, x.Rank())
		}
		c.view(0, x, product(x.Shape()[:a]), product(x.Shape()[a:]))
		return nil
	}, nil
}

// axesArg reads axes from input i where the opset has them there, otherwise from the attribute,
// normalised for rank. ok is false when none are given.
func (c *call) axesArg(buf, i int, attr []int, rank int) (axes []int, ok bool, err error) {
	axes = append(c.shapeBuf(buf), attr...)
	ok = attr != nil
	if t := c.arg(i); t != nil {
		if axes, err = intsOf(axes[:0], t); err != nil {
			return nil, false, fmt.Errorf("axes: %w", err)
		}
		ok = true
	}
	c.keepBuf(buf, axes)
	for j, a := range axes {
		if axes[j], err = normAxis(a, rank); err != nil {
			return nil, false, err
		}
	}
	return axes, ok, nil
}

func buildSqueeze(n *node) (kernel, error) {
	attr := n.Ints("axes")
	return func(c *call) error {
		x := c.arg(0)
		axes, given, err := c.axesArg(0, 1, attr, x.Rank())
		if err != nil {
			return err
		}
		shape := c.shapeBuf(1)
		for i, d := range x.Shape() {
			drop := !given && d == 1 || slices.Contains(axes, i)
			if drop && d != 1 {
				return fmt.Errorf("axis %d has extent %d and cannot be removed", i, d)
			}
			if !drop {
				shape = append(shape, d)
			}
		}
		c.view(0, x, c.keepBuf(1, shape)...)
		return nil
	}, nil
}

func buildUnsqueeze(n *node) (kernel, error) {
	attr := n.Ints("axes")
	return func(c *call) error {
		x := c.arg(0)
		count := len(attr)
		if t := c.arg(1); t != nil {
			count = t.Len()
		}
		rank := x.Rank() + count
		axes, _, err := c.axesArg(0, 1, attr, rank)
		if err != nil {
			return err
		}
		shape, next := c.shapeBuf(1), 0
		for i := range rank {
			switch {
			case slices.Contains(axes, i):
				shape = append(shape, 1)
			case next < x.Rank():
				shape = append(shape, x.Shape()[next])
				next++
			}
		}
		if len(shape) != rank || next != x.Rank() {
			return fmt.Errorf("axes %v name an axis twice", slices.Clone(axes))
		}
		c.view(0, x, c.keepBuf(1, shape)...)
		return nil
	}, nil
}

func buildShape(n *node) (kernel, error) {
	start, end, hasEnd := n.Int("start", 0), n.Int("end", 0), n.Has("end")
	return func(c *call) error {
		shape := c.arg(0).Shape()
		r := len(shape)
		lo, hi := start, end
		if lo < 0 {
			lo += r
		}
		if hi < 0 {
			hi += r
		}
		if !hasEnd {
			hi = r
		}
		lo, hi = min(max(lo, 0), r), min(max(hi, 0), r)
		if hi < lo {
			hi = lo
		}
		out := c.make(0, tensor.Int64, hi-lo).Int64s()
		for i := range out {
			out[i] = int64(shape[lo+i])
		}
		return nil
	}, nil
}

func size(c *call) error {
	c.make(0, tensor.Int64).Int64s()[0] = int64(c.arg(0).Len())
	return nil
}
