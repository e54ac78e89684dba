package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

var padRules = []Rule{
	{Op: "Pad", Versions: []int{11, 13, 18, 19, 21, 23, 24, 25}, VJP: vjpPad},
}

// vjpPad: the gradient of the data is the inner part of the gradient, plus, for the modes that copy
// data into the border, the border folded back. The constant's gradient is the sum over the border.
func vjpPad(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	rank := c.Rank(n.In(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	mode := n.Str("mode", "constant")
	shape, static := c.Type(n.In(0)).Static()
	before, after, ok := c.padWidths(n, rank)
	if !ok || !static {
		return c.dynamicPad(n, g[0], mode)
	}
	d := make([]onnx.Value, 3)
	if mode == "constant" {
		d[0] = c.crop(g[0], before, after)
		if c.Wants(2) {
			// The data received the part that negative widths did not cut off.
			border := c.Sub(c.total(g[0]), c.total(d[0]))
			d[2] = c.ReshapeLike(border, n.In(2))
		}
		return d, nil
	}
	for a, size := range shape {
		if max(before[a], after[a]) > maxFolds*size {
			return c.dynamicPad(n, g[0], mode)
		}
	}
	d[0] = g[0]
	for a := range shape {
		d[0] = c.fold(d[0], mode, a, shape[a], before[a], after[a])
	}
	return d, nil
}

// maxFolds is how many times as wide as the data a border may be to be folded back run by run.
const maxFolds = 64

// padWidths returns the widths before and after each axis when they are constant.
func (c *Context) padWidths(n *onnx.Node, rank int) (before, after []int, ok bool) {
	pads, ok := c.KnownInts(n.In(1))
	axes := Seq(rank)
	if n.In(3) != "" {
		var known bool
		axes, known = c.KnownInts(n.In(3))
		ok = ok && known
	}
	if !ok || len(pads) != 2*len(axes) {
		return nil, nil, false
	}
	before, after = make([]int, rank), make([]int, rank)
	for i, a := range axes {
		before[Axis(a, rank)], after[Axis(a, rank)] = pads[i], pads[len(axes)+i]
	}
	return before, after, true
}

// dynamicPad serves padding whose widths or extents only a run can tell: padding with the negated
// widths or, where elements are copied into the border, a scatter to the elements' positions.
func (c *Context) dynamicPad(n *onnx.Node, g onnx.Value, mode string) ([]onnx.Value, error) {
	x := n.In(0)
	if mode != "constant" {
		at := c.Op("Pad", []onnx.Value{c.positions(x), n.In(1), "", n.In(3)}, onnx.AttrStr("mode", mode))
		return []onnx.Value{c.scatterFlat(g, at, x), "", ""}, nil
	}
	in := []onnx.Value{g, c.Neg(n.In(1)), "", n.In(3)}
	d := []onnx.Value{c.assume(c.Op("Pad", in), x), "", ""}
	if c.Wants(2) {
		d[2] = c.ReshapeLike(c.Sub(c.total(g), c.total(d[0])), n.In(2))
	}
	return d, nil
}

// total emits the sum of all elements as a scalar.
func (c *Context) total(v onnx.Value) onnx.Value { return c.Sum(v, Seq(c.Rank(v)), false) }

// crop removes widths around v; negative widths add zeros instead.
func (c *Context) crop(v onnx.Value, before, after []int) onnx.Value {
	s := c.Shape(v)
	if s == nil {
		return ""
	}
	var starts, ends, axes []int
	addBefore, addAfter := make([]int, len(s)), make([]int, len(s))
	for a := range s {
		if before[a] > 0 || after[a] > 0 {
			starts, ends, axes = append(starts, max(before[a], 0)), append(ends, s[a]-max(after[a], 0)), append(axes, a)
		}
		addBefore[a], addAfter[a] = max(-before[a], 0), max(-after[a], 0)
	}
	if len(axes) > 0 {
		v = c.Slice(v, starts, ends, axes, nil)
	}
	return c.padZero(v, addBefore, addAfter)
}

// fold is the adjoint of padding one axis of extent size by copies of its elements. Every position
// of the padded axis has one source among the elements; runs of positions whose sources follow each
// other, forwards, backwards or staying the same, are taken back together.
func (c *Context) fold(g onnx.Value, mode string, axis, size, before, after int) onnx.Value {
	if before == 0 && after == 0 {
		return g
	}
	source := make([]int, 0, before+size+after)
	for i := -before; i < size+after; i++ {
		source = append(source, padSource(mode, i, size))
	}
	var sum onnx.Value
	for at := 0; at < len(source); {
		end, step := runOf(source, at)
		part := c.Slice(g, []int{at}, []int{end}, []int{axis}, nil)
		low, high := min(source[at], source[end-1]), max(source[at], source[end-1])
		switch {
		case step == 0 && end > at+1:
			part = c.Sum(part, []int{axis}, true)
		case step < 0:
			part = c.Slice(part, []int{-1}, []int{at - end - 1}, []int{axis}, []int{-1})
		}
		part = c.padAxis(part, axis, low, size-1-high)
		if sum == "" {
			sum = part
		} else {
			sum = c.Add(sum, part)
		}
		at = end
	}
	return sum
}

// runOf returns the end of the run of sources that starts at a position, and its step: 1, 0 or −1.
func runOf(source []int, at int) (end, step int) {
	if at+1 == len(source) {
		return at + 1, 0
	}
	step = source[at+1] - source[at]
	if step < -1 || step > 1 {
		return at + 1, 0
	}
	for end = at + 1; end < len(source) && source[end] == source[end-1]+step; {
		end++
	}
	return end, step
}

// padSource returns which element of an axis lies at position i, which may be outside 0…size−1.
func padSource(mode string, i, size int) int {
	switch mode {
	case "edge":
		return min(max(i, 0), size-1)
	case "wrap":
		return ((i % size) + size) % size
	}
	// reflect: the elements at both ends are not repeated.
	if size == 1 {
		return 0
	}
	period := 2 * (size - 1)
	i = ((i % period) + period) % period
	return min(i, period-i)
}
