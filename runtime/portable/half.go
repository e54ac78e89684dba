package portable

import (
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// halves is how a step with float16 or bfloat16 inputs runs a kernel written for float32: inputs
// are widened before it, float32 outputs narrowed after it.
type halves struct {
	to      tensor.DType
	wide    []*tensor.Tensor
	pending []bool
	narrow  int // outputs from this one on stay float32
}

// viaFloat32 runs k on float32.
func (c *call) viaFloat32(k kernel) error { return c.viaFloat32Outputs(k, len(c.out)) }

// viaFloat32Outputs runs k on float32 and narrows the first n outputs only.
func (c *call) viaFloat32Outputs(k kernel, n int) error {
	h := &halves{narrow: n, wide: make([]*tensor.Tensor, len(c.out)), pending: make([]bool, len(c.out))}
	for i, t := range c.args {
		if t == nil || t.DType() != tensor.Float16 && t.DType() != tensor.BFloat16 {
			continue
		}
		if h.to == tensor.Undefined {
			h.to = t.DType()
		}
		c.args[i] = widen(t)
	}
	c.half = h
	err := k(c)
	c.half = nil
	if err != nil {
		return err
	}
	for i, w := range h.wide {
		if h.pending[i] {
			narrow(c.place(i, h.to, w.Shape()), w)
		}
	}
	return nil
}

// output returns the float32 tensor that stands for an output until it is narrowed.
func (h *halves) output(c *call, i int, shape []int) *tensor.Tensor {
	if i >= h.narrow {
		return c.place(i, tensor.Float32, shape)
	}
	t := newTensor(tensor.Float32, shape)
	if c.wants(i) {
		h.wide[i], h.pending[i] = t, true
	}
	return t
}

// widen converts float16 or bfloat16 to float32, exactly.
func widen(t *tensor.Tensor) *tensor.Tensor {
	w := tensor.New(tensor.Float32, t.Shape()...)
	dst, src := w.Float32s(), tensor.Data[uint16](t)
	if t.DType() == tensor.Float16 {
		for i, v := range src {
			dst[i] = tensor.Float16ToFloat32(v)
		}
		return w
	}
	for i, v := range src {
		dst[i] = tensor.BFloat16ToFloat32(v)
	}
	return w
}

// narrow rounds float32 to dst's type, to nearest even.
func narrow(dst, src *tensor.Tensor) {
	d := tensor.Data[uint16](dst)
	if dst.DType() == tensor.Float16 {
		for i, v := range src.Float32s() {
			d[i] = tensor.Float32ToFloat16(v)
		}
		return
	}
	for i, v := range src.Float32s() {
		d[i] = tensor.Float32ToBFloat16(v)
	}
}
