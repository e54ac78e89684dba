package oip

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"
)

// decimal is a number as it was written: ±mant · 10^exp, unless inexact says that mant is not the
// whole of it.
type decimal struct {
	mant    uint64
	exp     int
	neg     bool
	integer bool // neither fraction nor exponent
	inexact bool // more than 19 digits, or an exponent beyond ±9999
	text    []byte
}

// pow10 are the powers of ten that float64 holds exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// number reads a JSON number.
func (s *scanner) number() (d decimal, err error) {
	s.peek()
	b, i := s.b, s.i
	if i < len(b) && b[i] == '-' {
		d.neg = true
		i++
	}
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		d.mant = d.mant*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && b[first] == '0' {
		return d, s.notNumber()
	}
	d.integer = true
	if i < len(b) && b[i] == '.' {
		d.integer = false
		i++
		point := i
		for i < len(b) && b[i]-'0' <= 9 {
			d.mant = d.mant*10 + uint64(b[i]-'0')
			i++
		}
		if i == point {
			return d, s.notNumber()
		}
		digits += i - point
		d.exp = point - i
	}
	if digits > 19 {
		d.inexact = !fits(b[first:i])
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		d.integer = false
		i++
		neg := false
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			neg = b[i] == '-'
			i++
		}
		from, e := i, 0
		for i < len(b) && b[i]-'0' <= 9 {
			if e < 10000 {
				e = e*10 + int(b[i]-'0')
			}
			i++
		}
		if i == from {
			return d, s.notNumber()
		}
		if neg {
			e = -e
		}
		d.exp += e
		d.inexact = d.inexact || e >= 10000 || e <= -10000
	}
	d.text = b[s.i:i]
	s.i = i
	return d, nil
}

// fits reports whether the digits, leading zeros apart, are at most 19, so that uint64 held them.
func fits(digits []byte) bool {
	n := 0
	for _, c := range digits {
		if c != '.' && (n > 0 || c != '0') {
			n++
		}
	}
	return n <= 19
}

func (s *scanner) notNumber() error {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity", "-NaN", "nan", "inf", "-inf"} {
		if s.literal(word) {
			s.i -= len(word)
			return s.errorf("%s, which JSON has no number for; send the tensor in binary", word)
		}
	}
	return s.errorf("expected a number, got %s", s.got())
}

func (d *decimal) string() string { return unsafe.String(unsafe.SliceData(d.text), len(d.text)) }

func (d *decimal) outOf(datatype string) error {
	return fmt.Errorf("%s is not within %s", clip(string(d.text)), datatype)
}

// clip shortens text of a request for an error message.
func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

// float64 rounds to nearest even.
func (d *decimal) float64() (float64, error) {
	if d.mant < 1<<53 && d.exp >= -22 && d.exp <= 22 && !d.inexact {
		f := float64(d.mant)
		if d.exp < 0 {
			f /= pow10[-d.exp]
		} else {
			f *= pow10[d.exp]
		}
		if d.neg {
			f = -f
		}
		return f, nil
	}
	f, err := strconv.ParseFloat(d.string(), 64)
	if err != nil {
		return 0, d.outOf("FP64")
	}
	return f, nil
}

// float32 rounds to nearest even. The quotient or product in float64 is off by less than 2 of its
// units in the last place (one rounding of the mantissa and one of the result); unless it lies that
// close to the middle between two float32, it rounds to the same float32 as the exact number does.
func (d *decimal) float32() (float32, error) {
	if d.exp >= -22 && d.exp <= 22 && !d.inexact {
		f := float64(d.mant)
		if d.exp < 0 {
			f /= pow10[-d.exp]
		} else {
			f *= pow10[d.exp]
		}
		const middle = 1 << 28
		low := math.Float64bits(f) & (1<<29 - 1)
		if f >= 0x1p-126 && f <= math.MaxFloat32 && (low < middle-2 || low > middle+2) || d.mant == 0 {
			if d.neg {
				f = -f
				if d.mant == 0 {
					f = math.Copysign(0, -1)
				}
			}
			return float32(f), nil
		}
	}
	f, err := strconv.ParseFloat(d.string(), 32)
	if err != nil {
		return 0, d.outOf("FP32")
	}
	return float32(f), nil
}

// signed returns an integer of the given width.
func (d *decimal) signed(bits int, datatype string) (int64, error) {
	limit := uint64(1) << (bits - 1)
	switch {
	case !d.integer:
		return 0, fmt.Errorf("%s is not an integer, expected %s", clip(string(d.text)), datatype)
	case d.inexact, d.neg && d.mant > limit, !d.neg && d.mant >= limit:
		return 0, d.outOf(datatype)
	case d.neg:
		return -int64(d.mant), nil
	}
	return int64(d.mant), nil
}

// unsigned returns an integer of the given width.
func (d *decimal) unsigned(bits int, datatype string) (uint64, error) {
	if !d.integer {
		return 0, fmt.Errorf("%s is not an integer, expected %s", clip(string(d.text)), datatype)
	}
	v := d.mant
	if d.inexact { // 20 digits: 2^64 − 1 is one of them
		var err error
		if v, err = strconv.ParseUint(d.string(), 10, 64); err != nil {
			return 0, d.outOf(datatype)
		}
	}
	if d.neg && v != 0 || bits < 64 && v>>bits != 0 {
		return 0, d.outOf(datatype)
	}
	return v, nil
}
