package layer

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The methods of this file append one operator, or next to none. Values are named by what they are.

// Add appends a + b.
func (g *Graph) Add(a, b onnx.Value) onnx.Value { return g.Op("Add", []onnx.Value{a, b}) }

// Sub appends a − b.
func (g *Graph) Sub(a, b onnx.Value) onnx.Value { return g.Op("Sub", []onnx.Value{a, b}) }

// Mul appends a · b, element by element.
func (g *Graph) Mul(a, b onnx.Value) onnx.Value { return g.Op("Mul", []onnx.Value{a, b}) }

// Div appends a / b.
func (g *Graph) Div(a, b onnx.Value) onnx.Value { return g.Op("Div", []onnx.Value{a, b}) }

// Min appends the smaller of a and b.
func (g *Graph) Min(a, b onnx.Value) onnx.Value { return g.Op("Min", []onnx.Value{a, b}) }

// Max appends the larger of a and b.
func (g *Graph) Max(a, b onnx.Value) onnx.Value { return g.Op("Max", []onnx.Value{a, b}) }

// Neg appends −x.
func (g *Graph) Neg(x onnx.Value) onnx.Value { return g.Op("Neg", []onnx.Value{x}) }

// Exp appends eˣ.
func (g *Graph) Exp(x onnx.Value) onnx.Value { return g.Op("Exp", []onnx.Value{x}) }

// Square appends x².
func (g *Graph) Square(x onnx.Value) onnx.Value { return g.Mul(x, x) }

// MatMul appends a matrix product.
func (g *Graph) MatMul(a, b onnx.Value) onnx.Value { return g.Op("MatMul", []onnx.Value{a, b}) }

// Scale appends s·x for a number s.
func (g *Graph) Scale(x onnx.Value, s float64) onnx.Value {
	if s == 1 {
		return x
	}
	return g.Mul(x, g.Float(s))
}

// Shift appends x + s for a number s.
func (g *Graph) Shift(x onnx.Value, s float64) onnx.Value {
	if s == 0 {
		return x
	}
	return g.Add(x, g.Float(s))
}

// Clip appends min(max(x, low), high).
func (g *Graph) Clip(x onnx.Value, low, high float64) onnx.Value {
	return g.Op("Clip", []onnx.Value{x, g.Float(low), g.Float(high)})
}

// Float returns a number as a constant.
func (g *Graph) Float(v float64) onnx.Value { return g.s.b.Float(float32(v)) }

// Ints returns a list of integers as a constant.
func (g *Graph) Ints(v ...int) onnx.Value { return g.s.b.Ints(v...) }

// Const returns a tensor as a constant. Constants are no parameters.
func (g *Graph) Const(t *tensor.Tensor) onnx.Value { return g.s.b.Const(t) }

// Reshape appends a reshape; one extent may be −1, and 0 keeps that of x.
func (g *Graph) Reshape(x onnx.Value, shape ...int) onnx.Value {
	return g.Op("Reshape", []onnx.Value{x, g.Ints(shape...)})
}

// Transpose appends a permutation of axes.
func (g *Graph) Transpose(x onnx.Value, perm ...int) onnx.Value {
	return g.Op("Transpose", []onnx.Value{x}, onnx.AttrInts("perm", perm...))
}

// Concat appends a concatenation; a single value is returned as it is.
func (g *Graph) Concat(axis int, v ...onnx.Value) onnx.Value {
	if len(v) == 1 {
		return v[0]
	}
	return g.Op("Concat", v, onnx.AttrInt("axis", axis))
}

// Slice appends the elements [from, to) of an axis.
func (g *Graph) Slice(x onnx.Value, axis, from, to int) onnx.Value {
	return g.Op("Slice", []onnx.Value{x, g.Ints(from), g.Ints(to), g.Ints(axis)})
}

// Split appends a split into parts of the given sizes.
func (g *Graph) Split(x onnx.Value, axis int, sizes ...int) []onnx.Value {
	if len(sizes) == 1 {
		return []onnx.Value{x}
	}
	return g.OpN("Split", len(sizes), []onnx.Value{x, g.Ints(sizes...)}, onnx.AttrInt("axis", axis))
}

// Unsqueeze appends axes of extent 1.
func (g *Graph) Unsqueeze(x onnx.Value, axes ...int) onnx.Value {
	return g.Op("Unsqueeze", []onnx.Value{x, g.Ints(axes...)})
}

// Squeeze removes axes of extent 1.
func (g *Graph) Squeeze(x onnx.Value, axes ...int) onnx.Value {
	return g.Op("Squeeze", []onnx.Value{x, g.Ints(axes...)})
}

// Sum appends the sum over axes, which are dropped.
func (g *Graph) Sum(x onnx.Value, axes ...int) onnx.Value {
	return g.Op("ReduceSum", []onnx.Value{x, g.Ints(axes...)}, onnx.AttrInt("keepdims", 0))
}

// Mean appends the mean over axes, which are dropped.
func (g *Graph) Mean(x onnx.Value, axes ...int) onnx.Value {
	return g.Op("ReduceMean", []onnx.Value{x, g.Ints(axes...)}, onnx.AttrInt("keepdims", 0))
}

// Dot appends Σ a·b over all elements, a scalar. With one weight per sample it is the loss of a
// batch.
func (g *Graph) Dot(a, b onnx.Value) onnx.Value {
	return g.Op("ReduceSum", []onnx.Value{g.Mul(a, b)}, onnx.AttrInt("keepdims", 0))
}

// Where appends an element-wise choice.
func (g *Graph) Where(cond, a, b onnx.Value) onnx.Value {
	return g.Op("Where", []onnx.Value{cond, a, b})
}

// activations lists the functions that a configuration can name and the gain that suits them.
var activations = map[string]struct {
	gain  float64
	build func(g *Graph, x onnx.Value) onnx.Value
}{
	"relu":     {GainReLU, unary("Relu")},
	"tanh":     {GainTanh, unary("Tanh")},
	"sigmoid":  {1, unary("Sigmoid")},
	"elu":      {GainReLU, unary("Elu")},
	"softplus": {1, unary("Softplus")},
	"silu":     {GainReLU, func(g *Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.Op("Sigmoid", []onnx.Value{x})) }},
	"gelu":     {GainReLU, gelu},
	"identity": {1, func(_ *Graph, x onnx.Value) onnx.Value { return x }},
}

func unary(op string) func(*Graph, onnx.Value) onnx.Value {
	return func(g *Graph, x onnx.Value) onnx.Value { return g.Op(op, []onnx.Value{x}) }
}

// gelu is ½·x·(1 + erf(x/√2)), written out because the operator exists from opset 20 on; ONNX
// Runtime fuses it.
func gelu(g *Graph, x onnx.Value) onnx.Value {
	e := g.Op("Erf", []onnx.Value{g.Div(x, g.Float(1.4142135623730951))})
	return g.Scale(g.Mul(x, g.Shift(e, 1)), 0.5)
}

// Activations lists the names that [Graph.Activate] knows, sorted.
func Activations() []string {
	var names []string
	for n := range activations {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Gain returns the gain that keeps the size of activations through layers with this function: √2
// for relu and its kind, 5/3 for tanh, 1 otherwise. PPO's implementations use √2 for tanh too, and
// say so where they do.
func Gain(activation string) float64 { return activations[activation].gain }

// Activate appends an activation by name.
func (g *Graph) Activate(name string, x onnx.Value) onnx.Value {
	a, ok := activations[name]
	if !ok {
		g.Failf("activation %q is unknown; known are %v", name, Activations())
		return x
	}
	return a.build(g, x)
}
