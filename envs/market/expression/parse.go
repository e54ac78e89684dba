package expression

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Expr is a parsed expression. It does not change and may be shared.
type Expr struct {
	op    *operator // nil: a field or a number
	args  []*Expr
	n     int     // bars of the window
	param float64 // of the operator
	field string  // of a field
	value float64 // of a number
}

// condition says that the values are 0 and 1 for false and true.
func (e *Expr) condition() bool { return e.op != nil && e.op.condition }

// constant says that the expression is a number.
func (e *Expr) constant() bool { return e.op == nil && e.field == "" }

// String is the expression in one spelling: equal expressions have equal texts.
func (e *Expr) String() string {
	switch {
	case e.field != "":
		return "$" + e.field
	case e.op == nil:
		return strconv.FormatFloat(e.value, 'g', -1, 64)
	}
	var parts []string
	for _, a := range e.args {
		parts = append(parts, a.String())
	}
	for _, v := range e.op.written(e) {
		parts = append(parts, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return e.op.name + "(" + strings.Join(parts, ", ") + ")"
}

// Fields returns the names of the expression's fields, without $, sorted.
func (e *Expr) Fields() []string {
	var names []string
	if e.field != "" {
		names = append(names, e.field)
	}
	for _, a := range e.args {
		names = append(names, a.Fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Limits of what is accepted, so that a slip neither reserves gigabytes nor ends the program.
const (
	maxWindow = 100_000
	maxDepth  = 200
)

// Parse reads an expression. An error names the column, from 1, and what was expected there.
func Parse(text string) (*Expr, error) {
	p := &parser{text: text}
	e, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return e, nil
}

type parser struct {
	text  string
	at    int // of the next token
	token string
	start int // of token
	depth int
}

func (p *parser) errorf(format string, args ...any) error {
	column := utf8.RuneCountInString(p.text[:p.start]) + 1
	return fmt.Errorf("column %d: %s", column, fmt.Sprintf(format, args...))
}

func (p *parser) parse() (*Expr, error) {
	if err := p.next(); err != nil {
		return nil, err
	}
	e, err := p.comparison()
	if err != nil {
		return nil, err
	}
	if p.token != "" {
		return nil, p.errorf("expected an operator or the end, found %q", p.token)
	}
	if e.constant() {
		return nil, p.errorf("the expression is a number; expected one with fields such as $close")
	}
	return e, nil
}

// word says whether a rune may stand in a name.
func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// next reads a token: a name, $ and a name, a number or an operator; "" at the end.
func (p *parser) next() error {
	rest := strings.TrimLeft(p.text[p.at:], " \t\r\n")
	p.start = len(p.text) - len(rest)
	first, size := utf8.DecodeRuneInString(rest)
	n := size
	switch {
	case rest == "":
		n = 0
	case first == '$':
		n = len(rest) - len(strings.TrimLeftFunc(rest[1:], word))
	case unicode.IsDigit(first) || first == '.':
		n = number(rest)
	case word(first):
		n = len(rest) - len(strings.TrimLeftFunc(rest, word))
	default:
		for _, two := range []string{"**", ">=", "<=", "==", "!="} {
			if strings.HasPrefix(rest, two) {
				n = 2
			}
		}
		if n == size && !strings.ContainsRune("+-*/()&|<>,", first) {
			return p.errorf("unexpected %q", first)
		}
	}
	p.token = rest[:n]
	p.at = p.start + n
	return nil
}

// number is the length of the number at the beginning of a text.
func number(s string) int {
	digits := func(i int) int {
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
			i++
		}
		return i
	}
	n := max(digits(0), 1)
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if end := digits(m); end > m {
			n = end
		}
	}
	return n
}

// binary reads operands of a level that names of operators join, from the left.
func (p *parser) binary(operand func() (*Expr, error), names map[string]string) (*Expr, error) {
	left, err := operand()
	for err == nil && names[p.token] != "" {
		op, at := find(names[p.token]), p.start
		if err = p.next(); err != nil {
			break
		}
		var right *Expr
		if right, err = operand(); err != nil {
			break
		}
		if left, err = p.make(at, op, []*Expr{left, right}); err != nil {
			break
		}
		if op.condition && op.compares {
			break // a < b < c means something else in Python than it seems
		}
	}
	return left, err
}

// The levels of Python, loosest first.
var (
	relations = map[string]string{">": "Gt", ">=": "Ge", "<": "Lt", "<=": "Le", "==": "Eq", "!=": "Ne"}
	ors       = map[string]string{"|": "Or"}
	ands      = map[string]string{"&": "And"}
	additions = map[string]string{"+": "Add", "-": "Sub"}
	products  = map[string]string{"*": "Mul", "/": "Div"}
)

func (p *parser) comparison() (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("more than %d levels of parentheses", maxDepth)
	}
	defer func() { p.depth-- }()
	return p.binary(p.or, relations)
}
func (p *parser) or() (*Expr, error)      { return p.binary(p.and, ors) }
func (p *parser) and() (*Expr, error)     { return p.binary(p.sum, ands) }
func (p *parser) sum() (*Expr, error)     { return p.binary(p.product, additions) }
func (p *parser) product() (*Expr, error) { return p.binary(p.unary, products) }

func (p *parser) unary() (*Expr, error) {
	if p.token != "-" {
		return p.power()
	}
	at := p.start
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	if err := p.next(); err != nil {
		return nil, err
	}
	e, err := p.unary()
	if err != nil {
		return nil, err
	}
	return p.make(at, find("Mul"), []*Expr{{value: -1}, e})
}

func (p *parser) power() (*Expr, error) {
	base, err := p.primary()
	if err != nil || p.token != "**" {
		return base, err
	}
	at := p.start
	if err := p.next(); err != nil {
		return nil, err
	}
	exponent, err := p.unary()
	if err != nil {
		return nil, err
	}
	return p.make(at, find("Power"), []*Expr{base, exponent})
}

func (p *parser) primary() (*Expr, error) {
	token, at := p.token, p.start
	first, _ := utf8.DecodeRuneInString(token)
	switch {
	case token == "(":
		if err := p.next(); err != nil {
			return nil, err
		}
		e, err := p.comparison()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case first == '$':
		if len(token) == 1 {
			return nil, p.errorf("expected a name behind $")
		}
		return &Expr{field: token[1:]}, p.next()
	case unicode.IsDigit(first) || first == '.':
		v, err := strconv.ParseFloat(token, 64)
		if err != nil {
			return nil, p.errorf("%q is not a number", token)
		}
		return &Expr{value: v}, p.next()
	case token != "" && word(first):
		if err := p.next(); err != nil {
			return nil, err
		}
		return p.call(token, at)
	case token == "":
		return nil, p.errorf("expected a field, a number, an operator or a parenthesis, found the end")
	}
	return nil, p.errorf("expected a field, a number, an operator or a parenthesis, found %q", token)
}

func (p *parser) expect(token string) error {
	if p.token != token {
		found := strconv.Quote(p.token)
		if p.token == "" {
			found = "the end"
		}
		return p.errorf("expected %q, found %s", token, found)
	}
	return p.next()
}

// call reads the arguments of an operator.
func (p *parser) call(name string, at int) (*Expr, error) {
	op := find(name)
	if why := refused[name]; why != "" {
		p.start = at
		return nil, p.errorf("%s %s", name, why)
	}
	if op == nil {
		p.start = at
		return nil, p.errorf("unknown operator %q; known are %s, and fields begin with $", name, strings.Join(Operators(), ", "))
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var args []*Expr
	for p.token != ")" {
		e, err := p.comparison()
		if err != nil {
			return nil, err
		}
		args = append(args, e)
		if p.token != "," {
			break
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	return p.make(at, op, args)
}

// make applies an operator to its arguments, the numbers of window and parameter included.
func (p *parser) make(at int, op *operator, args []*Expr) (*Expr, error) {
	now := p.start
	p.start = at
	defer func() { p.start = now }()
	names := op.signature()
	if len(args) != len(names) {
		return nil, p.errorf("%s takes %d arguments (%s), found %d", op.name, len(names), strings.Join(names, ", "), len(args))
	}
	e := &Expr{op: op, args: args[:op.args:op.args]}
	for i, a := range e.args {
		if op.logical && !a.condition() {
			return nil, p.errorf("%s joins conditions such as $close > $open; argument %d, %s, is none", op.name, i+1, a)
		}
	}
	for i, a := range args[op.args:] {
		if !a.constant() {
			return nil, p.errorf("%s: %s must be a number, is %s", op.name, names[op.args+i], a)
		}
		e.param = a.value
		if i == 0 {
			if err := e.setWindow(a.value); err != nil {
				return nil, p.errorf("%s: %v", op.name, err)
			}
		}
	}
	if op.quantile && !(e.param >= 0 && e.param <= 1) {
		return nil, p.errorf("%s: %s must be between 0 and 1, is %v", op.name, names[2], e.param)
	}
	if op.elementwise != nil && !slices.ContainsFunc(e.args, func(a *Expr) bool { return !a.constant() }) {
		return &Expr{value: op.apply(e.args, func(a *Expr) float64 { return a.value })}, nil
	}
	return e, nil
}

// setWindow checks the number of bars v of a window and sets what the operator needs to know.
func (e *Expr) setWindow(v float64) error {
	if e.op.name == "EMA" {
		// The weight of a bar falls by decay from bar to bar.
		decay := 1 - 2/(v+1)
		if 0 < v && v < 1 {
			decay = 1 - v
		} else if v < 1 || v != math.Trunc(v) {
			return fmt.Errorf("expected a number of bars as N or, as the weight of the newest one, between 0 and 1, found %v", v)
		}
		e.param, e.n = v, 1
		if decay > 0 {
			e.n = int(math.Ceil(-26 * math.Ln2 / math.Log(decay)))
		}
		if e.n < 1 || e.n > maxWindow {
			return fmt.Errorf("expected a smaller N than %v: more than %d bars count", v, maxWindow)
		}
		return nil
	}
	switch {
	case v < 0:
		return fmt.Errorf("expected a positive N, found %v: a feature cannot look into the future", v)
	case v == 0:
		return fmt.Errorf("expected a positive N, found 0: a window that grows would make values depend on where the data begin")
	case v != math.Trunc(v) || v > maxWindow:
		return fmt.Errorf("expected a whole N of at most %d bars, found %v", maxWindow, v)
	case int(v) < e.op.least:
		return fmt.Errorf("expected an N of at least %d, found %v", e.op.least, v)
	}
	e.n = int(v)
	if e.op.shift {
		e.n++ // the bar of N bars ago and what follows it
	}
	return nil
}
