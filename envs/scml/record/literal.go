package record

import (
	"errors"
	"fmt"
	"strconv"
)

// literal reads Python literals as str and repr write them: numbers, strings, None, True, False,
// lists, tuples, sets and dictionaries, and what looks like a call or an enumeration's member, of
// which nothing is executed.
type literal struct {
	text string
	at   int
}

var errShort = errors.New("the literal ends too early")

func (l *literal) fail(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", l.at+1, fmt.Sprintf(format, args...))
}

// space skips blanks.
func (l *literal) space() {
	for l.at < len(l.text) {
		switch l.text[l.at] {
		case ' ', '\n', '\t', '\r':
			l.at++
		default:
			return
		}
	}
}

// peek is the next character that is no blank, 0 at the end.
func (l *literal) peek() byte {
	l.space()
	if l.at == len(l.text) {
		return 0
	}
	return l.text[l.at]
}

// take takes a character, which must come next.
func (l *literal) take(c byte) error {
	if p := l.peek(); p == 0 {
		return errShort
	} else if p != c {
		return l.fail("%q, expected %q", p, c)
	}
	l.at++
	return nil
}

// more reports whether another element of a list, or whatever ends with a character, follows; after
// the last one it has taken the end. n counts elements.
func (l *literal) more(end byte, n *int) (bool, error) {
	c := l.peek()
	if c == end {
		l.at++
		return false, nil
	}
	if *n > 0 {
		if err := l.take(','); err != nil {
			return false, err
		}
		if l.peek() == end { // (1,)
			l.at++
			return false, nil
		}
	}
	if l.peek() == 0 {
		return false, errShort
	}
	*n++
	return true, nil
}

// word takes a name, such as None or numpy.int64.
func (l *literal) word() string {
	l.space()
	from := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		if c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		l.at++
	}
	return l.text[from:l.at]
}

// none takes None, if it comes next.
func (l *literal) none() bool {
	l.space()
	from := l.at
	if l.word() == "None" {
		return true
	}
	l.at = from
	return false
}

// number takes a number, also as numpy writes it: np.int64(3).
func (l *literal) number() (float64, error) {
	c := l.peek()
	if c == 0 {
		return 0, errShort
	}
	if c|0x20 >= 'a' && c|0x20 <= 'z' {
		switch w := l.word(); w {
		case "nan", "inf", "True", "False":
			return 0, l.fail("%s, expected a number", w)
		default:
			if l.peek() != '(' {
				return 0, l.fail("%s, expected a number", w)
			}
			l.at++
			x, err := l.number()
			if err == nil {
				err = l.take(')')
			}
			return x, err
		}
	}
	from := l.at
	for l.at < len(l.text) {
		c := l.text[l.at]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c|0x20 != 'e' {
			break
		}
		l.at++
	}
	// Most numbers are small and whole.
	if n := l.at - from; n > 0 && n < 10 {
		x, whole := 0, true
		for _, c := range []byte(l.text[from:l.at]) {
			if c < '0' || c > '9' {
				whole = false
				break
			}
			x = 10*x + int(c-'0')
		}
		if whole {
			return float64(x), nil
		}
	}
	x, err := strconv.ParseFloat(l.text[from:l.at], 64)
	if err != nil {
		return 0, l.fail("%.20q, expected a number", l.text[from:])
	}
	return x, nil
}

// whole takes a whole number.
func (l *literal) whole() (int, error) {
	x, err := l.number()
	if err == nil && x != float64(int(x)) {
		err = l.fail("%v, expected a whole number", x)
	}
	return int(x), err
}

// str takes a string. Only one with escapes is copied.
func (l *literal) str() (string, error) {
	c := l.peek()
	if c != '\'' && c != '"' {
		if c == 0 {
			return "", errShort
		}
		return "", l.fail("%q, expected a string", c)
	}
	from := l.at + 1
	for i := from; i < len(l.text); i++ {
		switch l.text[i] {
		case c:
			l.at = i + 1
			return l.text[from:i], nil
		case '\\':
			return l.escaped(from, i, c)
		}
	}
	return "", errShort
}

// escaped takes the rest of a string that has a backslash at i.
func (l *literal) escaped(from, i int, end byte) (string, error) {
	out := append([]byte(nil), l.text[from:i]...)
	for rest := l.text[i:]; rest != ""; {
		if rest[0] == end {
			l.at = len(l.text) - len(rest) + 1
			return string(out), nil
		}
		r, _, tail, err := strconv.UnquoteChar(rest, 0)
		if err != nil {
			// Python escapes quotes that Go does not.
			if len(rest) < 2 {
				return "", errShort
			}
			r, tail = rune(rest[1]), rest[2:]
		}
		out = append(out, string(r)...)
		rest = tail
	}
	return "", errShort
}

// depth bounds nesting.
const depth = 64

// skip takes whatever comes next.
func (l *literal) skip() error { return l.skipped(depth) }

func (l *literal) skipped(depth int) error {
	if depth == 0 {
		return l.fail("it is nested too deeply")
	}
	switch c := l.peek(); {
	case c == 0:
		return errShort
	case c == '\'' || c == '"':
		_, err := l.str()
		return err
	case c == '[' || c == '(' || c == '{':
		l.at++
		return l.elements(c+ends[c], depth)
	case c == '<': // <Response.ACCEPT: 0>
		for l.at < len(l.text) {
			l.at++
			if l.text[l.at-1] == '>' {
				return nil
			}
		}
		return errShort
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		_, err := l.number()
		return err
	}
	if l.word() == "" {
		return l.fail("%q is no literal", l.text[l.at])
	}
	if l.at < len(l.text) && l.text[l.at] == '(' {
		l.at++
		return l.elements(')', depth)
	}
	return nil
}

// ends has the distance from a bracket to the one that closes it.
var ends = map[byte]byte{'[': 2, '(': 1, '{': 2}

// elements skips what stands between brackets, with colons and names of arguments.
func (l *literal) elements(end byte, depth int) error {
	for n := 0; ; {
		ok, err := l.more(end, &n)
		if !ok {
			return err
		}
		if err := l.skipped(depth - 1); err != nil {
			return err
		}
		if c := l.peek(); c == ':' || c == '=' {
			l.at++
			if err := l.skipped(depth - 1); err != nil {
				return err
			}
		}
	}
}
