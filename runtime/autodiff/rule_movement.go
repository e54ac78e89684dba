package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var movementRules = []Rule{
	{Op: "Reshape", Versions: []int{5, 13, 14, 19, 21, 23, 24, 25}, VJP: vjpReshape},
	{Op: "Flatten", Versions: []int{1, 9, 11, 13, 21, 23, 24, 25}, VJP: vjpReshape},
	{Op: "Squeeze", Versions: []int{13, 21, 23, 24, 25}, VJP: vjpReshape},
	{Op: "Unsqueeze", Versions: []int{13, 21, 23, 24, 25}, VJP: vjpReshape},
	{Op: "Transpose", Versions: []int{1, 13, 21, 23, 24, 25}, VJP: vjpTranspose},
	{Op: "Expand", Versions: []int{8, 13}, VJP: vjpExpand},
	{Op: "Tile", Versions: []int{6, 13}, VJP: vjpTile},
	{Op: "Concat", Versions: []int{4, 11, 13}, VJP: vjpConcat},
	{Op: "Split", Versions: []int{13, 18}, VJP: vjpSplit},
	{Op: "Slice", Versions: []int{10, 11, 13}, VJP: vjpSlice},
	{Op: "Trilu", Versions: []int{14}, VJP: vjpTrilu},
	{Op: "CenterCropPad", Versions: []int{18}, Expand: expandCenterCropPad},
}

// vjpReshape serves every operator that keeps the elements in order.
func vjpReshape(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return []onnx.Value{c.ReshapeLike(g[0], n.In(0))}, nil
}

func vjpTranspose(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	rank := c.Rank(n.In(0))
	perm := n.Ints("perm")
	if len(perm) == 0 {
		perm = Seq(rank)
		slices.Reverse(perm)
	}
	inverse := make([]int, len(perm))
	for i, p := range perm {
		inverse[p] = i
	}
	return []onnx.Value{c.Transpose(g[0], inverse...)}, nil
}

// vjpExpand leaves the sum over the new extents to the central un-broadcasting.
func vjpExpand(_ *Context, _ *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return two(g[0], ""), nil
}

// vjpTile splits every repeated axis in two, repetition and position, and sums over the
// repetitions. The repetitions follow from the shapes.
func vjpTile(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	in, ok := c.Type(n.In(0)).Static()
	out, ok2 := c.Type(n.Out(0)).Static()
	if !ok || !ok2 {
		return c.untile(n, g[0])
	}
	var view, axes []int
	for i, d := range in {
		if out[i] != d {
			axes = append(axes, len(view))
			view = append(view, out[i]/d)
		}
		view = append(view, d)
	}
	return two(c.Reshape(c.Sum(c.Reshape(g[0], view...), axes, false), in...), ""), nil
}

// untile is the gradient of a Tile whose shapes only a run can tell: every axis is split in two.
func (c *Context) untile(n *onnx.Node, g onnx.Value) ([]onnx.Value, error) {
	x := n.In(0)
	rank := c.Rank(x)
	pairs := c.Concat(1, c.Reshape(n.In(1), rank, 1), c.Op("Unsqueeze", two(c.ShapeOf(x), c.b.Ints(1))))
	view := c.Op("Reshape", two(g, c.Reshape(pairs, 2*rank)), onnx.AttrInt("allowzero", 1))
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = 2 * i
	}
	return two(c.assume(c.Sum(view, axes, false), x), ""), c.b.Err()
}

// vjpConcat takes the pieces apart again: by one Split when most are wanted, else by a Slice for
// each.
func vjpConcat(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	axis := Axis(n.Int("axis", 0), c.Rank(n.Out(0)))
	extents := make([]Extent, len(n.Input))
	wanted := 0
	for i, in := range n.Input {
		if e := c.Extents(onnx.Value(in)); axis < len(e) {
			extents[i] = e[axis]
		}
		wanted += boolInt(c.Wants(i))
	}
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	sizes, ok := numbers(extents)
	if !ok {
		return c.OpN("Split", len(extents), two(g[0], c.Vector(extents...)), onnx.AttrInt("axis", axis)), nil
	}
	if wanted == len(sizes) {
		return c.Split(g[0], axis, sizes...), nil
	}
	d := make([]onnx.Value, len(sizes))
	at := 0
	for i, s := range sizes {
		if c.Wants(i) {
			d[i] = c.Slice(g[0], []int{at}, []int{at + s}, []int{axis}, nil)
		}
		at += s
	}
	return d, nil
}

// vjpSplit joins the gradients of the pieces; pieces that nothing depends on are zeros.
func vjpSplit(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	axis := Axis(n.Int("axis", 0), c.Rank(n.In(0)))
	extents := make([]Extent, len(g))
	for i := range g {
		// One that nothing reads has a name all the same, so that its extent is known.
		if e := c.Extents(c.ExtraOutput(n, i)); axis < len(e) {
			extents[i] = e[axis]
		}
	}
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	sizes, static := numbers(extents)
	present, before, after, at := 0, 0, 0, 0
	parts := make([]onnx.Value, 0, len(g))
	for i, size := range sizes {
		if g[i] != "" {
			if present++; present == 1 {
				before = at
			}
			after = 0
		} else {
			after += size
		}
		at += size
	}
	if present == 1 && static {
		i := slices.IndexFunc(g, func(v onnx.Value) bool { return v != "" })
		return two(c.padAxis(g[i], axis, before, after), ""), nil
	}
	for i := range g {
		v := g[i]
		if v == "" {
			v = c.ZerosLike(n.Out(i))
		}
		parts = append(parts, v)
	}
	return two(c.Concat(axis, parts...), ""), nil
}

// padAxis adds zeros before and after the elements along one axis.
func (c *Context) padAxis(v onnx.Value, axis, before, after int) onnx.Value {
	b, a := make([]int, c.Rank(v)), make([]int, c.Rank(v))
	b[axis], a[axis] = before, after
	return c.padZero(v, b, a)
}

// padZero adds zeros around v; nothing is emitted when there is nothing to add.
func (c *Context) padZero(v onnx.Value, before, after []int) onnx.Value {
	pads := slices.Concat(before, after)
	if !slices.ContainsFunc(pads, func(p int) bool { return p != 0 }) {
		return v
	}
	return c.Op("Pad", two(v, c.b.Ints(pads...)))
}

// vjpSlice puts the gradient back where its elements came from. With constant bounds that is
// padding with zeros, after spreading the elements apart for a step and reversing them for a
// negative one. Otherwise the same slice is taken of the elements' positions, which says where to
// scatter the gradient.
func vjpSlice(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x := n.In(0)
	shape, static := c.Type(x).Static()
	if !static {
		return []onnx.Value{c.unsliceOpen(n, g[0])}, c.b.Err()
	}
	starts, ok1 := c.KnownInts(n.In(1))
	_, ok2 := c.KnownInts(n.In(2))
	axes, ok3 := c.KnownInts(n.In(3))
	steps, ok4 := c.KnownInts(n.In(4))
	out, ok5 := c.Type(n.Out(0)).Static()
	if !ok1 || !ok2 || !ok3 && n.In(3) != "" || !ok4 && n.In(4) != "" || !ok5 {
		return []onnx.Value{c.unslice(n, g[0])}, nil
	}
	if axes == nil {
		axes = Seq(len(starts))
	}
	if steps == nil {
		steps = slices.Repeat([]int{1}, len(starts))
	}
	d := g[0]
	before, after := make([]int, len(shape)), make([]int, len(shape))
	for i, a := range axes {
		a = Axis(a, len(shape))
		size, count, step := shape[a], out[a], steps[i]
		if count == 0 {
			return []onnx.Value{c.ZerosLike(x)}, nil
		}
		start := starts[i]
		if start < 0 {
			start += size
		}
		if step > 0 {
			start = min(max(start, 0), size)
		} else {
			start = min(max(start, 0), size-1)
		}
		if step < 0 {
			// Reversed, the slice starts at its last element.
			if count > 1 {
				d = c.Slice(d, []int{-1}, []int{-size - 1}, []int{a}, []int{-1})
			}
			start += step * (count - 1)
			step = -step
		}
		if step > 1 && count > 1 {
			d = c.dilate(d, a, step)
			count = (count-1)*step + 1
		}
		before[a], after[a] = start, size-start-count
	}
	return []onnx.Value{c.padZero(d, before, after)}, nil
}

// dilate puts step−1 zeros between neighbours along an axis: each element gets an axis of its own,
// which is filled up and merged. For 32×64×48 elements and step 2 joining with constant zeros takes
// 107 µs; padding takes 1,186 µs, a product with a matrix 112 µs, scattering 170 µs.
func (c *Context) dilate(v onnx.Value, axis, step int) onnx.Value {
	s := c.Shape(v)
	if s == nil {
		return ""
	}
	count := s[axis]
	split := slices.Insert(slices.Clone(s), axis+1, 1)
	gap := slices.Clone(split)
	gap[axis+1] = step - 1
	wide := slices.Clone(s)
	wide[axis] = count * step
	d := c.Reshape(c.Concat(axis+1, c.Reshape(v, split...), c.Fill(c.DType(v), 0, gap...)), wide...)
	return c.Slice(d, []int{0}, []int{(count-1)*step + 1}, []int{axis}, nil)
}

// unslice scatters the gradient of a slice whose bounds are computed by the graph.
func (c *Context) unslice(n *onnx.Node, g onnx.Value) onnx.Value {
	in := []onnx.Value{c.positions(n.In(0))}
	for i := 1; i < len(n.Input); i++ {
		in = append(in, n.In(i))
	}
	return c.scatterFlat(g, c.Op("Slice", in), n.In(0))
}

// unsliceOpen is the gradient of a slice of a value whose shape only a run can tell: padding by
// what lies before the start and behind the end, or a scatter where elements are left out in
// between.
func (c *Context) unsliceOpen(n *onnx.Node, g onnx.Value) onnx.Value {
	x, y, starts, axes := n.In(0), n.Out(0), n.In(1), n.In(3)
	if n.In(4) != "" {
		steps, ok := c.KnownInts(n.In(4))
		if !ok || !isOnes(steps) {
			return c.unslice(n, g)
		}
	}
	starts = c.Cast(starts, tensor.Int64)
	have, kept := c.ShapeOf(x), c.ShapeOf(y)
	if axes != "" {
		axes = c.Cast(axes, tensor.Int64)
		have, kept = c.Op("Gather", two(have, axes)), c.Op("Gather", two(kept, axes))
	} else {
		// The slice may say nothing of the last axes.
		k := c.Type(starts).Dims[0]
		if !k.IsKnown() {
			c.Fail("it is not known how many axes are sliced")
			return ""
		}
		have = c.Slice(have, []int{0}, []int{k.Value}, []int{0}, nil)
		kept = c.Slice(kept, []int{0}, []int{k.Value}, []int{0}, nil)
		axes = c.b.Ints(Seq(k.Value)...)
	}
	zero := c.b.Ints(0)
	before := c.Where(c.Op("Less", two(starts, zero)), c.Add(starts, have), starts)
	before = c.Op("Min", two(c.Op("Max", two(before, zero)), have))
	after := c.Sub(c.Sub(have, kept), before)
	return c.assume(c.Op("Pad", []onnx.Value{g, c.Concat(0, before, after), "", axes}), x)
}

// positions emits the row-major position of every element of a value.
func (c *Context) positions(v onnx.Value) onnx.Value {
	size := onnx.Value("")
	if s, ok := c.Type(v).Static(); ok {
		size = c.b.Int(prod(s))
	} else {
		size = c.Unary("Size", v)
	}
	return c.ReshapeLike(c.Op("Range", []onnx.Value{c.b.Int(0), size, c.b.Int(1)}), v)
}

// scatterFlat adds the elements of g to zeros of the shape of like, at given row-major positions.
func (c *Context) scatterFlat(g, at, like onnx.Value) onnx.Value {
	flat := c.Op("Reshape", two(g, c.b.Ints(-1)))
	index := c.Op("Reshape", two(at, c.b.Ints(-1, 1)))
	return c.ReshapeLike(c.Op("ScatterND", []onnx.Value{c.flatZeros(like), index, flat}, onnx.AttrStr("reduction", "add")), like)
}

// flatZeros emits as many zeros as like has elements, in one axis.
func (c *Context) flatZeros(like onnx.Value) onnx.Value {
	if s, ok := c.Type(like).Static(); ok {
		return c.Fill(c.DType(like), 0, prod(s))
	}
	return c.fillShape(c.DType(like), 0, c.Op("Reshape", two(c.Unary("Size", like), c.b.Ints(1))))
}

func vjpTrilu(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return two(c.Op("Trilu", two(g[0], n.In(1)), onnx.AttrInt("upper", n.Int("upper", 1))), ""), nil
}

// expandCenterCropPad cuts or pads each axis around its centre; an odd difference leaves the extra
// element at the end.
func expandCenterCropPad(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	in, out := c.Shape(n.In(0)), c.Shape(n.Out(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	var starts, ends, axes []int
	before, after := make([]int, len(in)), make([]int, len(in))
	for a := range in {
		switch d := out[a] - in[a]; {
		case d < 0:
			s := -d / 2
			starts, ends, axes = append(starts, s), append(ends, s+out[a]), append(axes, a)
		case d > 0:
			before[a], after[a] = d/2, d-d/2
		}
	}
	v := n.In(0)
	if len(axes) > 0 {
		v = c.Slice(v, starts, ends, axes, nil)
	}
	return []onnx.Value{c.padZero(v, before, after)}, nil
}
