package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var roiRules = []Rule{
	{Op: "MaxRoiPool", Versions: []int{1, 22}, VJP: vjpMaxRoiPool},
	{Op: "RoiAlign", Versions: []int{16, 22}, Expand: expandRoiAlign},
}

// maxBins is the most bins of a region: each takes a dozen nodes.
const maxBins = 1 << 10

// vjpMaxRoiPool shares each bin's gradient among the elements of the bin that attain its maximum.
// The bins' borders are computed as kernels do; they are whole numbers, so the regions have no
// gradient.
func vjpMaxRoiPool(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, rois, y := n.In(0), n.In(1), n.Out(0)
	xs, ys := c.Shape(x), c.Shape(y)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	regions, channels, bins := ys[0], ys[1], ys[2:]
	if n := prod(bins); n > maxBins {
		c.Fail("pooled_shape %v has %d bins, at most %d are differentiated", bins, n, maxBins)
		return nil, c.b.Err()
	}
	scale := float64(n.Float("spatial_scale", 1))
	columns := c.Split(rois, 1, 1, 1, 1, 1, 1)
	batch := c.Cast(columns[0], tensor.Int64)
	images := c.Reshape(c.Op("Gather", two(x, c.Reshape(batch, regions)), onnx.AttrInt("axis", 0)), regions, channels, xs[2], xs[3])
	rows := c.roiBins(columns[2], columns[4], scale, bins[0], xs[2])
	cols := c.roiBins(columns[1], columns[3], scale, bins[1], xs[3])
	tops, grads := c.Reshape(y, regions, channels, prod(bins)), c.Reshape(g[0], regions, channels, prod(bins))
	one := filled(1, prod(bins))
	top, grad := c.Split(tops, 2, one...), c.Split(grads, 2, one...)
	var d onnx.Value
	for i, r := range rows {
		for j, q := range cols {
			k := i*bins[1] + j
			inside := c.Op("And", two(c.Reshape(r, regions, 1, xs[2], 1), c.Reshape(q, regions, 1, 1, xs[3])))
			best := c.Op("And", two(inside, c.Op("Equal", two(images, c.Reshape(top[k], regions, channels, 1, 1)))))
			mask := c.Cast(best, c.DType(x))
			count := c.Op("Max", two(c.Sum(mask, []int{2, 3}, true), c.Scalar(x, 1)))
			d = c.sum(d, c.Mul(mask, c.Div(c.Reshape(grad[k], regions, channels, 1, 1), count)))
		}
	}
	zeros := c.Fill(c.DType(x), 0, xs...)
	return []onnx.Value{c.Op("ScatterND", []onnx.Value{zeros, batch, d}, onnx.AttrStr("reduction", "add"))}, nil
}

// roiBins returns per bin the condition [regions, extent] that an element lies in it. first and
// last are the rounded ends of the regions, both included.
func (c *Context) roiBins(first, last onnx.Value, scale float64, bins, extent int) []onnx.Value {
	round := func(v onnx.Value) onnx.Value { return c.Unary("Floor", c.Shift(c.Scale(v, scale), 0.5)) }
	start := round(first)
	length := c.Op("Max", two(c.Shift(c.Sub(round(last), start), 1), c.Scalar(first, 1)))
	size := c.Scale(length, 1/float64(bins))
	if !c.small(extent) || !c.small(bins) {
		return nil
	}
	at := make([]float64, extent)
	for i := range at {
		at[i] = float64(i)
	}
	position := c.matrix(first, 1, extent, at)
	out := make([]onnx.Value, bins)
	for b := range bins {
		from := c.Add(start, c.Unary("Floor", c.Scale(size, float64(b))))
		to := c.Add(start, c.Unary("Ceil", c.Scale(size, float64(b+1))))
		out[b] = c.Op("And", two(c.Op("GreaterOrEqual", two(position, from)), c.Op("Less", two(position, to))))
	}
	return out
}

// expandRoiAlign: bilinear samples averaged over a bin are a product with one matrix per axis and
// region, whose coefficients are functions of the region. So the regions are differentiated too.
func expandRoiAlign(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x, rois := n.In(0), n.In(1)
	xs, ys := c.Shape(x), c.Shape(n.Out(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	samples := n.Int("sampling_ratio", 0)
	if samples < 1 || n.Str("mode", "avg") != "avg" {
		c.Fail("only averages with a fixed sampling_ratio can be differentiated")
		return nil, c.b.Err()
	}
	scale, offset := float64(n.Float("spatial_scale", 1)), 0.0
	if n.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel" {
		offset = -0.5
	}
	columns := c.Split(rois, 1, 1, 1, 1, 1)
	weights := func(first, last onnx.Value, bins, extent int) onnx.Value {
		start := c.Shift(c.Scale(first, scale), offset)
		length := c.Scale(c.Sub(last, first), scale)
		if offset == 0 {
			length = c.Op("Max", two(length, c.Scalar(length, 1)))
		}
		if !c.small(bins, samples) || !c.small(extent) {
			return ""
		}
		points := bins * samples
		at := make([]float64, points)
		for i := range at {
			at[i] = (float64(i) + 0.5) / float64(points)
		}
		p := c.Add(start, c.Mul(length, c.matrix(x, 1, points, at)))
		inside := c.Op("And", two(c.Op("GreaterOrEqual", two(p, c.Scalar(p, -1))), c.Op("LessOrEqual", two(p, c.Scalar(p, float64(extent))))))
		p = c.Op("Clip", []onnx.Value{p, c.Scalar(p, 0), c.Scalar(p, float64(extent-1))})
		grid := make([]float64, extent)
		for i := range grid {
			grid[i] = float64(i)
		}
		far := c.Unary("Abs", c.Sub(c.Reshape(p, ys[0], points, 1), c.matrix(x, 1, extent, grid)))
		hat := c.Unary("Relu", c.Sub(c.Scalar(far, 1), far))
		hat = c.Mask(hat, c.Reshape(inside, ys[0], points, 1))
		return c.Reshape(c.mean(c.Reshape(hat, ys[0], bins, samples, extent), []int{2}), ys[0], 1, bins, extent)
	}
	rows := weights(columns[1], columns[3], ys[2], xs[2])
	cols := weights(columns[0], columns[2], ys[3], xs[3])
	images := c.Op("Gather", two(x, n.In(2)), onnx.AttrInt("axis", 0))
	return []onnx.Value{c.MatMul(c.MatMul(rows, images), c.Transpose(cols, 0, 1, 3, 2))}, nil
}
