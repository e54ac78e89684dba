package network

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Deterministic ends the graph of a policy that draws nothing, with the outputs of package agents:
// the choice of the largest logit of each head, beside the log-probabilities, or for a Box one
// number for each component, clipped to its bounds. Parameters are those of [NewDistribution], but
// for deviations. mask is absent unless the environment has one; init is that of the last layer's
// weights.
func Deterministic(g *layer.Graph, f *Frame, z Features, mask onnx.Value, init layer.Init) {
	if f.Continuous() {
		g.Output(agents.ActionOutput, clipped(g, f, means(g, f, z, init)))
		return
	}
	c := NewCategorical(g, f, z, mask, init)
	g.Output(agents.ActionOutput, c.Mode())
	c.Output()
}
