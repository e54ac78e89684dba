package oip

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
)

// The powers of ten that float32 needs, as g · 2^e with g in [2^63, 2^64) rounded up; powers[i] is
// that of 10^(i+minPower).
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

// shortest returns the digits and the exponent of the shortest decimal that reads back as the
// positive, finite float32, the closest one where there are several. Trailing zeros are left in.
func shortest(b uint32) (digits uint64, exp int) {
	fraction, e := uint64(b&(1<<23-1)), int(b>>23)
	c, q := fraction, -149
	if e != 0 {
		c, q = fraction|1<<23, e-150
		if -24 < q && q <= 0 && c&(1<<-q-1) == 0 {
			return c >> -q, 0
		}
	}
	// The interval that rounds to the number, times 4: its lower half is half as wide below a power
	// of two. Its ends belong to it when the mantissa is even.
	closer, even := fraction == 0 && e > 1, c&1 == 0
	left, right := 4*c-2, 4*c+2
	k := q * 1262611 >> 22 // floor(log10(2^q))
	if closer {
		left++
		k = (q*1262611 - 524031) >> 22 // floor(log10(¾·2^q))
	}
	h := (q + (-k*1741647)>>19 + 1) & 63 // 1 to 4; the mask tells the compiler that a shift is one instruction
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
		down, up := one(lower <= 40*t), one(40*t+40 <= upper)
		if down != up {
			return t + up, k + 1
		}
	}
	down, up := one(lower <= 4*s), one(4*s+4 <= upper)
	if down == up {
		up = one(value+s&1 > 4*s+2) // the nearer one, and of two the even one
	}
	return s + up, k
}

// one is 1 for true: the outcomes are not predictable, so they are not branched on.
func one(b bool) uint64 {
	var v uint64
	if b {
		v = 1
	}
	return v
}

// scale is floor(g·c / 2^64), the last bit set when anything but the next bit is left over:
// rounding to odd keeps every comparison right.
func scale(g, c uint64) uint64 {
	hi, lo := bits.Mul64(g, c)
	if lo>>32 > 1 {
		hi |= 1
	}
	return hi
}

// room is what putFloat32 needs: the longest text has 22 bytes, and digits are copied 16 bytes at a
// time.
const room = 40

// AppendFloat32 appends a finite number in the notation of encoding/json: without exponent from
// 1e-6 up to 1e21.
func AppendFloat32(dst []byte, f float32) []byte {
	n := len(dst)
	dst = slices.Grow(dst, room)
	return dst[:n+putFloat32((*[room]byte)(dst[n:n+room]), f)]
}

// putFloat32 writes a finite number and returns its length; what lies behind it is overwritten.
func putFloat32(dst *[room]byte, f float32) int {
	b := math.Float32bits(f)
	dst[0] = '-'
	at := int(b >> 31)
	b &= 1<<31 - 1
	if b == 0 {
		dst[at] = '0'
		return at + 1
	}
	m64, exp := shortest(b)
	m := uint32(m64) // at most nine digits
	for m%10 == 0 {
		m /= 10
		exp++
	}
	n := digits(m)
	var all [10 + 16]byte
	putTen(&all, m)
	text := (*[16]byte)(all[10-n:])
	switch point := n + exp; { // 0.text · 10^point
	case point > 0 && exp < 0:
		*(*[16]byte)(dst[at:]) = *text
		*(*[16]byte)(dst[at+point+1:]) = *(*[16]byte)(all[10-n+point:])
		dst[at+point] = '.'
		return at + n + 1
	case point <= 0 && point >= -5:
		*(*[8]byte)(dst[at:]) = [8]byte([]byte("0.000000"))
		at += 2 - point
		*(*[16]byte)(dst[at:]) = *text
		return at + n
	case point > 0 && point <= 21:
		*(*[16]byte)(dst[at:]) = *text
		at += n
		return at + copy(dst[at:], "000000000000000000000"[:exp])
	default:
		*(*[16]byte)(dst[at+1:]) = *text
		dst[at] = text[0]
		if n > 1 {
			dst[at+1] = '.'
			at += n
		}
		dst[at+1], dst[at+2] = 'e', '+'
		e := point - 1
		if e < 0 {
			dst[at+2] = '-'
			e = -e
		}
		at += 3
		if e >= 10 {
			dst[at] = byte('0' + e/10)
			at++
		}
		dst[at] = byte('0' + e%10)
		return at + 1
	}
}

// digits counts the digits of a number of at least 1.
func digits(m uint32) int {
	n := bits.Len32(m) * 1233 >> 12 // log10, rounded down, of the power of two above
	if m >= tens[n] {
		n++
	}
	return n
}

var tens = [...]uint32{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// putTen writes m with ten digits. There is no branch in it: the number of digits is not
// predictable.
func putTen(dst *[26]byte, m uint32) {
	high, low := m/10000, m%10000
	top, mid := high/10000, high%10000
	binary.LittleEndian.PutUint16(dst[0:], pairs[top&127])
	binary.LittleEndian.PutUint16(dst[2:], pairs[mid/100&127])
	binary.LittleEndian.PutUint16(dst[4:], pairs[mid%100&127])
	binary.LittleEndian.PutUint16(dst[6:], pairs[low/100&127])
	binary.LittleEndian.PutUint16(dst[8:], pairs[low%100&127])
}

// pairs are the two-digit numbers as text; 128 entries, so that masking an index spares its check.
var pairs = func() (p [128]uint16) {
	for i := range uint16(100) {
		p[i] = '0' + i/10 | ('0'+i%10)<<8
	}
	return p
}()

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
