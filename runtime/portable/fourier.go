package portable

import (
	"fmt"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

var fourierOperators = []operator{
	{name: "DFT", versions: []int{17}, minIn: 1, maxIn: 2, build: buildDFT},
	{name: "DFT", versions: []int{20}, minIn: 1, maxIn: 3, build: buildDFT},
	{name: "STFT", versions: []int{17}, minIn: 2, maxIn: 4, build: buildSTFT},
}

// transform is one complex transform of a fixed length, by gonum.
type transform struct {
	fft *fourier.CmplxFFT
	buf []complex128
}

func (t *transform) reset(n int) {
	if t.fft == nil {
		t.fft = fourier.NewCmplxFFT(n)
	} else if t.fft.Len() != n {
		t.fft.Reset(n)
	}
	if cap(t.buf) < n {
		t.buf = make([]complex128, n)
	}
	t.buf = t.buf[:n]
}

func buildDFT(n *node) (kernel, error) {
	inverse, onesided := n.Int("inverse", 0) != 0, n.Int("onesided", 0) != 0
	axis := -2
	if n.opset < 20 {
		axis = n.Int("axis", 1)
	}
	return byFloat(func(c *call) error { return dft[float32](c, axis, inverse, onesided) },
		func(c *call) error { return dft[float64](c, axis, inverse, onesided) }), nil
}

func dft[T float](c *call, axis int, inverse, onesided bool) error {
	x := c.arg(0)
	var err error
	if t := c.arg(2); t != nil {
		if axis, err = scalarInt(t); err != nil {
			return fmt.Errorf("axis: %w", err)
		}
	}
	parts := extent(x.Shape(), -1)
	if x.Rank() < 2 || parts != 1 && parts != 2 {
		return fmt.Errorf("input %v, its last axis must hold real or real and imaginary parts", x)
	}
	a, err := normAxis(axis, x.Rank())
	if err != nil {
		return err
	}
	if a == x.Rank()-1 {
		return fmt.Errorf("axis %d is the one of the parts", axis)
	}
	d := x.Shape()[a]
	n := d
	if inverse && onesided {
		n = 2 * (d - 1)
	}
	if t := c.arg(1); t != nil {
		if n, err = scalarInt(t); err != nil {
			return fmt.Errorf("dft_length: %w", err)
		}
	}
	if n < 1 || n > maxValueBytes/16 {
		return fmt.Errorf("a transform of length %d", n)
	}
	shape := append(c.shapeBuf(0), x.Shape()...)
	outParts, outLen := 2, n
	switch {
	case inverse && onesided:
		outParts = 1
	case onesided:
		outLen = n/2 + 1
	}
	shape[a], shape[len(shape)-1] = outLen, outParts
	out := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	t := keep[transform](c)
	t.reset(n)
	src, inner := data[T](x), product(x.Shape()[a+1:x.Rank()-1])
	for o := range product(x.Shape()[:a]) {
		for j := range inner {
			clear(t.buf)
			for i := range min(d, n) {
				at := ((o*d+i)*inner + j) * parts
				v := complex(float64(src[at]), 0)
				if parts == 2 {
					v = complex(float64(src[at]), float64(src[at+1]))
				}
				t.buf[i] = v
			}
			if inverse && onesided {
				// The half that is not given is the conjugate of the one that is; the parts that
				// must be real count as real.
				t.buf[0] = complex(real(t.buf[0]), 0)
				for i := n/2 + 1; i < n; i++ {
					t.buf[i] = complex(real(t.buf[n-i]), -imag(t.buf[n-i]))
				}
				if n%2 == 0 {
					t.buf[n/2] = complex(real(t.buf[n/2]), 0)
				}
			}
			scale := 1.0
			if inverse {
				t.fft.Sequence(t.buf, t.buf)
				scale = 1 / float64(n)
			} else {
				t.fft.Coefficients(t.buf, t.buf)
			}
			for i := range outLen {
				at := ((o*outLen+i)*inner + j) * outParts
				out[at] = T(real(t.buf[i]) * scale)
				if outParts == 2 {
					out[at+1] = T(imag(t.buf[i]) * scale)
				}
			}
		}
	}
	return nil
}

func buildSTFT(n *node) (kernel, error) {
	onesided := n.Int("onesided", 1) != 0
	return byFloat(func(c *call) error { return stft[float32](c, onesided) }, func(c *call) error { return stft[float64](c, onesided) }), nil
}

func stft[T float](c *call, onesided bool) error {
	x, window := c.arg(0), c.arg(2)
	step, err := scalarInt(c.arg(1))
	if err != nil {
		return fmt.Errorf("frame_step: %w", err)
	}
	if step < 1 {
		return fmt.Errorf("frame_step %d: %w", step, engine.ErrNotPositive)
	}
	parts := 1
	if x.Rank() == 3 {
		parts = x.Shape()[2]
	}
	if x.Rank() < 2 || x.Rank() > 3 || parts != 1 && parts != 2 {
		return fmt.Errorf("signal is %v", x)
	}
	batch, length := x.Shape()[0], x.Shape()[1]
	n := length
	if window != nil {
		if window.DType() != x.DType() || window.Rank() != 1 {
			return fmt.Errorf("window is %v", window)
		}
		n = window.Len()
	}
	if t := c.arg(3); t != nil {
		if n, err = scalarInt(t); err != nil {
			return fmt.Errorf("frame_length: %w", err)
		}
		if n < 1 {
			return fmt.Errorf("frame_length %d: %w", n, engine.ErrNotPositive)
		}
	}
	if n > length || window != nil && window.Len() != n {
		return fmt.Errorf("frames of %d with window %v in a signal of %d", n, window, length)
	}
	frames, bins := 1+(length-n)/step, n
	if onesided {
		bins = n/2 + 1
	}
	out := data[T](c.make(0, x.DType(), batch, frames, bins, 2))
	t := keep[transform](c)
	t.reset(n)
	src := data[T](x)
	for b := range batch {
		for f := range frames {
			for i := range n {
				at := (b*length + f*step + i) * parts
				v := complex(float64(src[at]), 0)
				if parts == 2 {
					v = complex(float64(src[at]), float64(src[at+1]))
				}
				if window != nil {
					v *= complex(float64(data[T](window)[i]), 0)
				}
				t.buf[i] = v
			}
			t.fft.Coefficients(t.buf, t.buf)
			for i := range bins {
				at := ((b*frames+f)*bins + i) * 2
				out[at], out[at+1] = T(real(t.buf[i])), T(imag(t.buf[i]))
			}
		}
	}
	return nil
}
