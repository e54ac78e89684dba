package autodiff

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

var elementwiseRules = []Rule{
	{Op: "Abs", Versions: []int{6, 13}, VJP: local(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Sign(x) })},
	{Op: "Neg", Versions: []int{6, 13}, VJP: vjpNeg},
	{Op: "Reciprocal", Versions: []int{6, 13}, VJP: vjpReciprocal},
	{Op: "Exp", Versions: []int{6, 13}, VJP: local(func(_ *Context, _, y onnx.Value) onnx.Value { return y })},
	{Op: "Log", Versions: []int{6, 13}, VJP: over(func(_ *Context, x, _ onnx.Value) onnx.Value { return x })},
	{Op: "Sqrt", Versions: []int{6, 13}, VJP: over(func(c *Context, _, y onnx.Value) onnx.Value { return c.Scale(y, 2) })},
	{Op: "Erf", Versions: []int{9, 13}, VJP: local(dErf)},
	{Op: "Sin", Versions: []int{7, 22}, VJP: local(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Unary("Cos", x) })},
	{Op: "Cos", Versions: []int{7, 22}, VJP: local(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Neg(c.Unary("Sin", x)) })},
	{Op: "Tan", Versions: []int{7, 22}, VJP: local(func(c *Context, _, y onnx.Value) onnx.Value { return c.Shift(c.Square(y), 1) })},
	{Op: "Asin", Versions: []int{7, 22}, VJP: over(func(c *Context, x, _ onnx.Value) onnx.Value { return c.rootOneMinusSquare(x) })},
	{Op: "Acos", Versions: []int{7, 22}, VJP: over(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Neg(c.rootOneMinusSquare(x)) })},
	{Op: "Atan", Versions: []int{7, 22}, VJP: over(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Shift(c.Square(x), 1) })},
	{Op: "Sinh", Versions: []int{9, 22}, VJP: local(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Unary("Cosh", x) })},
	{Op: "Cosh", Versions: []int{9, 22}, VJP: local(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Unary("Sinh", x) })},
	{Op: "Asinh", Versions: []int{9, 22}, VJP: over(func(c *Context, x, _ onnx.Value) onnx.Value { return c.Unary("Sqrt", c.Shift(c.Square(x), 1)) })},
	{Op: "Acosh", Versions: []int{9, 22}, VJP: over(dAcosh)},
	{Op: "Atanh", Versions: []int{9, 22}, VJP: over(func(c *Context, x, _ onnx.Value) onnx.Value { return c.oneMinusSquare(x) })},
}

// local makes the rule of a function of one input, element by element, from its derivative: ∂x = g
// · d(x, y).
func local(d func(c *Context, x, y onnx.Value) onnx.Value) VJP {
	return func(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
		return []onnx.Value{c.Mul(g[0], d(c, n.In(0), n.Out(0)))}, nil
	}
}

// over is local for derivatives that are a reciprocal: ∂x = g / r(x, y).
func over(r func(c *Context, x, y onnx.Value) onnx.Value) VJP {
	return func(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
		return []onnx.Value{c.Div(g[0], r(c, n.In(0), n.Out(0)))}, nil
	}
}

func vjpNeg(c *Context, _ *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return []onnx.Value{c.Neg(g[0])}, nil
}

// vjpReciprocal: ∂x = −g·y².
func vjpReciprocal(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	return []onnx.Value{c.Neg(c.Mul(g[0], c.Square(n.Out(0))))}, nil
}

// dErf = 2/√π · exp(−x²).
func dErf(c *Context, x, _ onnx.Value) onnx.Value {
	return c.Scale(c.Unary("Exp", c.Neg(c.Square(x))), 2/math.Sqrt(math.Pi))
}

// dAcosh is 1 over the derivative of acosh, √(x−1)·√(x+1): near 1 this keeps the digits that x²−1
// loses.
func dAcosh(c *Context, x, _ onnx.Value) onnx.Value {
	return c.Unary("Sqrt", c.Mul(c.Shift(x, -1), c.Shift(x, 1)))
}

// oneMinusSquare emits (1−x)(1+x), which keeps the digits that 1 − x² loses near ±1.
func (c *Context) oneMinusSquare(x onnx.Value) onnx.Value {
	one := c.Scalar(x, 1)
	return c.Mul(c.Sub(one, x), c.Add(one, x))
}

func (c *Context) rootOneMinusSquare(x onnx.Value) onnx.Value {
	return c.Unary("Sqrt", c.oneMinusSquare(x))
}
