package qrdqn

import (
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// design is what QR-DQN differs in from its family.
func (c Config) design() valuebased.Design {
	return valuebased.Design{Settings: c.Settings, Network: c.Config, Options: c.Options, Numbers: c.NQuantiles, Loss: c.loss}
}

// loss appends that of the package comment. Huber's function is k·(δ − k/2), with k, which is δ
// clipped to ±1, for a constant, because the gradient then is a product.
func (c Config) loss(g *layer.Graph, quantiles, actions, targets onnx.Value) valuebased.Loss {
	n := c.NQuantiles
	over, under := tensor.New(tensor.Float32, n, 1), tensor.New(tensor.Float32, n, 1)
	for i := range n {
		tau := (float64(i) + 0.5) / float64(n)
		over.Float32s()[i], under.Float32s()[i] = float32(tau), float32(1-tau)
	}
	// [batch, quantiles, targets]
	delta := g.Sub(g.Unsqueeze(targets, 1), g.Unsqueeze(head.Pick(g, quantiles, actions), 2))
	clipped := g.Clip(delta, -1, 1)
	huber := g.Mul(clipped, g.Sub(delta, g.Scale(clipped, 0.5)))
	weight := g.Where(g.Op("Less", []onnx.Value{delta, g.Float(0)}), g.Const(under), g.Const(over))
	rows := g.Scale(g.Sum(g.Mul(weight, huber), 1, 2), 1/float64(n))
	return valuebased.Loss{Rows: rows, Errors: rows, Constants: []string{string(clipped), string(weight)}}
}
