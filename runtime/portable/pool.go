package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var poolOperators = []operator{
	{name: "MaxPool", versions: []int{1, 8, 10, 11, 12, 22}, minIn: 1, maxIn: 1, build: buildMaxPool},
	{name: "AveragePool", versions: []int{1, 7, 10, 11, 19, 22}, minIn: 1, maxIn: 1, build: buildAveragePool},
	{name: "LpPool", versions: []int{2, 11, 18, 22}, minIn: 1, maxIn: 1, build: buildLpPool},
	{name: "MaxUnpool", versions: []int{9, 11, 22}, minIn: 2, maxIn: 3, build: buildMaxUnpool},
	{name: "GlobalAveragePool", versions: []int{1, 22}, minIn: 1, maxIn: 1, build: globalPool(meanFloat[float32], meanFloat[float64])},
	{name: "GlobalMaxPool", versions: []int{1, 22}, minIn: 1, maxIn: 1, build: globalPool(maxFloat[float32], maxFloat[float64])},
	{name: "GlobalLpPool", versions: []int{2, 22}, minIn: 1, maxIn: 1, build: buildGlobalLpPool},
}

// cell is one window position and the taps of it that lie inside the input.
type cell struct {
	lo, hi [3]int // taps [lo, hi) of each axis lie inside the input
	at     [3]int // the input coordinate of tap 0, possibly negative
}

// pool fills c and calls f for every channel plane and output position. plane is the index of the
// plane, o the output position.
func pool(c *cell, w *window, in, out [3]int, planes int, f func(plane, o int, c *cell)) {
	for p := range planes {
		o := 0
		for o0 := range out[0] {
			w.clip(c, 0, o0, in)
			for o1 := range out[1] {
				w.clip(c, 1, o1, in)
				for o2 := range out[2] {
					w.clip(c, 2, o2, in)
					f(p, o, c)
					o++
				}
			}
		}
	}
}

func (w *window) clip(c *cell, i, o int, in [3]int) {
	at, d := o*w.stride[i]-w.begin[i], w.dilation[i]
	lo, hi := 0, w.kernel[i]
	if at < 0 {
		lo = min(hi, (-at+d-1)/d)
	}
	if last := at + (hi-1)*d; last >= in[i] {
		hi = max(lo, (in[i]-at+d-1)/d)
	}
	c.at[i], c.lo[i], c.hi[i] = at, lo, hi
}

// paddedTaps counts the taps of an axis that lie in the input or its declared padding; those that
// only rounding up adds do not count.
func (w *window) paddedTaps(c *cell, i int, in [3]int) int {
	n := 0
	for k := range w.kernel[i] {
		if p := c.at[i] + k*w.dilation[i]; p < in[i]+w.end[i] {
			n++
		}
	}
	return n
}

// each calls f with the offset in the plane of every tap inside the input, in row-major order.
func (c *cell) each(w *window, in [3]int, f func(at int)) {
	for k0 := c.lo[0]; k0 < c.hi[0]; k0++ {
		i0 := c.at[0] + k0*w.dilation[0]
		for k1 := c.lo[1]; k1 < c.hi[1]; k1++ {
			base := (i0*in[1] + c.at[1] + k1*w.dilation[1]) * in[2]
			for k2 := c.lo[2]; k2 < c.hi[2]; k2++ {
				f(base + c.at[2] + k2*w.dilation[2])
			}
		}
	}
}

// poolShape returns the extents and makes the first output.
func poolShape(c *call, w *window) (in, out [3]int, y *tensor.Tensor, err error) {
	x := c.arg(0)
	if in, err = w.spatial(x.Shape()); err != nil {
		return
	}
	if out, err = w.output(in); err != nil {
		return
	}
	shape := w.appendSpatial(append(c.shapeBuf(0), x.Shape()[0], x.Shape()[1]), out)
	return in, out, c.make(0, x.DType(), c.keepBuf(0, shape)...), nil
}

func poolWindow(n *node) (window, error) {
	w, err := buildWindow(n)
	if err == nil && w.rank == 0 {
		err = fmt.Errorf("attribute kernel_shape is required")
	}
	return w, err
}

func buildMaxPool(n *node) (kernel, error) {
	w, err := poolWindow(n)
	if err != nil {
		return nil, err
	}
	columns := n.Int("storage_order", 0) != 0
	return func(c *call) error {
		switch d := c.arg(0).DType(); d {
		case tensor.Float32:
			return maxPool[float32](c, w, columns)
		case tensor.Float64:
			return maxPool[float64](c, w, columns)
		case tensor.Int8:
			return maxPool[int8](c, w, columns)
		case tensor.Uint8:
			return maxPool[uint8](c, w, columns)
		default:
			return unsupported("element type %v", d)
		}
	}, nil
}

func maxPool[T number](c *call, w window, columns bool) error {
	in, out, y, err := poolShape(c, &w)
	if err != nil {
		return err
	}
	x, dst := data[T](c.arg(0)), data[T](y)
	var idx []int64
	if c.wants(1) {
		idx = c.make(1, tensor.Int64, y.Shape()...).Int64s()
	}
	size, n := volume(in), volume(out)
	planes := c.arg(0).Shape()[0] * c.arg(0).Shape()[1]
	pool(keep[cell](c), &w, in, out, planes, func(p, o int, k *cell) {
		best, plane := -1, x[p*size:]
		k.each(&w, in, func(at int) {
			if best < 0 || plane[at] > plane[best] || plane[at] != plane[at] && plane[best] == plane[best] {
				best = at
			}
		})
		if best < 0 {
			dst[p*n+o] = lowestOf[T]()
			if idx != nil {
				idx[p*n+o] = -1
			}
			return
		}
		dst[p*n+o] = plane[best]
		if idx == nil {
			return
		}
		if columns {
			// Column-major storage numbers the last axes first.
			i0, i1, i2 := best/(in[1]*in[2]), best/in[2]%in[1], best%in[2]
			best = i0 + in[0]*(i1+in[1]*i2)
		}
		idx[p*n+o] = int64(p*size + best)
	})
	return nil
}

// lowestOf is what a maximum over nothing is.
func lowestOf[T number]() T {
	switch x := any(T(0)).(type) {
	case float32:
		return any(float32(math.Inf(-1))).(T)
	case float64:
		return any(math.Inf(-1)).(T)
	case int8:
		return any(int8(math.MinInt8)).(T)
	default:
		_ = x
		return 0
	}
}

func buildAveragePool(n *node) (kernel, error) {
	w, err := poolWindow(n)
	if err != nil {
		return nil, err
	}
	padded := n.Int("count_include_pad", 0) != 0
	return byFloat(func(c *call) error { return averagePool[float32](c, w, padded) }, func(c *call) error { return averagePool[float64](c, w, padded) }), nil
}

func averagePool[T float](c *call, w window, padded bool) error {
	in, out, y, err := poolShape(c, &w)
	if err != nil {
		return err
	}
	x, dst := data[T](c.arg(0)), data[T](y)
	size, n := volume(in), volume(out)
	pool(keep[cell](c), &w, in, out, c.arg(0).Shape()[0]*c.arg(0).Shape()[1], func(p, o int, k *cell) {
		sum, plane := 0.0, x[p*size:]
		k.each(&w, in, func(at int) { sum += float64(plane[at]) })
		count := (k.hi[0] - k.lo[0]) * (k.hi[1] - k.lo[1]) * (k.hi[2] - k.lo[2])
		if padded {
			count = w.paddedTaps(k, 0, in) * w.paddedTaps(k, 1, in) * w.paddedTaps(k, 2, in)
		}
		dst[p*n+o] = T(sum / float64(count))
	})
	return nil
}

func buildLpPool(n *node) (kernel, error) {
	w, err := poolWindow(n)
	if err != nil {
		return nil, err
	}
	p := float64(n.Int("p", 2))
	return byFloat(func(c *call) error { return lpPool[float32](c, w, p) }, func(c *call) error { return lpPool[float64](c, w, p) }), nil
}

func lpPool[T float](c *call, w window, norm float64) error {
	in, out, y, err := poolShape(c, &w)
	if err != nil {
		return err
	}
	x, dst := data[T](c.arg(0)), data[T](y)
	size, n := volume(in), volume(out)
	pool(keep[cell](c), &w, in, out, c.arg(0).Shape()[0]*c.arg(0).Shape()[1], func(p, o int, k *cell) {
		sum, plane := 0.0, x[p*size:]
		k.each(&w, in, func(at int) { sum += math.Pow(math.Abs(float64(plane[at])), norm) })
		dst[p*n+o] = T(math.Pow(sum, 1/norm))
	})
	return nil
}

func globalPool(f32 func([]float32) float32, f64 func([]float64) float64) builder {
	return func(*node) (kernel, error) {
		return byFloat(func(c *call) error { return globalOf(c, f32) }, func(c *call) error { return globalOf(c, f64) }), nil
	}
}

func globalOf[T float](c *call, f func([]T) T) error {
	x := c.arg(0)
	if x.Rank() < 2 {
		return fmt.Errorf("input %v has no spatial axes", x)
	}
	shape := append(c.shapeBuf(0), x.Shape()...)
	for i := 2; i < len(shape); i++ {
		shape[i] = 1
	}
	out := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	n, src := product(x.Shape()[2:]), data[T](x)
	for i := range out {
		out[i] = f(src[i*n : (i+1)*n])
	}
	return nil
}

func buildGlobalLpPool(n *node) (kernel, error) {
	p := float64(n.Int("p", 2))
	norm := func(v []float64) float64 {
		return math.Pow(sum64(v, func(x float64) float64 { return math.Pow(math.Abs(x), p) }), 1/p)
	}
	return globalPool(via[float32](norm), norm)(n)
}

func buildMaxUnpool(n *node) (kernel, error) {
	w, err := poolWindow(n)
	if err != nil {
		return nil, err
	}
	return func(c *call) error {
		x, idx := c.arg(0), c.arg(1)
		in, err := w.spatial(x.Shape())
		if err != nil {
			return err
		}
		if idx.DType() != tensor.Int64 || idx.Len() != x.Len() {
			return fmt.Errorf("indices are %v for input %v", idx, x)
		}
		var out [3]int
		for i := range out {
			out[i] = (in[i]-1)*w.stride[i] - w.begin[i] - w.end[i] + w.kernel[i]
		}
		shape := w.appendSpatial(append(c.shapeBuf(0), x.Shape()[:2]...), out)
		natural := shape
		if t := c.arg(2); t != nil {
			given, err := intsOf(nil, t)
			if err != nil {
				return fmt.Errorf("output_shape: %w", err)
			}
			if len(given) != len(shape) {
				return fmt.Errorf("output_shape has %d elements, expected %d", len(given), len(shape))
			}
			shape = given
		}
		y := c.make(0, x.DType(), shape...)
		dst, err := elementsOf(y)
		if err != nil {
			return err
		}
		clear(y.Bytes())
		src, _ := elementsOf(x)
		strides := rowMajor(nil, shape)
		for i, v := range idx.Int64s() {
			// Indices count in the tensor that was pooled, which may be smaller than the one asked
			// for.
			at, rest := 0, int(v)
			for a := len(natural) - 1; a >= 0; a-- {
				at += rest % max(1, natural[a]) * strides[a]
				rest /= max(1, natural[a])
			}
			if v < 0 || rest != 0 || at >= y.Len() {
				return badData("index %d is outside the output", v)
			}
			dst.copy(at, src, i, 1)
		}
		c.keepBuf(0, natural)
		return nil
	}, nil
}
