package encoder

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SetConfig describes the encoder.
type SetConfig struct {
	// Members is how many the set has at most, Features the numbers of each.
	Members  int `yaml:"members"`
	Features int `yaml:"features"`
	// DModel is the width of the blocks.
	DModel int `yaml:"d_model"`
	// NLayers is the number of blocks, NHeads the number of heads of attention in each.
	NLayers int `yaml:"n_layers"`
	NHeads  int `yaml:"n_heads"`
	// FFMult is the width of the feed-forward part in multiples of DModel.
	FFMult int `yaml:"ff_mult"`
	// Activation is that of the feed-forward part; see layer.Activations.
	Activation string `yaml:"activation"`
}

// SetDefaults returns one block of 32 with two heads, over the negotiations of a factory in
// scml_threads.
func SetDefaults() SetConfig {
	return SetConfig{Members: 16, Features: 18, DModel: 32, NLayers: 1, NHeads: 2, FFMult: 2, Activation: "gelu"}
}

// Validate reports all problems.
func (c SetConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("members", c.Members, 1)
	p.AtLeast("features", c.Features, 1)
	p.AtLeast("d_model", c.DModel, 1)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_heads", c.NHeads, 1)
	p.Check(c.NHeads < 1 || c.DModel%c.NHeads == 0, "n_heads", "must divide d_model, %d, but is %d", c.DModel, c.NHeads)
	p.AtLeast("ff_mult", c.FFMult, 1)
	p.OneOf("activation", c.Activation, layer.Activations()...)
	return p.Err()
}

// Set lets a member of a set see the others. It is attention over a variable number of
// members, padded to a fixed one and masked, that are observed as one vector (the encoder
// of Set Transformer, Lee et al. 2019, arXiv 1810.00825, without inducing points).
//
//	[batch, members·features | members | members | rest]  ->  [batch, d_model + d_model + rest]
//
// The vector begins with the features of all members. Then come a number for each that is 1 where
// the member is there, and one for each that is 1 for the member that is asked about. What follows
// is given on as it is.
//
// Each member's features go through a linear layer and blocks of attention with the normalisation
// first, which attend to members that are there and know no order, and a last normalisation. The
// result is that of the member that is asked about, which is 0 where none is there, the mean over
// those that are there, 0 where none is, and the rest. Permuting the members, presence and question
// included, changes nothing. Weights are drawn by Xavier's rule, biases are 0, and normalisations
// begin as the identity.
type Set struct{ c SetConfig }

var _ Encoder = (*Set)(nil)

// NewSet returns an encoder.
func NewSet(c SetConfig) (*Set, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("set: %w", err)
	}
	return &Set{c}, nil
}

// Config implements Encoder.
func (e *Set) Config() any { return e.c }

// Build implements Encoder.
func (e *Set) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := CheckInput(g, x, 2); err != nil {
		return "", err
	}
	n, all := e.c.Members, e.c.Members*e.c.Features
	width := g.Extent(x, 1)
	if width < all+2*n {
		return "", fmt.Errorf("set: %v is too short for %d members of %d features, their presence, and the one that is asked about: expected at least %d", g.Type(x), n, e.c.Features, all+2*n)
	}
	parts := []onnx.Value{g.Slice(x, 1, 0, all), g.Slice(x, 1, all, all+n), g.Slice(x, 1, all+n, all+2*n)}
	there := g.Op("Greater", []onnx.Value{parts[1], g.Float(0.5)})
	z := g.Linear("embed", g.Reshape(parts[0], -1, n, e.c.Features), e.c.DModel, layer.Xavier(1))
	bias := g.KeyBias(there)
	block := layer.Block{Heads: e.c.NHeads, FF: e.c.FFMult, Activation: e.c.Activation}
	for i := range e.c.NLayers {
		z = g.TransformerBlock(fmt.Sprintf("block%d", i), z, bias, block)
	}
	z = g.LayerNorm("norm", z)
	// Rows that pick one member, and that average those that are there.
	pick := func(weights onnx.Value) onnx.Value { return g.Squeeze(g.MatMul(g.Unsqueeze(weights, 1), z), 1) }
	valid := g.Op("Cast", []onnx.Value{there}, onnx.AttrInt("to", int(tensor.Float32)))
	count := g.Max(g.Op("ReduceSum", []onnx.Value{valid, g.Ints(1)}, onnx.AttrInt("keepdims", 1)), g.Float(1))
	out := []onnx.Value{pick(g.Mul(parts[2], valid)), pick(g.Div(valid, count))}
	if width > all+2*n {
		out = append(out, g.Slice(x, 1, all+2*n, width))
	}
	return g.Concat(1, out...), g.Err()
}

// SetKind makes encoders from a configuration.
var SetKind = KindOf("set", "attention over the members of a set, masked, for one of them", SetDefaults, NewSet)
