package autodiff

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// contribRules serve operators of com.microsoft that ONNX Runtime's optimiser writes into models it
// saves. Each is replaced by standard operators.
var contribRules = []Rule{
	{Op: "FusedMatMul", Domain: onnx.DomainMS, Versions: []int{1}, Expand: expandFusedMatMul},
	{Op: "Gelu", Domain: onnx.DomainMS, Versions: []int{1}, Expand: expandMSGelu},
	{Op: "BiasGelu", Domain: onnx.DomainMS, Versions: []int{1}, Expand: expandMSGelu},
	{Op: "FastGelu", Domain: onnx.DomainMS, Versions: []int{1}, Expand: expandFastGelu},
	{Op: "QuickGelu", Domain: onnx.DomainMS, Versions: []int{1}, Expand: expandQuickGelu},
}

// expandFusedMatMul: alpha · A'·B', the last two axes transposed where asked and there are two. Swapped batch axes,
// which its relatives for attention have, are refused.
func expandFusedMatMul(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	if n.Int("transBatchA", 0) != 0 || n.Int("transBatchB", 0) != 0 {
		c.Fail("transposed batch axes are not supported")
		return nil, c.b.Err()
	}
	a, b := n.In(0), n.In(1)
	if n.Int("transA", 0) != 0 && c.Rank(a) > 1 {
		a = c.swapLast(a)
	}
	if n.Int("transB", 0) != 0 && c.Rank(b) > 1 {
		b = c.swapLast(b)
	}
	return []onnx.Value{c.Scale(c.MatMul(a, b), float64(n.Float("alpha", 1)))}, nil
}

// biased adds the optional second input.
func biased(c *Context, n *onnx.Node) onnx.Value {
	if n.In(1) == "" {
		return n.In(0)
	}
	return c.Add(n.In(0), n.In(1))
}

func expandMSGelu(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := biased(c, n)
	cdf := c.Shift(c.Scale(c.Unary("Erf", c.Scale(x, 1/math.Sqrt2)), 0.5), 0.5)
	return []onnx.Value{c.Mul(x, cdf)}, nil
}

func expandFastGelu(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := biased(c, n)
	inner := c.Mul(x, c.Shift(c.Scale(c.Square(x), geluScale*geluCubic), geluScale))
	return []onnx.Value{c.Mul(x, c.Shift(c.Scale(c.Unary("Tanh", inner), 0.5), 0.5))}, nil
}

func expandQuickGelu(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := n.In(0)
	return []onnx.Value{c.Mul(x, c.Unary("Sigmoid", c.Scale(x, float64(n.Float("alpha", 1.702)))))}, nil
}
