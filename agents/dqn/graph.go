package dqn

import (
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// design is what DQN differs in from its family.
func (c Config) design() valuebased.Design {
	return valuebased.Design{Settings: c.Settings, Network: c.Config, Options: c.Options, Numbers: 1, Loss: c.loss}
}

// loss appends Huber's function of δ = q(s, a) − y,
//
//	h(δ) = δ²/2 where |δ| ≤ 1, else |δ| − ½
//
// which is c·(δ − c/2) with c = δ clipped to ±1. Its derivative is c, as it is when c is taken for
// a constant; learning does that, because the gradient then is a product and not twenty operators.
// With conservative_weight there is weight·(log Σ exp q(s, ·) − q(s, a)) beside it.
func (c Config) loss(g *layer.Graph, q, actions, targets onnx.Value) valuebased.Loss {
	delta := g.Sub(head.Pick(g, q, actions), targets)
	clipped := g.Clip(delta, -1, 1)
	rows := g.Mul(clipped, g.Sub(delta, g.Scale(clipped, 0.5)))
	if w := c.ConservativeWeight; w > 0 {
		rows = g.Sub(rows, g.Scale(head.Pick(g, g.Op("LogSoftmax", []onnx.Value{q}, onnx.AttrInt("axis", 1)), actions), w))
	}
	return valuebased.Loss{Rows: rows, Errors: delta, Constants: []string{string(clipped)}}
}
