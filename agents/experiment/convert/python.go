package convert

import (
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
)

// name is a name in Python such as nn.Tanh.
type name string

// argument is a key of a dict, or a named argument of a call of dict, with its value.
type argument struct {
	name  string
	value any
}

// literal is a value of Python's: dict(a=1, b=[2, 3]) and {'a': 1} are []argument, lists and tuples
// []any, numbers float64, and True, False and None bool and nil; other words are names. Nothing
// else is understood, and nothing is evaluated.
func literal(text string) (any, error) {
	p := &parser{}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanChars | scanner.ScanStrings
	p.Error = func(*scanner.Scanner, string) {} // Python's 'text' is no character of Go's.
	p.next()
	v, err := p.value(0)
	if err == nil && p.token != scanner.EOF {
		err = p.unexpected("the end")
	}
	return v, err
}

type parser struct {
	scanner.Scanner
	token rune
}

func (p *parser) next() { p.token = p.Scan() }

func (p *parser) unexpected(want string) error {
	if p.token == scanner.EOF {
		return fmt.Errorf("expected %s, found the end", want)
	}
	return fmt.Errorf("expected %s at %q, character %d", want, p.TokenText(), p.Pos().Offset)
}

func (p *parser) value(depth int) (any, error) {
	text := p.TokenText()
	switch {
	case depth > 16:
		return nil, fmt.Errorf("nested deeper than 16 levels")
	case p.token == '[' || p.token == '(':
		end := map[rune]rune{'[': ']', '(': ')'}[p.token]
		list := []any{}
		err := p.list(end, func() error {
			v, err := p.value(depth + 1)
			list = append(list, v)
			return err
		})
		return list, err
	case p.token == '{':
		return p.dict('}', func() (string, error) {
			key, ok := p.quoted()
			if p.next(); !ok || p.token != ':' {
				return "", p.unexpected("'key': value")
			}
			return key, nil
		}, depth)
	case p.token == '-' || p.token == '+':
		p.next()
		v, err := p.value(depth + 1)
		f, ok := v.(float64)
		if err == nil && !ok {
			err = fmt.Errorf("expected a number after %s", text)
		}
		if text == "-" {
			f = -f
		}
		return f, err
	case p.token == scanner.Int || p.token == scanner.Float:
		p.next()
		return strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	case p.token == scanner.Ident:
		p.next()
		if text == "dict" && p.token == '(' {
			return p.dict(')', func() (string, error) {
				key, ok := p.TokenText(), p.token == scanner.Ident
				if p.next(); !ok || p.token != '=' {
					return "", p.unexpected("name=value")
				}
				return key, nil
			}, depth)
		}
		for p.token == '.' {
			p.next()
			text += "." + p.TokenText()
			p.next()
		}
		switch text {
		case "True", "False":
			return text == "True", nil
		case "None":
			return nil, nil
		}
		return name(text), nil
	}
	if s, ok := p.quoted(); ok {
		p.next()
		return s, nil
	}
	return nil, p.unexpected("a value")
}

// quoted returns the present token's text without its quotes.
func (p *parser) quoted() (string, bool) {
	text := p.TokenText()
	if p.token != scanner.Char && p.token != scanner.String || len(text) < 2 || text[len(text)-1] != text[0] || strings.Contains(text, `\`) {
		return "", false
	}
	return text[1 : len(text)-1], true
}

// dict reads arguments; key reads a key up to what stands before the value.
func (p *parser) dict(end rune, key func() (string, error), depth int) (any, error) {
	list := []argument{}
	err := p.list(end, func() error {
		k, err := key()
		if err != nil {
			return err
		}
		p.next()
		v, err := p.value(depth + 1)
		list = append(list, argument{k, v})
		return err
	})
	return list, err
}

// list reads items with commas between them, from the opening bracket to the closing one.
func (p *parser) list(end rune, item func() error) error {
	p.next()
	for p.token != end {
		if err := item(); err != nil {
			return err
		}
		if p.token == ',' {
			p.next()
		} else if p.token != end {
			return p.unexpected("a comma or " + string(end))
		}
	}
	p.next()
	return nil
}
