package oip

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deep lists and objects of JSON may lie within each other.
const MaxDepth = 64

// scanner walks over strict JSON (RFC 8259, UTF-8) without building values. Every method first
// skips white space; errors carry the byte they happened at.
type scanner struct {
	b     []byte
	i     int
	depth int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("JSON at byte %d: %s", s.i, fmt.Sprintf(format, args...))
}

// got describes the next byte.
func (s *scanner) got() string {
	if s.i >= len(s.b) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.b[s.i:])
	return fmt.Sprintf("%q", r)
}

// peek returns the next byte that is not white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		c := s.b[s.i]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.i++
	}
	return 0
}

// open enters an object ('{') or a list ('[').
func (s *scanner) open(c byte) error {
	if s.peek() != c {
		what := "an object"
		if c == '[' {
			what = "a list"
		}
		return s.errorf("expected %s, got %s", what, s.got())
	}
	if s.depth++; s.depth > MaxDepth {
		return s.errorf("lists and objects deeper than %d", MaxDepth)
	}
	s.i++
	return nil
}

// more reports whether another member follows, and leaves the object or list when none does. n
// counts members and begins at 0.
func (s *scanner) more(end byte, n *int) (bool, error) {
	c := s.peek()
	if c == end {
		s.i++
		s.depth--
		return false, nil
	}
	if *n > 0 {
		if c != ',' {
			return false, s.errorf("expected ',' or %q, got %s", end, s.got())
		}
		s.i++
	}
	*n++
	return true, nil
}

// key reads the name of a member and the colon.
func (s *scanner) key() ([]byte, error) {
	k, err := s.str()
	if err != nil {
		return nil, err
	}
	if s.peek() != ':' {
		return nil, s.errorf("expected ':', got %s", s.got())
	}
	s.i++
	return k, nil
}

// str reads a string: a view of the text where it has no escapes.
func (s *scanner) str() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.errorf("expected a string, got %s", s.got())
	}
	from := s.i
	escaped, ascii := false, true
	for j := from + 1; j < len(s.b); j++ {
		switch c := s.b[j]; {
		case c == '"':
			text := s.b[from+1 : j]
			if !ascii && !utf8.Valid(text) {
				return nil, s.errorf("a string that is not UTF-8")
			}
			if escaped {
				var v string
				if err := json.Unmarshal(s.b[from:j+1], &v); err != nil {
					return nil, s.errorf("a string with an escape that JSON does not have")
				}
				text = []byte(v)
			}
			s.i = j + 1
			return text, nil
		case c == '\\':
			escaped = true
			j++
		case c < ' ':
			s.i = j
			return nil, s.errorf("a control character in a string")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.i = len(s.b)
	return nil, s.errorf("a string without an end")
}

// boolean reads true or false.
func (s *scanner) boolean() (bool, error) {
	s.peek()
	switch {
	case s.literal("true"):
		return true, nil
	case s.literal("false"):
		return false, nil
	}
	return false, s.errorf("expected true or false, got %s", s.got())
}

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return false
	}
	s.i += len(word)
	return true
}

// skip reads any value and returns its text.
func (s *scanner) skip() ([]byte, error) {
	c := s.peek()
	from := s.i
	var err error
	switch {
	case c == '{':
		if err = s.open('{'); err != nil {
			return nil, err
		}
		for n := 0; ; {
			if ok, err := s.more('}', &n); err != nil || !ok {
				return s.b[from:s.i], err
			}
			if _, err = s.key(); err != nil {
				return nil, err
			}
			if _, err = s.skip(); err != nil {
				return nil, err
			}
		}
	case c == '[':
		if err = s.open('['); err != nil {
			return nil, err
		}
		for n := 0; ; {
			if ok, err := s.more(']', &n); err != nil || !ok {
				return s.b[from:s.i], err
			}
			if _, err = s.skip(); err != nil {
				return nil, err
			}
		}
	case c == '"':
		_, err = s.str()
	case c == 't' || c == 'f':
		_, err = s.boolean()
	case c == 'n':
		if !s.literal("null") {
			err = s.errorf("expected a value, got %s", s.got())
		}
	default:
		_, err = s.number()
	}
	if err != nil {
		return nil, err
	}
	return s.b[from:s.i], nil
}

// end checks that only white space is left.
func (s *scanner) end() error {
	if s.peek() != 0 || s.i < len(s.b) {
		return s.errorf("expected the end, got %s", s.got())
	}
	return nil
}
