package portable

import (
	"fmt"
)

// window is a sliding window over up to three spatial axes. Inputs of one or two are padded with
// leading axes of extent 1, so that kernels are written once.
type window struct {
	rank                     int
	kernel, stride, dilation [3]int
	begin, end               [3]int
	auto                     string
	ceil                     bool
}

// buildWindow reads the attributes common to convolutions and pools. Without kernel_shape, rank
// stays 0 and setKernel must be called.
func buildWindow(n *node) (window, error) {
	w := window{auto: n.Str("auto_pad", "NOTSET"), ceil: n.Int("ceil_mode", 0) != 0}
	switch w.auto {
	case "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "":
	default:
		return w, fmt.Errorf("auto_pad %q is not known", w.auto)
	}
	rank := 0
	for _, l := range []struct {
		name string
		per  int
	}{{"kernel_shape", 1}, {"strides", 1}, {"dilations", 1}, {"pads", 2}} {
		if v := n.Ints(l.name); v != nil {
			if rank != 0 && len(v) != rank*l.per || len(v)%l.per != 0 {
				return w, fmt.Errorf("%s has %d elements for %d axes", l.name, len(v), rank)
			}
			rank = len(v) / l.per
		}
	}
	if rank > 3 {
		return w, unsupported("windows over %d axes", rank)
	}
	for i := range 3 {
		w.kernel[i], w.stride[i], w.dilation[i] = 1, 1, 1
	}
	off := 3 - rank
	for i, v := range n.Ints("kernel_shape") {
		w.kernel[off+i] = v
		w.rank = rank
	}
	for i, v := range n.Ints("strides") {
		w.stride[off+i] = v
	}
	for i, v := range n.Ints("dilations") {
		w.dilation[off+i] = v
	}
	for i, v := range n.Ints("pads") {
		if i < rank {
			w.begin[off+i] = v
		} else {
			w.end[off+i-rank] = v
		}
	}
	for i := range 3 {
		if w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 {
			return w, fmt.Errorf("kernel_shape, strides and dilations must be positive")
		}
	}
	return w, nil
}

// setKernel takes the window's extents from a weight's shape, after its first two axes.
func (w *window) setKernel(shape []int) error {
	k := shape[2:]
	if len(k) > 3 || len(k) < 1 {
		return unsupported("windows over %d axes", len(k))
	}
	if w.rank != 0 && w.rank != len(k) {
		return fmt.Errorf("weights of shape %v for a window over %d axes", append([]int{}, shape...), w.rank)
	}
	for i, v := range k {
		if at := 3 - len(k) + i; w.rank != 0 && w.kernel[at] != v {
			return fmt.Errorf("weights of shape %v do not have the kernel_shape given", append([]int{}, shape...))
		}
		w.kernel[3-len(k)+i] = v
	}
	w.rank = len(k)
	return nil
}

// spatial returns the spatial extents of x, an N×C×… tensor, with leading ones.
func (w *window) spatial(shape []int) ([3]int, error) {
	in := [3]int{1, 1, 1}
	if len(shape) != w.rank+2 {
		return in, fmt.Errorf("input of rank %d for a window over %d axes", len(shape), w.rank)
	}
	copy(in[3-w.rank:], shape[2:])
	return in, nil
}

// span is the extent that the dilated window covers on an axis.
func (w *window) span(i int) int { return (w.kernel[i]-1)*w.dilation[i] + 1 }

// convolves takes the extents of the kernel from the weights and returns those of input and output.
func (w *window) convolves(x, weight []int) (in, out [3]int, err error) {
	if err = w.setKernel(weight); err != nil {
		return in, out, err
	}
	if in, err = w.spatial(x); err != nil {
		return in, out, err
	}
	out, err = w.output(in)
	return in, out, err
}

// output computes the output's extents and fixes automatic padding.
func (w *window) output(in [3]int) ([3]int, error) {
	var out [3]int
	for i := 3 - w.rank; i < 3; i++ {
		switch w.auto {
		case "SAME_UPPER", "SAME_LOWER":
			out[i] = (in[i] + w.stride[i] - 1) / w.stride[i]
			total := max(0, (out[i]-1)*w.stride[i]+w.span(i)-in[i])
			w.begin[i] = total / 2
			if w.auto == "SAME_LOWER" {
				w.begin[i] = total - total/2
			}
			w.end[i] = total - w.begin[i]
			continue
		case "VALID":
			w.begin[i], w.end[i] = 0, 0
		}
		free := in[i] + w.begin[i] + w.end[i] - w.span(i)
		if free < 0 {
			return out, fmt.Errorf("a window spanning %d does not fit extent %d with padding %d and %d", w.span(i), in[i], w.begin[i], w.end[i])
		}
		out[i] = free/w.stride[i] + 1
		// Rounding up may add a window, but not one that starts in the padding behind the input.
		if w.ceil && free%w.stride[i] != 0 && out[i]*w.stride[i] < in[i]+w.begin[i] {
			out[i]++
		}
	}
	for i := range 3 - w.rank {
		out[i] = 1
	}
	return out, nil
}

// appendSpatial appends the true spatial extents.
func (w *window) appendSpatial(shape []int, out [3]int) []int {
	return append(shape, out[3-w.rank:]...)
}

func volume(s [3]int) int { return s[0] * s[1] * s[2] }
