package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

// window is the geometry of an operator that slides a kernel over spatial axes. Each field has one
// entry per spatial axis. Tap t of window o reads element o·stride + t·dilation − before of the
// input.
type window struct {
	kernel, stride, dilation []int
	// before and after are the padding that the node declares, after resolving auto_pad.
	before, after []int
	// in and out are the extents of the input and the number of windows.
	in, out []int
}

// newWindow reads a node's attributes. in and out are the spatial extents of the convolution's
// input and output.
func newWindow(n *onnx.Node, kernel, in, out []int) window {
	r := len(kernel)
	w := window{kernel: kernel, in: in, out: out, stride: n.Ints("strides"), dilation: n.Ints("dilations"), before: make([]int, r), after: make([]int, r)}
	if w.stride == nil {
		w.stride = filled(1, r)
	}
	if w.dilation == nil {
		w.dilation = filled(1, r)
	}
	switch pad := n.Str("auto_pad", "NOTSET"); pad {
	case "SAME_UPPER", "SAME_LOWER":
		for i := range r {
			total := max(0, w.span(i)-in[i])
			w.before[i] = total / 2
			if pad == "SAME_LOWER" {
				w.before[i] = total - total/2
			}
			w.after[i] = total - w.before[i]
		}
	case "VALID":
	default:
		if p := n.Ints("pads"); len(p) == 2*r {
			copy(w.before, p[:r])
			copy(w.after, p[r:])
		}
	}
	return w
}

// span is the number of padded elements along axis i from the first to the last that a window
// reads.
func (w window) span(i int) int { return (w.out[i]-1)*w.stride[i] + (w.kernel[i]-1)*w.dilation[i] + 1 }

// tail is the padding after axis i that the windows really reach: more than declared in ceil mode,
// negative where trailing elements belong to no window.
func (w window) tail() []int {
	t := make([]int, len(w.in))
	for i := range t {
		t[i] = w.span(i) - w.before[i] - w.in[i]
	}
	return t
}

// strided reports whether any stride is above 1.
func (w window) strided() bool {
	for _, s := range w.stride {
		if s > 1 {
			return true
		}
	}
	return false
}

// overlapping reports whether an element may belong to several windows.
func (w window) overlapping() bool {
	for i, s := range w.stride {
		if s < (w.kernel[i]-1)*w.dilation[i]+1 {
			return true
		}
	}
	return false
}

// taps calls f for every tap of the kernel in row-major order. f must not keep its argument.
func (w window) taps(f func(tap []int)) {
	tap := make([]int, len(w.kernel))
	for range prod(w.kernel) {
		f(tap)
		for i := len(tap) - 1; i >= 0; i-- {
			if tap[i]++; tap[i] < w.kernel[i] {
				break
			}
			tap[i] = 0
		}
	}
}

func filled(v, n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// plus adds two lists element by element.
func plus(a, b []int) []int {
	s := make([]int, len(a))
	for i := range a {
		s[i] = a[i] + b[i]
	}
	return s
}

// join concatenates lists of extents.
func join(lists ...[]int) []int {
	var s []int
	for _, l := range lists {
		s = append(s, l...)
	}
	return s
}

// padSpatial pads the trailing axes of v with zeros before and after; negative amounts remove
// elements. It emits nothing when there is nothing to do.
func (c *Context) padSpatial(v onnx.Value, before, after []int) onnx.Value {
	if isZero(before) && isZero(after) {
		return v
	}
	lead := filled(0, c.Rank(v)-len(before))
	return c.Op("Pad", two(v, c.b.Ints(join(lead, before, lead, after)...)))
}

// splitSign separates amounts of padding into those that add and those that remove.
func splitSign(v []int) (add, remove []int) {
	add, remove = make([]int, len(v)), make([]int, len(v))
	for i, x := range v {
		add[i], remove[i] = max(0, x), min(0, x)
	}
	return add, remove
}

func isZero(v []int) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// tapSlice takes from v, whose trailing axes hold exactly the span of the windows, the element that
// one tap of every window reads.
func (c *Context) tapSlice(v onnx.Value, w window, tap []int) onnx.Value {
	return c.tapSliceAxes(v, w, tap, 0, len(tap))
}

// tapSlicer returns tapSlice of v for all taps. What the taps of a column of the kernel read of the
// last axis is cut out once for all of them, so that each cuts the other axes out in longer runs.
func (c *Context) tapSlicer(v onnx.Value, w window) func(tap []int) onnx.Value {
	last := len(w.kernel) - 1
	columns := make([]onnx.Value, w.kernel[last])
	return func(tap []int) onnx.Value {
		if last == 0 {
			return c.tapSlice(v, w, tap)
		}
		column := &columns[tap[last]]
		if *column == "" {
			*column = c.tapSliceAxes(v, w, tap, last, last+1)
		}
		return c.tapSliceAxes(*column, w, tap, 0, last)
	}
}

// tapSliceAxes is tapSlice for the axes from lo on and below hi; the others stay as they are.
func (c *Context) tapSliceAxes(v onnx.Value, w window, tap []int, lo, hi int) onnx.Value {
	lead := c.Rank(v) - len(tap)
	var starts, ends, axes, steps []int
	for i := lo; i < hi; i++ {
		if w.span(i) == w.out[i] {
			continue // The single tap of a dense axis reads all of it.
		}
		start := tap[i] * w.dilation[i]
		starts = append(starts, start)
		ends = append(ends, start+(w.out[i]-1)*w.stride[i]+1)
		axes = append(axes, lead+i)
		steps = append(steps, w.stride[i])
	}
	if axes == nil {
		return v
	}
	return c.Slice(v, starts, ends, axes, steps)
}
