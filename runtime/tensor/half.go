package tensor

import "math"

// Float16ToFloat32 widens IEEE 754 binary16 bits. Every value is exact.
func Float16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h & 0x3ff)
	switch exp {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case 0:
		// A subnormal half is a normal float: its value is man * 2^-24, which float32 holds
		// exactly.
		f := float32(man) * 0x1p-24
		return math.Float32frombits(math.Float32bits(f) | sign)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// Float32ToFloat16 narrows to IEEE 754 binary16 bits, rounding to nearest even; magnitudes from
// 65520 upwards become infinite.
func Float32ToFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x47800000:
		return sign | 0x7c00
	case b < 0x38800000:
		// Adding 0.5 aligns the value so that the half's subnormal bits are the low bits of the
		// sum, rounded by the addition itself.
		v := math.Float32frombits(b) + 0.5
		return sign | uint16(math.Float32bits(v)-0x3f000000)
	}
	odd := (b >> 13) & 1
	b += 0xc8000fff + odd
	return sign | uint16(b>>13)
}

// BFloat16ToFloat32 widens bfloat16 bits. Every value is exact.
func BFloat16ToFloat32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// Float32ToBFloat16 narrows to bfloat16 bits, rounding to nearest even; NaN stays a NaN.
func Float32ToBFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b>>16)&1) >> 16)
}
