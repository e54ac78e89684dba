package serve

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ParseConfig reads config.pbtxt, Triton's model configuration in protobuf's text format. See
// [ParseConfigJSON] for what becomes of fields that this server does not have.
func ParseConfig(name string, text []byte) (Config, error) {
	p := &pbtxt{text: string(text), line: 1}
	m, err := p.message("", 0)
	if err != nil {
		return Config{}, invalid("config.pbtxt:%d: %w", p.line, err)
	}
	c, err := m.config(name)
	if err != nil {
		return Config{}, invalid("config.pbtxt: %w", err)
	}
	return c, nil
}

// pbtxt reads protobuf's text format without a schema.
type pbtxt struct {
	text string
	line int
}

// skip passes blanks and comments.
func (p *pbtxt) skip() {
	for p.text != "" {
		switch p.text[0] {
		case '\n':
			p.line++
			p.text = p.text[1:]
		case ' ', '\t', '\r':
			p.text = p.text[1:]
		case '#':
			if i := strings.IndexByte(p.text, '\n'); i >= 0 {
				p.text = p.text[i:]
			} else {
				p.text = ""
			}
		default:
			return
		}
	}
}

func (p *pbtxt) peek() byte {
	p.skip()
	if p.text == "" {
		return 0
	}
	return p.text[0]
}

// accept passes one byte if it is the next.
func (p *pbtxt) accept(b byte) bool {
	if p.peek() != b {
		return false
	}
	p.text = p.text[1:]
	return true
}

// message reads fields up to the closing bracket, which is empty for the file.
func (p *pbtxt) message(end string, depth int) (message, error) {
	if depth > maxConfigDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxConfigDepth)
	}
	m := message{}
	for {
		next := p.peek()
		switch {
		case next == 0 && end == "":
			return m, nil
		case next == 0:
			return nil, fmt.Errorf("the file ends where %q is expected", end)
		case end != "" && next == end[0]:
			p.text = p.text[1:]
			return m, nil
		}
		name := p.word()
		if name == "" {
			return nil, fmt.Errorf("got %q, expected the name of a field", p.text[:1])
		}
		values, err := p.values(depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m[name] = append(m[name], values...)
		if !p.accept(',') {
			p.accept(';')
		}
	}
}

// values reads what follows a field's name.
func (p *pbtxt) values(depth int) ([]any, error) {
	colon := p.accept(':')
	if !p.accept('[') {
		v, err := p.value(colon, depth)
		return []any{v}, err
	}
	var list []any
	if p.accept(']') {
		return nil, nil
	}
	for {
		v, err := p.value(true, depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if p.accept(']') {
			return list, nil
		}
		if !p.accept(',') {
			return nil, errors.New("expected \",\" or \"]\" in a list")
		}
	}
}

func (p *pbtxt) value(scalar bool, depth int) (any, error) {
	switch next := p.peek(); {
	case next == '{':
		p.text = p.text[1:]
		return p.message("}", depth+1)
	case next == '<':
		p.text = p.text[1:]
		return p.message(">", depth+1)
	case !scalar:
		return nil, errors.New("expected \":\" and a value, or a message in braces")
	case next == '"' || next == '\'':
		var b strings.Builder
		for n := p.peek(); n == '"' || n == '\''; n = p.peek() { // adjacent strings are one
			s, err := p.quoted()
			if err != nil {
				return nil, err
			}
			b.WriteString(s)
		}
		return b.String(), nil
	}
	if w := p.word(); w != "" {
		return w, nil
	}
	return nil, errors.New("expected a value")
}

// word reads a name or a number.
func (p *pbtxt) word() string {
	p.skip()
	i := strings.IndexFunc(p.text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' || r == '+')
	})
	if i < 0 {
		i = len(p.text)
	}
	w := p.text[:i]
	p.text = p.text[i:]
	return w
}

func (p *pbtxt) quoted() (string, error) {
	quote := p.text[0]
	for i := 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '\n':
			return "", errors.New("a string goes over the end of the line")
		case quote:
			body := p.text[1:i]
			p.text = p.text[i+1:]
			if quote == '\'' {
				body = strings.ReplaceAll(strings.ReplaceAll(body, `\'`, `'`), `"`, `\"`)
			} else {
				body = strings.ReplaceAll(body, `\'`, `'`)
			}
			s, err := strconv.Unquote(`"` + body + `"`)
			if err != nil {
				return "", fmt.Errorf("string %q: %w", body, err)
			}
			return s, nil
		}
	}
	return "", errors.New("a string has no end")
}
