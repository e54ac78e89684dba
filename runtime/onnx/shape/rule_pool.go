package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func pool(c *call) error {
	x := c.typ(0)
	if !c.hasAttr("kernel_shape") {
		return fmt.Errorf("attribute %q is missing", "kernel_shape")
	}
	kernel, err := c.kernelAttr()
	if err != nil {
		return err
	}
	if !x.Ranked {
		c.setDims(0, x.DType, unknownDims(len(kernel)+2)...)
		c.setDims(1, tensor.Int64, unknownDims(len(kernel)+2)...)
		return nil
	}
	n := len(x.Dims) - 2
	if n < 1 || len(kernel) != n {
		return fmt.Errorf("kernel_shape has %d numbers, but input %v has %d spatial axes", len(kernel), x, n)
	}
	w, err := c.window(n)
	if err != nil {
		return err
	}
	w.kernel = kernel
	out := []onnx.Dim{x.Dims[0], x.Dims[1]}
	for i, d := range x.Dims[2:] {
		o, err := c.env.slide(w, i, d)
		if err != nil {
			return fmt.Errorf("input %v: %w", x, err)
		}
		out = append(out, o)
	}
	c.setDims(0, x.DType, out...)
	c.setDims(1, tensor.Int64, out...)
	return nil
}

func globalPool(c *call) error {
	d, ok, err := c.ranked(0, 2)
	if err != nil || !ok {
		c.setUnranked(0, c.dtype(0))
		return err
	}
	out := append([]onnx.Dim(nil), d...)
	for i := 2; i < len(out); i++ {
		out[i] = onnx.Known(1)
	}
	c.setDims(0, c.dtype(0), out...)
	return nil
}

func maxUnpool(c *call) error {
	x := c.typ(0)
	if x.Ranked && c.typ(1).Ranked {
		if err := fits(withDType(c.typ(1), tensor.Undefined), withDType(x, tensor.Undefined), "indices", "values"); err != nil {
			return err
		}
	}
	if c.has(2) {
		v, ok := c.values(2)
		if !ok {
			v = make([]val, len(x.Dims))
		}
		if x.Ranked && len(v) != len(x.Dims) {
			return fmt.Errorf("output_shape has %d numbers for the axes of %v", len(v), x)
		}
		dims := make([]onnx.Dim, len(v))
		for i := range v {
			dims[i] = v[i].dim()
		}
		if !x.Ranked && !ok {
			c.setUnranked(0, x.DType)
			return nil
		}
		c.setDims(0, x.DType, dims...)
		return nil
	}
	if !x.Ranked {
		c.setUnranked(0, x.DType)
		return nil
	}
	kernel, err := c.kernelAttr()
	if err != nil {
		return err
	}
	n := len(x.Dims) - 2
	if n < 1 || len(kernel) != n {
		return fmt.Errorf("kernel_shape has %d numbers, but input %v has %d spatial axes", len(kernel), x, n)
	}
	w, err := c.window(n)
	if err != nil {
		return err
	}
	out := []onnx.Dim{x.Dims[0], x.Dims[1]}
	for i, d := range x.Dims[2:] {
		v := c.env.add(c.env.mul(c.env.add(ofDim(d), num(-1)), num(int64(w.strides[i]))), num(int64(kernel[i].Value-w.pads[i]-w.pads[n+i])))
		if v.known && v.n < 0 {
			return fmt.Errorf("input %v: spatial axis %d of the output has %d elements", x, i, v.n)
		}
		out = append(out, v.dim())
	}
	c.setDims(0, x.DType, out...)
	return nil
}

// maxRoiPool gives [regions, channels, pooled…]; regions are rows of batch index and two corners.
func maxRoiPool(c *call) error {
	x, roi := c.typ(0), c.typ(1)
	if err := c.rankIs(0, 4); err != nil {
		return err
	}
	if err := c.rankIs(1, 2); err != nil {
		return err
	}
	p := c.ints("pooled_shape")
	if len(p) != 2 || p[0] < 1 || p[1] < 1 {
		return fmt.Errorf("pooled_shape is %v, want two positive numbers", p)
	}
	out := []onnx.Dim{onnx.Symbol(""), onnx.Symbol(""), onnx.Known(p[0]), onnx.Known(p[1])}
	if roi.Ranked {
		out[0] = roi.Dims[0]
	}
	if x.Ranked {
		out[1] = x.Dims[1]
	}
	c.setDims(0, x.DType, out...)
	return nil
}

func roiAlign(c *call) error {
	x, roi := c.typ(0), c.typ(1)
	for i, n := range []int{4, 2, 1} {
		if err := c.rankIs(i, n); err != nil {
			return err
		}
	}
	h, w := c.int("output_height", 1), c.int("output_width", 1)
	if h < 1 || w < 1 {
		return fmt.Errorf("output is %d by %d", h, w)
	}
	out := []onnx.Dim{onnx.Symbol(""), onnx.Symbol(""), onnx.Known(h), onnx.Known(w)}
	if roi.Ranked {
		out[0] = roi.Dims[0]
	}
	if t := c.typ(2); t.Ranked {
		var err error
		if out[0], err = agree(out[0], t.Dims[0], "number of regions and of batch indices"); err != nil {
			return err
		}
	}
	if x.Ranked {
		out[1] = x.Dims[1]
	}
	c.setDims(0, x.DType, out...)
	return nil
}
