package oip

import (
	"math"
	"strconv"
)

// param is the value of a parameter: a boolean, a number or a string.
type param struct {
	kind byte // 'b', 'i', 'f', 's'; 0 for anything else, which no parameter here takes
	b    bool
	i    int64
	text string
}

// params reads an object of parameters; each is given to set, which returns an error for a value it
// cannot take.
func (s *scanner) params(set func(name []byte, p param) error) error {
	if err := s.open('{'); err != nil {
		return err
	}
	for n := 0; ; {
		if ok, err := s.more('}', &n); err != nil || !ok {
			return err
		}
		name, err := s.key()
		if err != nil {
			return err
		}
		var p param
		switch s.peek() {
		case '"':
			text, err := s.str()
			if err != nil {
				return err
			}
			p = param{kind: 's', text: string(text)}
		case 't', 'f':
			v, err := s.boolean()
			if err != nil {
				return err
			}
			p = param{kind: 'b', b: v}
		case '{', '[', 'n':
			if _, err := s.skip(); err != nil {
				return err
			}
		default:
			d, err := s.number()
			if err != nil {
				return err
			}
			p = param{kind: 'f', text: string(d.text)}
			if v, err := d.signed(64, ""); err == nil {
				p.kind, p.i = 'i', v
			} else if _, err := d.unsigned(64, ""); err == nil {
				p.kind, p.i = 'i', math.MaxInt64
			}
		}
		if err := set(name, p); err != nil {
			return err
		}
	}
}

// boolean is the value of a parameter that must be one.
func (p param) boolean(name string) (bool, error) {
	if p.kind != 'b' {
		return false, bad("parameter %s: expected true or false", name)
	}
	return p.b, nil
}

// number is the value of a parameter that is one.
func (p param) number(name string) (float64, error) {
	x, err := strconv.ParseFloat(p.text, 64)
	if p.kind != 'i' && p.kind != 'f' || err != nil {
		return 0, bad("parameter %s: expected a number", name)
	}
	return x, nil
}

// size is the value of a parameter that counts something.
func (p param) size(name string) (int, error) {
	if p.kind != 'i' || p.i < 0 || p.i > math.MaxInt {
		return 0, bad("parameter %s: expected an integer of at least 0", name)
	}
	return int(p.i), nil
}
