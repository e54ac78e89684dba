package kernel

import "fmt"

// same panics unless every length is n.
func same(name string, n int, lengths ...int) {
	for _, l := range lengths {
		if l != n {
			panic(fmt.Sprintf("kernel.%s: slice of %d elements, want %d", name, l, n))
		}
	}
}

// Polyak moves dst towards src in place: dst += tau * (src - dst). With tau = 1
// it does not copy exactly; use copy for that.
func Polyak(dst, src []float32, tau float32) {
	n := len(dst)
	same("Polyak", n, len(src))
	c := ScalarCoef{tau}
	k := polyakVector(dst, src, &c)
	polyakTwin(dst[k:], src[k:n], &c)
}

func polyakTwin(dst, src []float32, c *ScalarCoef) {
	for i, d := range dst {
		dst[i] = d + float32(float32(src[i]-d)*c.A)
	}
}

// Axpy accumulates in place: dst += a * src.
func Axpy(dst, src []float32, a float32) {
	n := len(dst)
	same("Axpy", n, len(src))
	c := ScalarCoef{a}
	k := axpyVector(dst, src, &c)
	axpyTwin(dst[k:], src[k:n], &c)
}

func axpyTwin(dst, src []float32, c *ScalarCoef) {
	for i, d := range dst {
		dst[i] = d + float32(src[i]*c.A)
	}
}

// Scale multiplies dst by a in place.
func Scale(dst []float32, a float32) {
	c := ScalarCoef{a}
	k := scaleVector(dst, &c)
	scaleTwin(dst[k:], &c)
}

func scaleTwin(dst []float32, c *ScalarCoef) {
	for i, d := range dst {
		dst[i] = d * c.A
	}
}

// Clamp limits dst to [lo, hi] in place; NaN stays NaN.
func Clamp(dst []float32, lo, hi float32) {
	c := ClampCoef{lo, hi}
	k := clampVector(dst, &c)
	clampTwin(dst[k:], &c)
}

func clampTwin(dst []float32, c *ClampCoef) {
	for i, d := range dst {
		if c.Lo > d {
			d = c.Lo
		}
		if c.Hi < d {
			d = c.Hi
		}
		dst[i] = d
	}
}
