package rng

import "math"

// Exp returns a value of the exponential distribution with mean 1, by inversion.
func (s *Stream) Exp() float64 { return -log(s.open()) }

// log is the natural logarithm of a positive, finite, normal x with a relative error below 4e-16.
// math.Log is not used because its last bit depends on the processor: there, compilers may fuse
// multiplications and additions, which the explicit conversions here rule out.
//
// x = m·2^e with m in [√½, √2), and log m = 2 artanh t with t = (m-1)/(m+1), |t| <= 0.1716: eleven
// terms of the series leave less than 2^-58.
func log(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	t := float64(m-1) / float64(m+1)
	z := float64(t * t)
	p := 1.0 / 21
	p = 1.0/19 + float64(p*z)
	p = 1.0/17 + float64(p*z)
	p = 1.0/15 + float64(p*z)
	p = 1.0/13 + float64(p*z)
	p = 1.0/11 + float64(p*z)
	p = 1.0/9 + float64(p*z)
	p = 1.0/7 + float64(p*z)
	p = 1.0/5 + float64(p*z)
	p = 1.0/3 + float64(p*z)
	// log m = 2t + 2t·z·p: the small part is added to the large one last.
	t2 := float64(2 * t)
	small := float64(t2 * float64(z*p))
	const ln2Hi, ln2Lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	k := float64(e)
	return float64(k*ln2Hi) + float64(t2+float64(small+float64(k*ln2Lo)))
}
