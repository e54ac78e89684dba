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
