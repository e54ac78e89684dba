package oip

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// The powers of ten that float32 needs, as g · 2^e with g in [2^63, 2^64) rounded up; powers[i] is that of 10^(i+minPower).
const (
	minPower = -31
	maxPower = 46
)

var powers = func() (g [maxPower - minPower + 1]uint64) {
	for i := range g {
		p := i + minPower
		f := new(big.Float).SetPrec(512).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(p, -p))), nil))
		if p < 0 {
			f.Quo(big.NewFloat(1).SetPrec(512), f)
		}
		f.SetMantExp(f, 64-f.MantExp(nil))
		n, accuracy := f.Int(nil)
		if accuracy == big.Below {
			n.Add(n, big.NewInt(1))
		}
		g[i] = n.Uint64()
	}
	return g
}()

// shortest returns the digits and the exponent of the shortest decimal that reads back as the positive, finite float32, the closest one where there are several. Trailing zeros are left in.
func shortest(b uint32) (digits uint64, exp int) {
	fraction, e := uint64(b&(1<<23-1)), int(b>>23)
	c, q := fraction, -149
	if e != 0 {
		c, q = fraction|1<<23, e-150
		if -24 < q && q <= 0 && c&(1<<-q-1) == 0 {
			return c >> -q, 0
		}
	}
	// The interval that rounds to the number, times 4: its lower half is half as wide below a power of two. Its ends belong to it when the mantissa is even.
	closer, even := fraction == 0 && e > 1, c&1 == 0
	left, right := 4*c-2, 4*c+2
	k := q * 1262611 >> 22 // floor(log10(2^q))
	if closer {
		left++
		k = (q*1262611 - 524031) >> 22 // floor(log10(¾·2^q))
	}
	h := q + (-k*1741647)>>19 + 1
	g := powers[-k-minPower]
	lower, value, upper := scale(g, left<<h), scale(g, 4*c<<h), scale(g, right<<h)
	if !even {
		lower++
		upper--
	}
	s := value / 4
	if s >= 10 {
		// One digit less, if exactly one of the neighbours lies within.
		t := s / 10
		down, up := lower <= 40*t, 40*t+40 <= upper
		if down != up {
			if up {
				t++
			}
			return t, k + 1
		}
	}
	down, up := lower <= 4*s, 4*s+4 <= upper
	if down != up {
		if up {
			s++
		}
		return s, k
	}
	if middle := 4*s + 2; value > middle || value == middle && s&1 != 0 {
		s++
	}
	return s, k
}

// scale is floor(g·c / 2^64), the last bit set when anything but the next bit is left over: rounding to odd keeps every comparison right.
func scale(g, c uint64) uint64 {
	hi, lo := bits.Mul64(g, c)
	if lo>>32 > 1 {
		hi |= 1
	}
	return hi
}

// AppendFloat32 appends a finite number in the notation of encoding/json: without exponent from 1e-6 up to 1e21.
func AppendFloat32(dst []byte, f float32) []byte {
	b := math.Float32bits(f)
	if b>>31 != 0 {
		dst = append(dst, '-')
		b &= 1<<31 - 1
	}
	if b == 0 {
		return append(dst, '0')
	}
	m, exp := shortest(b)
	for m >= 10 {
		if m%10 != 0 {
			break
		}
		m /= 10
		exp++
	}
	var buf [20]byte
	i := len(buf)
	for m >= 100 {
		q := m / 100
		r := m - q*100
		i -= 2
		buf[i], buf[i+1] = pairs[2*r], pairs[2*r+1]
		m = q
	}
	if m >= 10 {
		i -= 2
		buf[i], buf[i+1] = pairs[2*m], pairs[2*m+1]
	} else {
		i--
		buf[i] = byte('0' + m)
	}
	digits := buf[i:]
	n := len(digits)
	switch point := n + exp; { // 0.digits · 10^point
	case point > 21 || point < -5:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(dst, '.')
			dst = append(dst, digits[1:]...)
		}
		dst = append(dst, 'e')
		e := point - 1
		if e < 0 {
			dst = append(dst, '-')
			e = -e
		} else {
			dst = append(dst, '+')
		}
		return strconv.AppendInt(dst, int64(e), 10)
	case point <= 0:
		dst = append(dst, "0.000000"[:2-point]...)
		return append(dst, digits...)
	case exp >= 0:
		dst = append(dst, digits...)
		return append(dst, "000000000000000000000"[:exp]...)
	default:
		dst = append(dst, digits[:point]...)
		dst = append(dst, '.')
		return append(dst, digits[point:]...)
	}
}

// pairs are the two-digit numbers.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

// AppendFloat64 appends a finite number in the notation of encoding/json.
func AppendFloat64(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
