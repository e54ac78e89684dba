package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var resizeOperators = []operator{
	{name: "Resize", versions: []int{10}, minIn: 2, maxIn: 2, build: buildResize10},
	{name: "Resize", versions: []int{11, 13, 18, 19}, minIn: 1, maxIn: 4, build: buildResize},
	{name: "Upsample", versions: []int{9}, minIn: 2, maxIn: 2, build: buildResize10},
}

// resizer holds Resize's attributes. Each axis is resampled on its own, which is exact for all
// modes: their kernels are products over the axes.
type resizer struct {
	mode, coord, nearest, policy string
	cubic                        float64
	exclude                      bool
	outside                      float64
	antialias                    bool
	axes                         []int
}

func buildResize10(n *node) (kernel, error) {
	r := resizer{mode: n.Str("mode", "nearest"), coord: "asymmetric", nearest: "floor", policy: "stretch", cubic: -0.75}
	if r.mode != "nearest" && r.mode != "linear" {
		return nil, unsupported("mode %q", r.mode)
	}
	return func(c *call) error { return resizeTyped(c, &r, c.arg(1), nil, nil) }, nil
}

func buildResize(n *node) (kernel, error) {
	r := resizer{mode: n.Str("mode", "nearest"), coord: n.Str("coordinate_transformation_mode", "half_pixel"), nearest: n.Str("nearest_mode", "round_prefer_floor"),
		policy: n.Str("keep_aspect_ratio_policy", "stretch"), cubic: float64(n.Float("cubic_coeff_a", -0.75)), exclude: n.Int("exclude_outside", 0) != 0,
		outside: float64(n.Float("extrapolation_value", 0)), antialias: n.Int("antialias", 0) != 0, axes: n.Ints("axes")}
	switch r.mode {
	case "nearest", "linear", "cubic":
	default:
		return nil, fmt.Errorf("mode %q is not known", r.mode)
	}
	if r.mode == "nearest" {
		r.antialias = false
	}
	if _, err := r.source(0, 1, 1, 1, 0, 1); err != nil {
		return nil, err
	}
	return func(c *call) error { return resizeTyped(c, &r, c.arg(2), c.arg(3), c.arg(1)) }, nil
}

func resizeTyped(c *call, r *resizer, scales, sizes, roi *tensor.Tensor) error {
	switch d := c.arg(0).DType(); d {
	case tensor.Float32:
		return resizeKernel[float32](c, r, scales, sizes, roi)
	case tensor.Float64:
		return resizeKernel[float64](c, r, scales, sizes, roi)
	case tensor.Uint8:
		return resizeKernel[uint8](c, r, scales, sizes, roi)
	case tensor.Int8:
		return resizeKernel[int8](c, r, scales, sizes, roi)
	case tensor.Int32:
		return resizeKernel[int32](c, r, scales, sizes, roi)
	case tensor.Int64:
		return resizeKernel[int64](c, r, scales, sizes, roi)
	default:
		return unsupported("element type %v", d)
	}
}

// source maps an output coordinate to an input coordinate, in float32 as ONNX Runtime does: the
// scales are float32, and results at ties depend on it.
func (r *resizer) source(x, scale, in, out, lo, hi float32) (float32, error) {
	switch r.coord {
	case "half_pixel":
		return (x+0.5)/scale - 0.5, nil
	case "half_pixel_symmetric":
		adjust := out / (scale * in)
		return in/2*(1-adjust) + (x+0.5)/scale - 0.5, nil
	case "pytorch_half_pixel":
		if out <= 1 {
			return 0, nil
		}
		return (x+0.5)/scale - 0.5, nil
	case "align_corners":
		if out == 1 {
			return 0, nil
		}
		return x * (in - 1) / (out - 1), nil
	case "asymmetric":
		return x / scale, nil
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / scale, nil
	case "tf_crop_and_resize":
		if out <= 1 {
			return 0.5 * (lo + hi) * (in - 1), nil
		}
		return lo*(in-1) + x*(hi-lo)*(in-1)/(out-1), nil
	}
	return 0, fmt.Errorf("coordinate_transformation_mode %q is not known", r.coord)
}

func (r *resizer) round(x float64) (int, error) {
	switch r.nearest {
	case "round_prefer_floor":
		return int(math.Ceil(x - 0.5)), nil
	case "round_prefer_ceil":
		return int(math.Floor(x + 0.5)), nil
	case "floor":
		return int(math.Floor(x)), nil
	case "ceil":
		return int(math.Ceil(x)), nil
	}
	return 0, fmt.Errorf("nearest_mode %q is not known", r.nearest)
}

// taps are the input positions and weights of one output position; outside says that it has the
// extrapolation value instead.
type taps struct {
	at      []int
	weight  []float64
	outside bool
}

func (r *resizer) cubicWeight(t float64) float64 {
	t = math.Abs(t)
	a := r.cubic
	switch {
	case t <= 1:
		return ((a+2)*t-(a+3))*t*t + 1
	case t < 2:
		return ((a*t-5*a)*t+8*a)*t - 4*a
	}
	return 0
}

// axisTaps computes the taps of every output position of one axis.
func (r *resizer) axisTaps(in, out int, scale, lo, hi float64) ([]taps, error) {
	list := make([]taps, out)
	for o := range list {
		// The exact extent, before rounding down, is what coordinates refer to.
		extent := scale * float64(in)
		if r.coord == "tf_crop_and_resize" || r.coord == "half_pixel_symmetric" {
			extent = float64(out)
		}
		coord, err := r.source(float32(o), float32(scale), float32(in), float32(extent), float32(lo), float32(hi))
		if err != nil {
			return nil, err
		}
		x := float64(coord)
		t := &list[o]
		if r.coord == "tf_crop_and_resize" && (x < 0 || x > float64(in-1)) {
			t.outside = true
			continue
		}
		if r.mode == "nearest" {
			p, err := r.round(x)
			if err != nil {
				return nil, err
			}
			t.at, t.weight = []int{min(max(p, 0), in-1)}, []float64{1}
			continue
		}
		// Downsampling with antialias widens the kernel by the inverse scale.
		widen := 1.0
		if r.antialias && scale < 1 {
			widen = scale
		}
		radius := 1.0
		if r.mode == "cubic" {
			radius = 2
		}
		first, last := int(math.Floor(x-radius/widen))+1, int(math.Ceil(x+radius/widen))-1
		if !r.antialias {
			first = int(math.Floor(x)) - int(radius) + 1
			last = first + 2*int(radius) - 1
		}
		sum := 0.0
		for p := first; p <= last; p++ {
			d := (float64(p) - x) * widen
			w := math.Max(0, 1-math.Abs(d))
			if r.mode == "cubic" {
				w = r.cubicWeight(d)
			}
			if r.exclude && (p < 0 || p >= in) {
				continue
			}
			t.at, t.weight = append(t.at, min(max(p, 0), in-1)), append(t.weight, w)
			sum += w
		}
		if r.exclude || r.antialias {
			for i := range t.weight {
				t.weight[i] /= sum
			}
		}
	}
	return list, nil
}

// plan finds the output's shape, scale and region per axis.
func (r *resizer) plan(in []int, scales, sizes, roi *tensor.Tensor) (out []int, scale, lo, hi []float64, err error) {
	axes := make([]int, 0, len(in))
	for _, a := range r.axes {
		if a, err = normAxis(a, len(in)); err != nil {
			return
		}
		axes = append(axes, a)
	}
	if r.axes == nil {
		for i := range in {
			axes = append(axes, i)
		}
	}
	out, scale, lo, hi = append([]int{}, in...), make([]float64, len(in)), make([]float64, len(in)), make([]float64, len(in))
	for i := range in {
		scale[i], hi[i] = 1, 1
	}
	if r.coord == "tf_crop_and_resize" {
		v, e := asFloats(roi)
		if roi == nil || e != nil || len(v) != 2*len(axes) {
			return nil, nil, nil, nil, fmt.Errorf("roi is %v, expected %d floats", roi, 2*len(axes))
		}
		for i, a := range axes {
			lo[a], hi[a] = v[i], v[len(axes)+i]
		}
	}
	switch {
	case scales != nil && scales.Len() > 0:
		v, e := asFloats(scales)
		if e != nil || len(v) != len(axes) {
			return nil, nil, nil, nil, fmt.Errorf("scales is %v, expected %d floats", scales, len(axes))
		}
		for i, a := range axes {
			if !(v[i] > 0) {
				return nil, nil, nil, nil, fmt.Errorf("the scale of axis %d is %v", a, v[i])
			}
			scale[a] = v[i]
			out[a] = int(math.Floor(float64(in[a]) * (hi[a] - lo[a]) * v[i]))
		}
	case sizes != nil:
		v, e := intsOf(nil, sizes)
		if e != nil || len(v) != len(axes) {
			return nil, nil, nil, nil, fmt.Errorf("sizes is %v, expected %d integers", sizes, len(axes))
		}
		best := 0.0
		for i, a := range axes {
			if v[i] < 0 || in[a] == 0 {
				return nil, nil, nil, nil, fmt.Errorf("the size of axis %d is %d for an extent of %d", a, v[i], in[a])
			}
			scale[a], out[a] = float64(float32(v[i])/float32(in[a])), v[i]
			if i == 0 || r.policy == "not_larger" && scale[a] < best || r.policy == "not_smaller" && scale[a] > best {
				best = scale[a]
			}
		}
		if r.policy == "not_larger" || r.policy == "not_smaller" {
			for _, a := range axes {
				scale[a] = best
				out[a] = int(math.Floor(best*float64(in[a]) + 0.5))
			}
		}
	default:
		err = fmt.Errorf("neither scales nor sizes are given")
	}
	return
}

func resizeKernel[T number](c *call, r *resizer, scales, sizes, roi *tensor.Tensor) error {
	x := c.arg(0)
	in := x.Shape()
	out, scale, lo, hi, err := r.plan(in, scales, sizes, roi)
	if err != nil {
		return err
	}
	y := c.make(0, x.DType(), out...)
	if y.Len() == 0 {
		return nil
	}
	if x.Len() == 0 {
		return fmt.Errorf("input %v has no elements to resize to %v", x, y)
	}
	cur, shape := make([]float64, x.Len()), append([]int{}, in...)
	convertSlice(cur, data[T](x))
	outside := make([][]taps, len(in))
	for a := range in {
		if in[a] == out[a] && scale[a] == 1 && r.coord != "tf_crop_and_resize" {
			continue
		}
		list, err := r.axisTaps(in[a], out[a], scale[a], lo[a], hi[a])
		if err != nil {
			return err
		}
		outside[a] = list
		inner, d := product(shape[a+1:]), shape[a]
		next := make([]float64, product(shape[:a])*out[a]*inner)
		for o := range product(shape[:a]) {
			for i, t := range list {
				dst := next[(o*out[a]+i)*inner:][:inner]
				for k, p := range t.at {
					w, src := t.weight[k], cur[(o*d+p)*inner:][:inner]
					for j, v := range src {
						dst[j] += w * v
					}
				}
			}
		}
		cur, shape[a] = next, out[a]
	}
	// A position outside the region on any axis has the extrapolation value.
	dst := data[T](y)
	for i, v := range cur {
		rest := i
		for a := len(out) - 1; a >= 0; a-- {
			if l := outside[a]; l != nil && l[rest%out[a]].outside {
				v = r.outside
			}
			rest /= out[a]
		}
		dst[i] = rounded[T](v)
	}
	return nil
}

// rounded converts to T, integers to the nearest and saturating.
func rounded[T number](v float64) T {
	switch any(T(0)).(type) {
	case float32, float64:
		return T(v)
	case uint8:
		return T(math.Max(0, math.Min(255, math.RoundToEven(v))))
	case int8:
		return T(math.Max(-128, math.Min(127, math.RoundToEven(v))))
	}
	return T(math.RoundToEven(v))
}
