package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// dft transforms one axis of [batch, signal…, 1 or 2]; the axis is an attribute before opset 20 and
// an input since.
func dft(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	n := len(t.Dims)
	if n < 2 {
		return fmt.Errorf("input %v: want at least a signal axis and the axis of real and imaginary parts", t)
	}
	if d := t.Dims[n-1]; d.IsKnown() && d.Value != 1 && d.Value != 2 {
		return fmt.Errorf("input %v: the last axis holds real and imaginary parts, so it must have 1 or 2 elements", t)
	}
	axis, known := c.int("axis", 1), true
	if c.opset() >= 20 {
		axis = -2
		if c.has(2) {
			axis, known = c.number(2)
		}
	}
	inverse, half := c.int("inverse", 0) != 0, c.int("onesided", 0) != 0
	parts := onnx.Known(2)
	if inverse && half {
		parts = onnx.Known(1)
	}
	if !known {
		out := unknownDims(n)
		out[n-1] = parts
		c.setDims(0, t.DType, out...)
		return nil
	}
	a, err := axisOf(axis, n)
	if err != nil {
		return fmt.Errorf("transform %v: %w", t, err)
	}
	if a == n-1 {
		return fmt.Errorf("transform %v: axis %d holds real and imaginary parts", t, a)
	}
	s := c.env.state
	length := ofDim(t.Dims[a])
	if inverse && half {
		// The full length that a one-sided spectrum of this length most plainly belongs to.
		length = s.mul(s.add(length, num(-1)), num(2))
	}
	if c.has(1) {
		length = val{}
		if v, ok := c.values(1); ok && len(v) == 1 {
			length = v[0]
		}
	}
	if length.known && length.n < 1 {
		return fmt.Errorf("dft_length is %d", length.n)
	}
	if half && !inverse {
		length = s.add(s.divFloor(length, 2), num(1))
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	out[a], out[n-1] = length.dim(), parts
	c.setDims(0, t.DType, out...)
	return nil
}

// stft gives [batch, frames, bins, 2] of a signal [batch, length, 1 or 2] (or [batch, length]).
func stft(c *call) error {
	t := c.typ(0)
	if t.Ranked && len(t.Dims) != 2 && len(t.Dims) != 3 {
		return fmt.Errorf("signal %v: want batch, length and parts", t)
	}
	if len(t.Dims) == 3 && t.Dims[2].IsKnown() && t.Dims[2].Value != 1 && t.Dims[2].Value != 2 {
		return fmt.Errorf("signal %v: want 1 or 2 parts", t)
	}
	if err := c.rankIs(2, 1); err != nil {
		return err
	}
	batch, signal := onnx.Symbol(""), val{}
	if t.Ranked {
		batch, signal = t.Dims[0], ofDim(t.Dims[1])
	}
	s := c.env.state
	step, length := val{}, signal
	if v, ok := c.values(1); ok && len(v) == 1 {
		step = v[0]
		if step.known && step.n < 1 {
			return fmt.Errorf("frame_step is %d", step.n)
		}
	}
	switch {
	case c.has(3):
		length = val{}
		if v, ok := c.values(3); ok && len(v) == 1 {
			length = v[0]
			if length.known && length.n < 1 {
				return fmt.Errorf("frame_length is %d", length.n)
			}
		}
		if d, ok := c.lengthOf(2); ok && length.known && int64(d) != length.n {
			return fmt.Errorf("the window has %d elements, frame_length is %d", d, length.n)
		}
	case c.has(2):
		length = val{}
		if d, ok := c.dims(2); ok && len(d) == 1 {
			length = ofDim(d[0])
		}
	}
	frames := val{}
	if step.known {
		span := s.sub(signal, length)
		if span.known && span.n < 0 {
			return fmt.Errorf("the frames are %d elements longer than the signal", -span.n)
		}
		frames = s.add(s.divFloor(span, step.n), num(1))
	}
	bins := length
	if c.int("onesided", 1) != 0 {
		bins = s.add(s.divFloor(length, 2), num(1))
	}
	c.setDims(0, t.DType, batch, frames.dim(), bins.dim(), onnx.Known(2))
	return nil
}

// windowFunction makes a list of size elements.
func windowFunction(c *call) error {
	d := c.dtypeAttr("output_datatype", tensor.Float32)
	n := onnx.Symbol("")
	if v, ok := c.values(0); ok {
		if len(v) != 1 || v[0].known && v[0].n < 0 {
			return fmt.Errorf("size is %v, want one number of at least 0", texts(v))
		}
		n = v[0].dim()
	}
	c.setDims(0, d, n)
	return nil
}

// melWeightMatrix is [dft_length/2+1, num_mel_bins].
func melWeightMatrix(c *call) error {
	rows, cols := val{}, val{}
	if v, ok := c.values(0); ok && len(v) == 1 {
		cols = v[0]
	}
	if v, ok := c.values(1); ok && len(v) == 1 {
		rows = c.env.add(c.env.divFloor(v[0], 2), num(1))
	}
	if cols.known && cols.n < 0 || rows.known && rows.n < 0 {
		return fmt.Errorf("%v mel bins of a transform with %v bins", cols.n, rows.n)
	}
	c.setDims(0, c.dtypeAttr("output_datatype", tensor.Float32), rows.dim(), cols.dim())
	return nil
}
