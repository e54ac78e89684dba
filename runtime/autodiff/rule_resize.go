package autodiff

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var resizeRules = []Rule{
	{Op: "Resize", Versions: []int{11, 13, 18, 19}, VJP: vjpResize},
}

// vjpResize: interpolation is one linear map per axis in every mode, so the gradient is the adjoint
// map along each axis.
func vjpResize(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	in, out := c.Shape(n.In(0)), c.Shape(n.Out(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	axes := n.Ints("axes")
	if axes == nil {
		axes = Seq(len(in))
	}
	for i, a := range axes {
		axes[i] = Axis(a, len(in))
	}
	scales, ok := c.resizeScales(n, axes, in, out)
	if !ok {
		return nil, c.b.Err()
	}
	d := g[0]
	for i, a := range axes {
		r := resizeAxis{n: n, in: in[a], out: out[a], scale: scales[i], end: 1}
		if n.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" {
			roi, ok := c.knownFloats(n.In(1))
			if !ok || len(roi) != 2*len(axes) {
				c.Fail("roi must be a constant of %d elements", 2*len(axes))
				return nil, c.b.Err()
			}
			r.start, r.end = roi[i], roi[len(axes)+i]
		} else if r.in == r.out && r.scale == 1 {
			continue
		}
		if !c.small(r.in) || !c.small(r.out) {
			return nil, c.b.Err()
		}
		d = c.along(d, a, r.in, adjoint(r.weights()))
	}
	return []onnx.Value{d}, nil
}

// resizeScales returns the scale of each of the axes: as given, or from the sizes.
func (c *Context) resizeScales(n *onnx.Node, axes, in, out []int) ([]float32, bool) {
	scales := make([]float32, len(axes))
	if v := n.In(2); v != "" && prod(c.Shape(v)) > 0 {
		known, ok := c.knownFloats(v)
		if !ok || len(known) != len(axes) {
			c.Fail("scales must be a constant of %d elements", len(axes))
			return nil, false
		}
		for i, s := range known {
			scales[i] = float32(s)
		}
		return scales, true
	}
	for i, a := range axes {
		scales[i] = float32(out[a]) / float32(in[a])
	}
	policy := n.Str("keep_aspect_ratio_policy", "stretch")
	sizes, ok := c.KnownInts(n.In(3))
	if policy == "stretch" || !ok || len(sizes) != len(axes) {
		return scales, true
	}
	// One scale for all axes: the smallest or largest of those asked for.
	common := float32(sizes[0]) / float32(in[axes[0]])
	for i, a := range axes {
		s := float32(sizes[i]) / float32(in[a])
		if policy == "not_larger" {
			common = min(common, s)
		} else {
			common = max(common, s)
		}
	}
	for i := range scales {
		scales[i] = common
	}
	return scales, true
}

// knownFloats returns the content of a constant float value.
func (c *Context) knownFloats(v onnx.Value) ([]float64, bool) {
	if v == "" {
		return nil, false
	}
	t := c.Known(v)
	if t == nil {
		return nil, false
	}
	var out []float64
	switch t.DType() {
	case tensor.Float32:
		for _, x := range t.Float32s() {
			out = append(out, float64(x))
		}
	case tensor.Float64:
		out = append(out, t.Float64s()...)
	default:
		return nil, false
	}
	return out, true
}

// resizeAxis is the interpolation along one axis.
type resizeAxis struct {
	n       *onnx.Node
	in, out int
	scale   float32
	// start and end are the region of interest in normalised coordinates.
	start, end float64
}

// weights lists the coefficients of every output element (ONNX specification of Resize).
func (r resizeAxis) weights() []entry {
	var m []entry
	for o := range r.out {
		x := r.original(o)
		if r.n.Str("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" && (x < 0 || x > float32(r.in-1)) {
			continue // The extrapolation value, a constant.
		}
		switch r.n.Str("mode", "nearest") {
		case "nearest":
			m = append(m, entry{min(max(r.nearest(x), 0), r.in-1), o, 1})
		case "linear":
			m = r.filter(m, o, float64(x), 1, func(d float64) float64 { return max(0, 1-math.Abs(d)) })
		case "cubic":
			a := float64(r.n.Float("cubic_coeff_a", -0.75))
			m = r.filter(m, o, float64(x), 2, func(d float64) float64 { return cubicKernel(a, d) })
		}
	}
	return m
}

// cubicKernel is Keys' convolution kernel with parameter a.
func cubicKernel(a, d float64) float64 {
	d = math.Abs(d)
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return 0
}

// original maps an output coordinate to an input coordinate, in float32 as kernels do, because the
// nearest element depends on the last bit.
func (r resizeAxis) original(o int) float32 {
	x, in, out := float32(o), float32(r.in), float32(r.out)
	switch r.n.Str("coordinate_transformation_mode", "half_pixel") {
	case "asymmetric":
		return x / r.scale
	case "pytorch_half_pixel":
		if r.out > 1 {
			return (x+0.5)/r.scale - 0.5
		}
		return 0
	case "align_corners":
		if r.out > 1 {
			return x * (in - 1) / (out - 1)
		}
		return 0
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / r.scale
	case "half_pixel_symmetric":
		offset := in / 2 * (1 - out/(r.scale*in))
		return offset + (x+0.5)/r.scale - 0.5
	case "tf_crop_and_resize":
		start, end := float32(r.start), float32(r.end)
		if r.out > 1 {
			return start*(in-1) + x*(end-start)*(in-1)/(out-1)
		}
		return 0.5 * (start + end) * (in - 1)
	}
	return (x+0.5)/r.scale - 0.5
}

// nearest rounds a coordinate as nearest_mode says.
func (r resizeAxis) nearest(x float32) int {
	v := float64(x)
	switch r.n.Str("nearest_mode", "round_prefer_floor") {
	case "floor":
		return int(math.Floor(v))
	case "ceil":
		return int(math.Ceil(v))
	case "round_prefer_ceil":
		return int(math.Floor(v + 0.5))
	}
	return int(math.Ceil(v - 0.5))
}

// filter appends the coefficients of output o, which samples a kernel of the given support around
// x. With antialiasing the kernel is stretched when the axis shrinks. Elements outside the axis
// count for the one at its edge, or not at all with exclude_outside.
func (r resizeAxis) filter(m []entry, o int, x, support float64, kernel func(d float64) float64) []entry {
	shrink := 1.0
	if r.n.Int("antialias", 0) != 0 && r.scale < 1 {
		shrink = float64(r.scale)
	}
	exclude := r.n.Int("exclude_outside", 0) != 0
	first, sum := len(m), 0.0
	for p := int(math.Floor(x - support/shrink)); p <= int(math.Ceil(x+support/shrink)); p++ {
		w := kernel((float64(p) - x) * shrink)
		if w == 0 || exclude && (p < 0 || p >= r.in) {
			continue
		}
		sum += w
		m = append(m, entry{min(max(p, 0), r.in-1), o, w})
	}
	for i := first; i < len(m); i++ {
		m[i].weight /= sum
	}
	return m
}
