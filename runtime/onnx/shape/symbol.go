package shape

import (
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// val is one element of an integer content: a number, a symbolic expression or unknown.
type val struct {
	known bool
	n     int64
	sym   string // canonical text; empty and not known means unknown
}

func num(n int64) val { return val{known: true, n: n} }

// ofDim turns an extent into a value.
func ofDim(d onnx.Dim) val {
	if d.IsKnown() {
		return num(int64(d.Value))
	}
	return val{sym: d.Param}
}

// dim turns a value into an extent; a negative number is the unknown extent.
func (v val) dim() onnx.Dim {
	switch {
	case v.known && v.n >= 0:
		return onnx.Known(int(v.n))
	case v.known:
		return onnx.Symbol("")
	}
	return onnx.Symbol(v.sym)
}

func (v val) unknown() bool { return !v.known && v.sym == "" }

// poly is a sum of monomials, sorted by their factors; no two have the same factors and no
// coefficient is 0.
type poly []mono

type mono struct {
	c int64
	f []string // sorted symbols
}

// Expressions beyond these sizes become unknown: they would say nothing to a reader, and hostile
// models must not grow them.
const (
	maxTerms  = 6
	maxDegree = 6
	maxText   = 120
)

func (s *state) polyOf(v val) poly {
	if v.known {
		if v.n == 0 {
			return nil
		}
		return poly{{c: v.n}}
	}
	if p, ok := s.syms[v.sym]; ok {
		return p
	}
	return poly{{c: 1, f: []string{v.sym}}}
}

// valOf gives an expression its canonical text and remembers it.
func (s *state) valOf(p poly) val {
	switch {
	case len(p) == 0:
		return num(0)
	case len(p) == 1 && len(p[0].f) == 0:
		return num(p[0].c)
	case len(p) > maxTerms:
		return val{}
	case len(p) == 1 && p[0].c == 1 && len(p[0].f) == 1:
		return val{sym: p[0].f[0]}
	}
	var b strings.Builder
	for i, m := range p {
		if len(m.f) > maxDegree {
			return val{}
		}
		c := m.c
		if c < 0 {
			b.WriteByte('-')
			c = -c
		} else if i > 0 {
			b.WriteByte('+')
		}
		for j, f := range m.f {
			if j > 0 {
				b.WriteByte('*')
			}
			b.WriteString(operand(f, "*/"))
		}
		if len(m.f) == 0 {
			b.WriteString(strconv.FormatInt(c, 10))
		} else if c != 1 {
			b.WriteByte('*')
			b.WriteString(strconv.FormatInt(c, 10))
		}
	}
	return s.remember(b.String(), p)
}

func (s *state) remember(text string, p poly) val {
	if len(text) > maxText {
		return val{}
	}
	if s.syms == nil {
		s.syms = map[string]poly{}
	}
	if _, ok := s.syms[text]; !ok {
		s.syms[text] = p
	}
	return val{sym: text}
}

func addInt(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func mulInt(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	return c, c/b == a && !(a == -1 && b == -1<<63) && !(b == -1 && a == -1<<63)
}

// order sorts symbols before the constant, longer products first.
func order(a, b mono) int {
	if d := len(b.f) - len(a.f); d != 0 {
		return d
	}
	return slices.Compare(a.f, b.f)
}

// normal adds up equal monomials and sorts them; ok is false on overflow.
func normal(p poly) (poly, bool) {
	slices.SortStableFunc(p, order)
	out := p[:0]
	for _, m := range p {
		if n := len(out); n > 0 && slices.Equal(out[n-1].f, m.f) {
			c, ok := addInt(out[n-1].c, m.c)
			if !ok {
				return nil, false
			}
			out[n-1].c = c
			continue
		}
		out = append(out, m)
	}
	return slices.DeleteFunc(out, func(m mono) bool { return m.c == 0 }), true
}

func (s *state) add(a, b val) val { return s.addMul(a, b, 1) }

func (s *state) sub(a, b val) val { return s.addMul(a, b, -1) }

// addMul returns a + k·b.
func (s *state) addMul(a, b val, k int64) val {
	if a.unknown() || b.unknown() {
		return val{}
	}
	if a.known && b.known {
		x, ok := mulInt(b.n, k)
		y, ok2 := addInt(a.n, x)
		if !ok || !ok2 {
			return val{}
		}
		return num(y)
	}
	if b.known && b.n == 0 {
		return a
	}
	p := slices.Clone(s.polyOf(a))
	for _, m := range s.polyOf(b) {
		c, ok := mulInt(m.c, k)
		if !ok {
			return val{}
		}
		p = append(p, mono{c, m.f})
	}
	p, ok := normal(p)
	if !ok {
		return val{}
	}
	return s.valOf(p)
}

func (s *state) mul(a, b val) val {
	switch {
	case a.known && b.known:
		n, ok := mulInt(a.n, b.n)
		if !ok {
			return val{}
		}
		return num(n)
	case a.known && a.n == 0, b.known && b.n == 0:
		return num(0)
	case a.unknown() || b.unknown():
		return val{}
	case a.known && a.n == 1:
		return b
	case b.known && b.n == 1:
		return a
	}
	if a.known {
		a, b = b, a
	}
	if x, ok := s.exact[a.sym]; ok && b.known && b.n%x.by == 0 {
		return s.mul(x.of, num(b.n/x.by))
	}
	var p poly
	for _, x := range s.polyOf(a) {
		for _, y := range s.polyOf(b) {
			c, ok := mulInt(x.c, y.c)
			if !ok {
				return val{}
			}
			f := slices.Concat(x.f, y.f)
			if len(f) > maxDegree {
				return val{}
			}
			slices.Sort(f)
			p = append(p, mono{c, f})
		}
	}
	p, ok := normal(p)
	if !ok {
		return val{}
	}
	return s.valOf(p)
}

// operand puts what is more than one name or product into parentheses, so that a text reads as the
// expression it stands for. Models bring texts of their own.
func operand(text string, also string) string {
	depth := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case depth == 0 && strings.IndexByte("+- "+also, c) >= 0:
			return "(" + text + ")"
		}
	}
	return text
}

// divFloor returns floor(a / n) for n > 0: exactly where every coefficient divides, else as a
// symbol of its own.
func (s *state) divFloor(a val, n int64) val {
	if n <= 0 || a.unknown() {
		return val{}
	}
	if a.known {
		q := a.n / n
		if a.n%n != 0 && a.n < 0 {
			q--
		}
		return num(q)
	}
	if n == 1 {
		return a
	}
	if p, ok := dividePoly(s.polyOf(a), mono{c: n}); ok {
		return s.valOf(p)
	}
	text := "floor(" + operand(a.sym, "") + "/" + strconv.FormatInt(n, 10) + ")"
	if len(text) > maxText {
		return val{}
	}
	return val{sym: text}
}

// fraction is what a symbol made by an exact division stands for, so that multiplying it again
// gives the dividend back.
type fraction struct {
	of val
	by int64
}

// quotient returns a/b for a division that is known to leave no rest.
func (s *state) quotient(a, b val) val {
	if a.unknown() || b.unknown() {
		return val{}
	}
	if b.known {
		if b.n <= 0 {
			return val{}
		}
		if a.known {
			if a.n%b.n != 0 {
				return val{}
			}
			return num(a.n / b.n)
		}
		if p, ok := dividePoly(s.polyOf(a), mono{c: b.n}); ok {
			return s.valOf(p)
		}
		text := "(" + operand(a.sym, "") + "/" + strconv.FormatInt(b.n, 10) + ")"
		if len(text) > maxText {
			return val{}
		}
		if s.exact == nil {
			s.exact = map[string]fraction{}
		}
		s.exact[text] = fraction{a, b.n}
		return val{sym: text}
	}
	if a == b {
		return num(1)
	}
	d := s.polyOf(b)
	if len(d) != 1 {
		return val{}
	}
	if p, ok := dividePoly(s.polyOf(a), d[0]); ok {
		return s.valOf(p)
	}
	return val{}
}

// dividePoly divides each monomial; ok is false when one does not divide.
func dividePoly(p poly, d mono) (poly, bool) {
	out := make(poly, 0, len(p))
	for _, m := range p {
		if d.c == 0 || m.c%d.c != 0 {
			return nil, false
		}
		f := slices.Clone(m.f)
		for _, x := range d.f {
			i := slices.Index(f, x)
			if i < 0 {
				return nil, false
			}
			f = slices.Delete(f, i, i+1)
		}
		out = append(out, mono{m.c / d.c, f})
	}
	return normal(out)
}

// sign bounds a value, given that extents are never negative: low and high are the least and
// greatest sign it can have (-1, 0 or 1).
func (s *state) sign(v val) (low, high int) {
	low, high = -1, 1
	if v.known {
		x := 0
		if v.n > 0 {
			x = 1
		} else if v.n < 0 {
			x = -1
		}
		return x, x
	}
	if v.unknown() {
		return low, high
	}
	pos, neg, one := true, true, int64(0)
	for _, m := range s.polyOf(v) {
		pos, neg = pos && m.c > 0, neg && m.c < 0
		if len(m.f) == 0 {
			one = m.c
		}
	}
	if pos {
		low = 0
		if one > 0 {
			low = 1
		}
	}
	if neg {
		high = 0
		if one < 0 {
			high = -1
		}
	}
	return low, high
}

// product multiplies extents.
func (s *state) product(dims []onnx.Dim) val {
	v := num(1)
	for _, d := range dims {
		v = s.mul(v, ofDim(d))
	}
	return v
}
