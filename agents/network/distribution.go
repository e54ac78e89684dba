package network

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Distribution is a policy's distribution over actions, in a graph. Actions are those of the
// decision: elements of the space for categorical heads, and for a Box what was drawn, [batch,
// Dims], before it is clipped to the bounds.
type Distribution interface {
	// LogProb appends the logarithms of the probabilities, or densities, of actions, [batch].
	LogProb(actions onnx.Value) onnx.Value
	// Entropy appends the entropies, [batch].
	Entropy() onnx.Value
	// Mode appends the most probable action, [batch, …], an element of the space.
	Mode() onnx.Value
	// Output makes the parameters of the distribution outputs of the graph, under the names of
	// package agents.
	Output()
	// Acting makes what a [Sampler] reads outputs of the graph, which is less where something can
	// be had from the parameters.
	Acting()
	// Stops names the values that an objective is to stop at.
	Stops() []string
}

// NewDistribution appends the policy of a frame. mask is absent unless the environment has one; e
// is for actions in a Box; init is that of the last layer's weights.
func NewDistribution(g *layer.Graph, f *Frame, z Features, mask onnx.Value, e Exploration, init layer.Init) Distribution {
	if e.UseSDE && z.Given != "" && z.Pooled == "" {
		g.Failf("use_sde needs the features that a policy's last layer reads, and the user-supplied policy has no output %s [%s, L]", FeaturesOutput, layer.Batch)
		e.UseSDE = false
	}
	if f.Continuous() {
		return newGaussian(g, f, z, e, init)
	}
	if e.UseSDE {
		g.Failf("use_sde is for actions in a box, and those of %s are %v", f.Spec.Name, f.Spec.Action)
	}
	return NewCategorical(g, f, z, mask, init)
}

// Categorical is a Distribution of one masked choice per head.
type Categorical struct {
	*head.Categorical
	g *layer.Graph
	f *Frame
}

var _ Distribution = (*Categorical)(nil)

// NewCategorical appends the heads of a frame: one per asset where the features are per asset,
// which share a layer, and one of the portfolio's where there is one. init is that of the logits'
// weights.
func NewCategorical(g *layer.Graph, f *Frame, z Features, mask onnx.Value, init layer.Init) *Categorical {
	logits := z.Given
	switch {
	case logits != "":
	case f.Assets > 0:
		logits = head.AssetLogits(g, z.PerAsset, init, f.Heads[0])
		if f.Portfolio() > 0 {
			logits = g.Concat(1, logits, head.Logits(g.In("portfolio"), z.Pooled, init, f.Heads[f.Assets]))
		}
	default:
		logits = head.Logits(g, z.Pooled, init, f.Heads...)
	}
	return &Categorical{head.NewCategorical(g, logits, mask, f.Heads...), g, f}
}

// LogProb implements Distribution. Actions are int64 [batch] or [batch, 1] for Discrete, [batch,
// heads] for MultiDiscrete, and bool [batch, bits] for MultiBinary.
func (c *Categorical) LogProb(actions onnx.Value) onnx.Value { return c.g.Sum(c.Chosen(actions), 1) }

// Chosen appends the log-probability of the action of each head, [batch, heads].
func (c *Categorical) Chosen(actions onnx.Value) onnx.Value {
	if c.f.Spec.Action.DType() == tensor.Bool {
		actions = c.g.Op("Cast", []onnx.Value{actions}, onnx.AttrInt("to", int(tensor.Int64)))
	}
	return c.Categorical.Chosen(actions)
}

// Mode implements Distribution.
func (c *Categorical) Mode() onnx.Value {
	mode := c.Categorical.Mode()
	switch {
	case c.f.Discrete():
		return c.g.Squeeze(mode, 1)
	case c.f.Spec.Action.DType() == tensor.Bool:
		return c.g.Op("Cast", []onnx.Value{mode}, onnx.AttrInt("to", int(tensor.Bool)))
	}
	return mode
}

// Output implements Distribution.
func (c *Categorical) Output() { c.g.Output(agents.LogProbsOutput, c.LogProbs) }

// Acting implements Distribution.
func (c *Categorical) Acting() { c.Output() }

// Stops implements Distribution.
func (c *Categorical) Stops() []string { return nil }
