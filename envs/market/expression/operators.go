package expression

import (
	"math"
	"slices"
)

// operator is a row of the table of operators.
type operator struct {
	name string
	args int // expressions it is applied to

	// elementwise operators look at the values of one bar, of as many arguments as there are.
	elementwise func(a, b, c float64) float64
	condition   bool // gives 0 or 1
	compares    bool // two values
	logical     bool // takes conditions

	// over operators look at the last values of one argument, oldest first, pairs at those of two.
	// scratch is as long as the window.
	over     func(w []float64, param float64, scratch []float64) float64
	pairs    func(a, b []float64) float64
	shift    bool // N bars ago: nothing is given before there are so many
	quantile bool // has a parameter behind the window
	least    int  // bars of the smallest window
}

// windowed says whether the operator has a window.
func (o *operator) windowed() bool { return o.over != nil || o.pairs != nil }

// signature names the arguments.
func (o *operator) signature() []string {
	names := []string{"x", "y", "z"}[:o.args:o.args]
	if o.name == "If" {
		names = []string{"condition", "x", "y"}
	}
	if o.windowed() {
		names = append(names, "N")
	}
	if o.quantile {
		names = append(names, "quantile")
	}
	return names
}

// written are the numbers behind an operator's expressions.
func (o *operator) written(e *Expr) []float64 {
	switch {
	case o.quantile:
		return []float64{float64(e.n), e.param}
	case o.windowed():
		return []float64{e.param}
	}
	return nil
}

// apply computes an elementwise operator.
func (o *operator) apply(args []*Expr, value func(*Expr) float64) float64 {
	var v [3]float64
	for i, a := range args {
		v[i] = value(a)
	}
	return o.elementwise(v[0], v[1], v[2])
}

func unary(name string, f func(float64) float64) operator {
	return operator{name: name, args: 1, elementwise: func(a, _, _ float64) float64 { return f(a) }}
}

func binary(name string, f func(a, b float64) float64) operator {
	return operator{name: name, args: 2, elementwise: func(a, b, _ float64) float64 { return f(a, b) }}
}

func comparison(name string, f func(a, b float64) bool) operator {
	o := binary(name, func(a, b float64) float64 { return flag(f(a, b)) })
	o.condition, o.compares = true, true
	return o
}

func logical(name string, args int, f func(a, b bool) bool) operator {
	return operator{name: name, args: args, condition: true, logical: true, elementwise: func(a, b, _ float64) float64 { return flag(f(a != 0, b != 0)) }}
}

func window(name string, f func(w []float64, param float64, scratch []float64) float64) operator {
	return operator{name: name, args: 1, over: f, least: 1}
}

func plain(name string, f func(w []float64) float64) operator {
	return window(name, func(w []float64, _ float64, _ []float64) float64 { return f(w) })
}

func atLeast(n int, o operator) operator {
	o.least = n
	return o
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// either is f of two numbers, missing where one of them is.
func either(f func(a, b float64) float64) func(a, b float64) float64 {
	return func(a, b float64) float64 {
		if a != a || b != b {
			return math.NaN()
		}
		return f(a, b)
	}
}

// operators is every operator, Qlib's by name.
var operators = []operator{
	unary("Abs", math.Abs), unary("Log", math.Log),
	unary("Sign", func(a float64) float64 {
		if a == 0 || a != a {
			return a
		}
		return math.Copysign(1, a)
	}),
	binary("Add", func(a, b float64) float64 { return a + b }), binary("Sub", func(a, b float64) float64 { return a - b }),
	binary("Mul", func(a, b float64) float64 { return a * b }), binary("Div", func(a, b float64) float64 { return a / b }),
	binary("Power", math.Pow), binary("Greater", either(math.Max)), binary("Less", either(math.Min)),
	comparison("Gt", func(a, b float64) bool { return a > b }), comparison("Ge", func(a, b float64) bool { return a >= b }),
	comparison("Lt", func(a, b float64) bool { return a < b }), comparison("Le", func(a, b float64) bool { return a <= b }),
	comparison("Eq", func(a, b float64) bool { return a == b }), comparison("Ne", func(a, b float64) bool { return a != b }),
	logical("And", 2, func(a, b bool) bool { return a && b }), logical("Or", 2, func(a, b bool) bool { return a || b }),
	logical("Not", 1, func(a, _ bool) bool { return !a }),
	{name: "If", args: 3, elementwise: func(c, a, b float64) float64 {
		if c != 0 { // missing counts as true, as in numpy
			return a
		}
		return b
	}},
	{name: "Ref", args: 1, shift: true, least: 1, over: func(w []float64, _ float64, _ []float64) float64 { return w[0] }},
	{name: "Delta", args: 1, shift: true, least: 1, over: func(w []float64, _ float64, _ []float64) float64 { return w[len(w)-1] - w[0] }},
	plain("Sum", sum), plain("Mean", mean), plain("Std", std), plain("Var", variance), atLeast(3, plain("Skew", skew)), atLeast(4, plain("Kurt", kurt)),
	plain("Max", largest), plain("Min", smallest), plain("IdxMax", func(w []float64) float64 { return first(w, func(a, b float64) bool { return a > b }) }),
	plain("IdxMin", func(w []float64) float64 { return first(w, func(a, b float64) bool { return a < b }) }),
	{name: "Quantile", args: 1, over: quantile, quantile: true, least: 1},
	window("Med", func(w []float64, _ float64, scratch []float64) float64 { return quantile(w, 0.5, scratch) }),
	plain("Mad", mad), plain("Rank", rank), plain("Count", count), plain("Slope", slope), plain("Rsquare", rsquare), plain("Resi", resi), plain("WMA", wma),
	window("EMA", ema),
	{name: "Corr", args: 2, pairs: corr, least: 1}, {name: "Cov", args: 2, pairs: cov, least: 1},
}

// refused are operators of Qlib that are not here, with the reason.
var refused = map[string]string{
	"ChangeInstrument": "looks at another instrument, which an asset's features cannot",
	"Mask":             "looks at another instrument, which an asset's features cannot",
	"TResample":        "changes the frequency; prepare bars of that frequency instead",
	"P":                "reads Qlib's point-in-time store; join such values as columns of the data",
	"PRef":             "reads Qlib's point-in-time store; join such values as columns of the data",
}

// find returns the operator of this name, or nil.
func find(name string) *operator {
	if i := slices.IndexFunc(operators, func(o operator) bool { return o.name == name }); i >= 0 {
		return &operators[i]
	}
	return nil
}

// Operators returns the names of all operators in the order of the table.
func Operators() []string {
	names := make([]string, len(operators))
	for i := range operators {
		names[i] = operators[i].name
	}
	return names
}
