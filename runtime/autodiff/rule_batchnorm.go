package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

// expandBatchNormTraining replaces a BatchNormalization in training mode by primitives, so that the
// batch statistics are computed once for both directions. The running statistics stay outputs:
// momentum·old + (1 − momentum)·batch, with the population variance, as the specification says. In
// inference mode the node stays.
func expandBatchNormTraining(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	if n.Int("training_mode", 0) == 0 {
		return nil, nil
	}
	x := n.In(0)
	e := c.Extents(x)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	rank := len(e)
	axes := append([]int{0}, Seq(rank)[2:]...)
	z := c.standardize(x, axes, float64(n.Float("epsilon", 1e-5)))
	y := c.Add(c.Mul(z.xhat, c.perChannel(n.In(1), rank)), c.perChannel(n.In(2), rank))
	out := []onnx.Value{y, "", ""}
	momentum := float64(n.Float("momentum", 0.9))
	running := func(old, batch onnx.Value) onnx.Value {
		batch = c.Cast(c.ReshapeTo(batch, e[1]), c.DType(old))
		return c.Add(c.Scale(old, momentum), c.Scale(batch, 1-momentum))
	}
	if n.Out(1) != "" {
		out[1] = running(n.In(3), z.mean)
	}
	if n.Out(2) != "" {
		out[2] = running(n.In(4), z.variance)
	}
	return out, nil
}

// vjpBatchNormInference: y = (x − mean)·a + bias with a = scale/√(var + ε), differentiated towards
// all five inputs.
func vjpBatchNormInference(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	x, scale, mean, variance := n.In(0), n.In(1), n.In(3), n.In(4)
	rank := c.Rank(x)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	inv := c.Cast(c.Unary("Reciprocal", c.Unary("Sqrt", c.Shift(variance, float64(n.Float("epsilon", 1e-5))))), c.DType(scale))
	a := c.Mul(scale, inv)
	d := make([]onnx.Value, 5)
	if c.Wants(0) {
		d[0] = c.Mul(g[0], c.perChannel(c.Cast(a, c.DType(x)), rank))
	}
	var sum, moment onnx.Value
	if c.Wants(2) || c.Wants(3) {
		sum = c.Cast(c.channelSum(g[0]), c.DType(scale))
	}
	if c.Wants(1) || c.Wants(4) {
		centred := c.Sub(x, c.perChannel(c.Cast(mean, c.DType(x)), rank))
		moment = c.Mul(c.Cast(c.channelSum(c.Mul(g[0], centred)), c.DType(scale)), inv)
	}
	if c.Wants(1) {
		d[1] = moment
	}
	if c.Wants(2) {
		d[2] = sum
	}
	if c.Wants(3) {
		d[3] = c.Cast(c.Neg(c.Mul(a, sum)), c.DType(mean))
	}
	if c.Wants(4) {
		d[4] = c.Cast(c.Scale(c.Mul(c.Mul(a, inv), moment), -0.5), c.DType(variance))
	}
	return d, nil
}
