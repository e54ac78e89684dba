package kernel

import "math"

// normal returns x, or +0 if x is zero or denormal.
func normal(x float32) float32 {
	if math.Float32bits(x)&0x7f800000 == 0 {
		return 0
	}
	return x
}

// squarable returns x, or +0 if |x| < 2^-63, where x*x is not a normal number:
// exactly there the two upper bits of the exponent are clear.
func squarable(x float32) float32 {
	if math.Float32bits(x)&0x60000000 == 0 {
		return 0
	}
	return x
}

// sqrt32 is correctly rounded: rounding a float64 root of a float32 once more
// is innocuous, and the compiler emits the float32 instruction.
func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }
