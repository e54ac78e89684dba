package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var scatterRules = []Rule{
	{Op: "ScatterElements", Versions: []int{11, 13, 16, 18}, VJP: vjpScatterElements},
	{Op: "ScatterND", Versions: []int{11, 13, 16, 18}, VJP: vjpScatterND},
	{Op: "TensorScatter", Versions: []int{24}, Expand: expandTensorScatter},
}

// scattering is what the two scatter operators share: y is x with updates u combined into places
// given by indices. scatter combines into a base, gather reads the same places.
type scattering struct {
	reduction string
	x, u, y   onnx.Value
	scatter   func(base, updates onnx.Value, reduction string) onnx.Value
	gather    func(v onnx.Value) onnx.Value
}

func vjpScatterElements(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	axis := Axis(n.Int("axis", 0), c.Rank(n.In(0)))
	return c.unscatter(g[0], scattering{
		reduction: n.Str("reduction", "none"), x: n.In(0), u: n.In(2), y: n.Out(0),
		scatter: func(base, u onnx.Value, red string) onnx.Value { return c.scatterElements(base, n.In(1), u, axis, red) },
		gather: func(v onnx.Value) onnx.Value {
			return c.Op("GatherElements", two(v, n.In(1)), onnx.AttrInt("axis", axis))
		},
	})
}

func vjpScatterND(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return c.unscatter(g[0], scattering{
		reduction: n.Str("reduction", "none"), x: n.In(0), u: n.In(2), y: n.Out(0),
		scatter: func(base, u onnx.Value, red string) onnx.Value {
			var at []*onnx.Attribute
			if red != "none" {
				at = append(at, onnx.AttrStr("reduction", red))
			}
			return c.Op("ScatterND", []onnx.Value{base, n.In(1), u}, at...)
		},
		gather: func(v onnx.Value) onnx.Value { return c.Op("GatherND", two(v, n.In(1))) },
	})
}

// unscatter returns the gradients of data, indices and updates. Indices that meet are undefined for
// the reduction none, as in the specification.
func (c *Context) unscatter(g onnx.Value, s scattering) ([]onnx.Value, error) {
	d := make([]onnx.Value, 3)
	switch s.reduction {
	case "none":
		if c.Wants(0) {
			d[0] = s.scatter(g, c.ZerosLike(s.u), "none")
		}
		if c.Wants(2) {
			d[2] = s.gather(g)
		}
	case "add":
		d[0] = g
		if c.Wants(2) {
			d[2] = s.gather(g)
		}
	case "mul":
		c.unscatterProduct(g, s, d)
	case "max", "min":
		// All that equal the result share its gradient equally.
		dt := c.DType(s.x)
		kept := c.Cast(c.Op("Equal", two(s.x, s.y)), dt)
		came := c.Cast(c.Op("Equal", two(s.u, s.gather(s.y))), dt)
		share := c.Div(g, s.scatter(kept, came, "add"))
		if c.Wants(0) {
			d[0] = c.Mul(share, kept)
		}
		if c.Wants(2) {
			d[2] = c.Mul(s.gather(share), came)
		}
	default:
		c.Fail("reduction %q is not known", s.reduction)
	}
	return d, c.b.Err()
}

// unscatterProduct: the gradient of each factor is the product of the others. As for ReduceProd,
// zeros among the updates are counted, and the product is taken over the updates that are not zero.
func (c *Context) unscatterProduct(g onnx.Value, s scattering, d []onnx.Value) {
	ones := c.FillLike(s.x, 1)
	if c.Wants(0) {
		d[0] = c.Mul(g, s.scatter(ones, s.u, "mul"))
	}
	if !c.Wants(2) {
		return
	}
	zero := c.Op("Equal", two(s.u, c.Scalar(s.u, 0)))
	isZero := c.Cast(zero, c.DType(s.u))
	u := c.Where(zero, c.Scalar(s.u, 1), s.u)
	product := c.Mul(g, s.scatter(s.x, u, "mul"))
	zeros := s.gather(s.scatter(c.ZerosLike(s.x), isZero, "add"))
	d[2] = c.Mask(c.Div(s.gather(product), u), c.Op("Equal", two(isZero, zeros)))
}

// expandTensorScatter writes the update behind each batch's own position along the sequence axis:
// ScatterND with indices (batch, position).
func expandTensorScatter(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	cache, update, at := n.In(0), n.In(1), n.In(2)
	shape, part := c.Shape(cache), c.Shape(update)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	axis := Axis(n.Int("axis", -2), len(shape))
	batch, length, count := shape[0], shape[axis], part[axis]
	if !c.small(count) {
		return nil, c.b.Err()
	}
	steps := tensor.New(tensor.Int64, 1, count)
	for i := range steps.Int64s() {
		steps.Int64s()[i] = int64(i)
	}
	position := c.Expand(c.b.Const(steps), batch, count)
	if at != "" {
		position = c.Add(c.Reshape(at, batch, 1), c.b.Const(steps))
	}
	if n.Str("mode", "linear") == "circular" {
		position = c.Op("Mod", two(position, c.b.Int(length)))
	}
	grid := c.b.Const(gridOf([]int{batch, count, 1}, 1))
	index := c.Concat(2, grid, c.Reshape(position, batch, count, 1))
	// The sequence axis goes behind the batch axis and back.
	perm := slices.Insert(slices.Delete(Seq(len(shape)), axis, axis+1), 1, axis)
	back := make([]int, len(perm))
	for i, a := range perm {
		back[a] = i
	}
	y := c.Op("ScatterND", []onnx.Value{c.Transpose(cache, perm...), index, c.Transpose(update, perm...)})
	return []onnx.Value{c.Transpose(y, back...)}, nil
}
