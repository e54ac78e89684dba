package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var gridRules = []Rule{
	{Op: "GridSample", Versions: []int{16, 20, 22}, Expand: expandGridSample},
	{Op: "AffineGrid", Versions: []int{20}, Expand: expandAffineGrid},
}

// gridTap is one of the input elements that a sample reads along one axis: its index and its
// weight, both [N·points]; the weight is absent when it is 1.
type gridTap struct{ index, weight onnx.Value }

// expandGridSample reads, for every sample point, the rows of channels around it and adds them up
// by their weights. All rows are one Gather, so that the gradient of the input is one scatter. The
// weights are functions of the grid; the indices are not differentiated.
func expandGridSample(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x, grid := n.In(0), n.In(1)
	xs, gs := c.Shape(x), c.Shape(grid)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	batch, channels, space, rank := xs[0], xs[1], xs[2:], len(xs)-2
	points := prod(gs[1 : len(gs)-1])
	if !c.small(batch, points) {
		return nil, c.b.Err()
	}
	coords := c.Split(c.Reshape(grid, batch*points, rank), 1, filled(1, rank)...)
	// base is the number of the first element of every point's image.
	base := tensor.New(tensor.Int64, batch*points)
	for i := range base.Int64s() {
		base.Int64s()[i] = int64(i / points * prod(space))
	}
	taps := []gridTap{{index: c.b.Const(base)}}
	for a := range rank {
		// The grid's last axis holds x first, which is the last axis of space.
		u := c.Reshape(coords[rank-1-a], batch*points)
		along := c.gridTaps(n, u, space[a])
		var next []gridTap
		for _, t := range taps {
			for _, v := range along {
				index := c.Add(t.index, c.Mul(v.index, c.b.Int(prod(space[a+1:]))))
				next = append(next, gridTap{index, c.product(t.weight, v.weight)})
			}
		}
		taps = next
	}
	rows := c.Reshape(c.Transpose(x, join([]int{0}, plus(Seq(rank), filled(2, rank)), []int{1})...), batch*prod(space), channels)
	var index, weight []onnx.Value
	for _, t := range taps {
		index = append(index, t.index)
		if t.weight != "" {
			weight = append(weight, t.weight)
		}
	}
	y := c.Op("Gather", two(rows, c.Concat(0, index...)), onnx.AttrInt("axis", 0))
	if len(weight) > 0 {
		y = c.Mul(y, c.Reshape(c.Concat(0, weight...), len(taps)*batch*points, 1))
	}
	y = c.Sum(c.Reshape(y, len(taps), batch*points*channels), []int{0}, false)
	y = c.Transpose(c.Reshape(y, join(gs[:len(gs)-1], []int{channels})...), join([]int{0, rank + 1}, plus(Seq(rank), filled(1, rank)))...)
	return []onnx.Value{y}, nil
}

// product multiplies two optional values.
func (c *Context) product(a, b onnx.Value) onnx.Value {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return c.Mul(a, b)
}

// gridTaps returns the elements along an axis of the given extent that samples at the normalised
// coordinates u read.
func (c *Context) gridTaps(n *onnx.Node, u onnx.Value, extent int) []gridTap {
	corners := n.Int("align_corners", 0) != 0
	length := float64(extent)
	var x onnx.Value
	if corners {
		x = c.Scale(c.Shift(u, 1), (length-1)/2)
	} else {
		x = c.Scale(c.Shift(c.Scale(c.Shift(u, 1), length), -1), 0.5)
	}
	mode := n.Str("mode", "linear")
	if mode == "nearest" {
		return []gridTap{c.gridTap(n, c.Unary("Round", x), 0, "", extent)}
	}
	low := c.Unary("Floor", x)
	t := c.Sub(x, low)
	one := c.Sub(c.Scalar(t, 1), t)
	if mode == "linear" || mode == "bilinear" {
		return []gridTap{c.gridTap(n, low, 0, one, extent), c.gridTap(n, low, 1, t, extent)}
	}
	// Keys' cubic kernel with a = −0.75 at the distances 1+t, t, 1−t and 2−t.
	near := func(d onnx.Value) onnx.Value {
		return c.Shift(c.Mul(c.Shift(c.Scale(d, 1.25), -2.25), c.Square(d)), 1)
	}
	far := func(d onnx.Value) onnx.Value {
		return c.Shift(c.Mul(c.Shift(c.Mul(c.Shift(c.Scale(d, -0.75), 3.75), d), -6), d), 3)
	}
	var taps []gridTap
	for k, w := range []onnx.Value{far(c.Shift(t, 1)), near(t), near(one), far(c.Shift(one, 1))} {
		taps = append(taps, c.gridTap(n, low, k-1, w, extent))
	}
	return taps
}

// gridTap turns the whole number low + offset into an index as padding_mode says: what lies outside
// counts as zero, as the edge, or is reflected.
func (c *Context) gridTap(n *onnx.Node, low onnx.Value, offset int, weight onnx.Value, extent int) gridTap {
	last := float64(extent - 1)
	at := c.Shift(low, float64(offset))
	clamped := func(v onnx.Value) onnx.Value { return c.Op("Clip", []onnx.Value{v, c.Scalar(v, 0), c.Scalar(v, last)}) }
	switch n.Str("padding_mode", "zeros") {
	case "border":
		return gridTap{c.Cast(clamped(at), tensor.Int64), weight}
	case "reflection":
		// Whole numbers are reflected about the outer elements or, without align_corners, about the
		// edges half an element beyond.
		period, turn := 2*extent, 2*extent-1
		if n.Int("align_corners", 0) != 0 {
			period, turn = max(1, 2*(extent-1)), 2*(extent-1)
		}
		r := c.Op("Mod", two(c.Cast(at, tensor.Int64), c.b.Int(period)))
		return gridTap{c.Op("Min", two(r, c.Sub(c.b.Int(turn), r))), weight}
	}
	index := clamped(at)
	inside := c.Cast(c.Op("Equal", two(index, at)), c.DType(at))
	return gridTap{c.Cast(index, tensor.Int64), c.product(inside, weight)}
}

// expandAffineGrid: the grid is θ times constant homogeneous coordinates.
func expandAffineGrid(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	theta := n.In(0)
	gs := c.Shape(n.Out(0))
	if gs == nil {
		return nil, c.b.Err()
	}
	rank := len(gs) - 2
	space := gs[1 : 1+rank]
	if !c.small(append(slices.Clone(space), rank+1)...) {
		return nil, c.b.Err()
	}
	w := make([]float64, prod(space)*(rank+1))
	for i := range prod(space) {
		rest := i
		for a := rank - 1; a >= 0; a-- {
			k, size := float64(rest%space[a]), float64(space[a])
			rest /= space[a]
			v := (2*k+1)/size - 1
			if n.Int("align_corners", 0) != 0 {
				v = -1
				if space[a] > 1 {
					v = 2*k/(size-1) - 1
				}
			}
			w[i*(rank+1)+rank-1-a] = v
		}
		w[i*(rank+1)+rank] = 1
	}
	y := c.MatMul(c.matrix(theta, prod(space), rank+1, w), c.Transpose(theta, 0, 2, 1))
	return []onnx.Value{c.Reshape(y, gs...)}, nil
}
