package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

var dropoutRules = []Rule{
	{Op: "Dropout", Versions: []int{7, 10, 12, 13, 22}, VJP: vjpDropout},
}

// vjpDropout: in training the gradient is g·mask/(1 − ratio) with the mask that the forward node
// drew, which it is asked for; in inference it is g.
func vjpDropout(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	if g[0] == "" {
		return nil, nil
	}
	training := n.In(2)
	known := c.Known
	if training == "" || known(training) != nil && !known(training).Bools()[0] {
		return g[:1], nil
	}
	kept := c.Scalar(g[0], 0.5)
	if r := n.In(1); r != "" {
		kept = c.Sub(c.Scalar(g[0], 1), c.Reshape(c.Cast(r, c.DType(g[0]))))
	}
	// With a ratio of 1 nothing is kept and the mask is all false; the factor must only be finite.
	factor := c.Unary("Reciprocal", c.Op("Max", two(kept, c.Scalar(kept, 1e-7))))
	if known(training) == nil {
		factor = c.Where(c.Reshape(training), factor, c.Scalar(factor, 1))
	}
	return []onnx.Value{c.Mul(c.Mask(g[0], c.ExtraOutput(n, 1)), factor)}, nil
}
