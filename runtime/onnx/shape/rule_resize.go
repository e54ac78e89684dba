package shape

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// resize has the inputs X, roi, scales, sizes; in opset 10 it has X and scales. Since opset 18 both
// may be given for some axes only.
func resize(c *call) error {
	t := c.typ(0)
	scalesIn, sizesIn := 2, 3
	if c.opset() < 11 {
		scalesIn, sizesIn = 1, -1
	}
	for _, i := range []int{scalesIn, sizesIn} {
		if i < 0 {
			continue
		}
		if err := c.rankIs(i, 1); err != nil {
			return err
		}
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	var axes []int
	if c.hasAttr("axes") {
		for _, a := range c.ints("axes") {
			a, err := axisOf(a, len(t.Dims))
			if err != nil {
				return fmt.Errorf("resize %v: %w", t, err)
			}
			axes = append(axes, a)
		}
		if _, err := axesOf(axes, len(t.Dims)); err != nil {
			return err
		}
	} else {
		for i := range t.Dims {
			axes = append(axes, i)
		}
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	scales, scalesKnown := c.scalars(scalesIn)
	if n, ok := c.lengthOf(scalesIn); ok && n == 0 {
		// Before optional inputs were usual, exporters passed an empty list.
		scalesKnown, scales = false, nil
	}
	switch {
	case scalesKnown && len(scales) > 0:
		if len(scales) != len(axes) {
			return fmt.Errorf("%d scales for %d axes of %v", len(scales), len(axes), t)
		}
		if err := c.scaleDims(out, axes, scales, c.str("coordinate_transformation_mode", "") == "tf_crop_and_resize"); err != nil {
			return err
		}
	case sizesIn >= 0 && c.has(sizesIn):
		sizes, ok := c.values(sizesIn)
		if !ok {
			sizes = make([]val, len(axes))
			if n, known := c.lengthOf(sizesIn); known {
				sizes = make([]val, n)
			}
		}
		if len(sizes) != len(axes) {
			return fmt.Errorf("%d sizes for %d axes of %v", len(sizes), len(axes), t)
		}
		if err := c.sizeDims(out, axes, sizes); err != nil {
			return err
		}
	default:
		for _, a := range axes {
			out[a] = onnx.Symbol("")
		}
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// scaleDims multiplies extents, rounding down. With a region of interest the extent is that of the
// region, times the scale.
func (c *call) scaleDims(out []onnx.Dim, axes []int, scales []float64, crop bool) error {
	var roi []float64
	if crop {
		var ok bool
		if roi, ok = c.scalars(1); !ok || len(roi) != 2*len(axes) {
			for _, a := range axes {
				out[a] = onnx.Symbol("")
			}
			return nil
		}
	}
	for i, a := range axes {
		x := scales[i]
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("scale %g for axis %d", x, a)
		}
		if crop {
			x *= roi[i+len(axes)] - roi[i]
		}
		switch {
		case x == 1 && !crop:
		case out[a].IsKnown():
			// The extent is computed in float32, as engines do.
			v := math.Floor(float64(float32(out[a].Value) * float32(x)))
			if v < 0 || v > maxExtent {
				return fmt.Errorf("scale %g makes axis %d %g elements long", x, a, v)
			}
			out[a] = onnx.Known(int(v))
		case x == math.Trunc(x) && x < 1<<20:
			out[a] = c.env.mul(ofDim(out[a]), num(int64(x))).dim()
		case 1/x == math.Trunc(1/x) && 1/x < 1<<20:
			out[a] = c.env.divFloor(ofDim(out[a]), int64(1/x)).dim()
		default:
			out[a] = onnx.Symbol("")
		}
	}
	return nil
}

// sizeDims sets extents, or, when the aspect ratio is kept, scales all axes by the least or
// greatest ratio.
func (c *call) sizeDims(out []onnx.Dim, axes []int, sizes []val) error {
	for i, a := range axes {
		if sizes[i].known && sizes[i].n < 0 {
			return fmt.Errorf("size %d for axis %d", sizes[i].n, a)
		}
	}
	policy := c.str("keep_aspect_ratio_policy", "stretch")
	if policy == "stretch" {
		for i, a := range axes {
			out[a] = sizes[i].dim()
		}
		return nil
	}
	if policy != "not_larger" && policy != "not_smaller" {
		return fmt.Errorf("keep_aspect_ratio_policy %q is none of stretch, not_larger, not_smaller", policy)
	}
	scale := math.NaN()
	for i, a := range axes {
		if !sizes[i].known || !out[a].IsKnown() || out[a].Value == 0 {
			for _, a := range axes {
				out[a] = onnx.Symbol("")
			}
			return nil
		}
		// Engines form the ratio in float32.
		r := float64(float32(sizes[i].n) / float32(out[a].Value))
		if math.IsNaN(scale) || policy == "not_larger" && r < scale || policy == "not_smaller" && r > scale {
			scale = r
		}
	}
	for _, a := range axes {
		v := math.Round(float64(float32(scale) * float32(out[a].Value)))
		if v > maxExtent {
			return fmt.Errorf("axis %d would have %g elements", a, v)
		}
		out[a] = onnx.Known(int(v))
	}
	return nil
}

// upsample has scales as an attribute before opset 9 and as an input in opset 9.
func upsample(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	var scales []float64
	for _, f := range c.floats("scales") {
		scales = append(scales, float64(f))
	}
	if scales == nil && len(t.Dims) == 4 && c.hasAttr("height_scale") {
		h, w := c.attr("height_scale", onnx.AttributeProto_FLOAT), c.attr("width_scale", onnx.AttributeProto_FLOAT)
		scales = []float64{1, 1, float64(h.GetF()), float64(w.GetF())}
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	if scales == nil {
		var ok bool
		if scales, ok = c.scalars(1); !ok {
			c.setDims(0, t.DType, unknownDims(len(out))...)
			return nil
		}
	}
	axes := make([]int, len(out))
	for i := range axes {
		axes[i] = i
	}
	if len(scales) != len(axes) {
		return fmt.Errorf("%d scales for the axes of %v", len(scales), t)
	}
	if err := c.scaleDims(out, axes, scales, false); err != nil {
		return err
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// gridSample reads x [N, C, D…] at a grid [N, D'…, axes].
func gridSample(c *call) error {
	x, g := c.typ(0), c.typ(1)
	if !x.Ranked || !g.Ranked {
		c.setUnranked(0, x.DType)
		return nil
	}
	n := len(x.Dims)
	if n < 3 || len(g.Dims) != n {
		return fmt.Errorf("input %v and grid %v: want equal ranks of at least 3", x, g)
	}
	if d := g.Dims[n-1]; d.IsKnown() && d.Value != n-2 {
		return fmt.Errorf("grid %v: the last axis must hold the %d coordinates of input %v", g, n-2, x)
	}
	batch, err := agree(x.Dims[0], g.Dims[0], "batch of input and grid")
	if err != nil {
		return err
	}
	c.setDims(0, x.DType, append([]onnx.Dim{batch, x.Dims[1]}, g.Dims[1:n-1]...)...)
	return nil
}

// affineGrid makes a grid for an output of size [N, C, D…].
func affineGrid(c *call) error {
	theta := c.typ(0)
	if err := c.rankIs(0, 3); err != nil {
		return err
	}
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	size, ok, err := c.shapeInput(1)
	if err != nil {
		return err
	}
	if !ok {
		c.setUnranked(0, theta.DType)
		return nil
	}
	n := len(size) - 2
	if n != 2 && n != 3 {
		return fmt.Errorf("size has %d numbers, want 4 or 5", len(size))
	}
	if theta.Ranked {
		want := onnx.TensorType{DType: theta.DType, Ranked: true, Dims: []onnx.Dim{size[0], onnx.Known(n), onnx.Known(n + 1)}}
		if _, err := merge(theta, want); err != nil {
			return fmt.Errorf("theta is %v, want %v", theta, want)
		}
	}
	c.setDims(0, theta.DType, append(append([]onnx.Dim{size[0]}, size[2:]...), onnx.Known(n))...)
	return nil
}
