package encoder

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// TransformerConfig describes a transformer.
type TransformerConfig struct {
	// DModel is the width of the blocks and of the features.
	DModel int `yaml:"d_model"`
	// NLayers is the number of blocks, NHeads the number of heads of attention in each.
	NLayers int `yaml:"n_layers"`
	NHeads  int `yaml:"n_heads"`
	// FFMult is the width of the feed-forward part in multiples of DModel.
	FFMult int `yaml:"ff_mult"`
	// Activation is that of the feed-forward part; see layer.Activations.
	Activation string `yaml:"activation"`
	// Positions are learned, sinusoidal or none.
	Positions string `yaml:"positions"`
	// Causal lets a time attend to those up to itself only.
	Causal bool `yaml:"causal"`
	// Pool is last, mean or max.
	Pool string `yaml:"pool"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// TransformerDefaults returns three causal blocks of 128 with four heads.
func TransformerDefaults() TransformerConfig {
	return TransformerConfig{DModel: 128, NLayers: 3, NHeads: 4, FFMult: 2, Activation: "gelu", Positions: "learned", Causal: true, Pool: "last"}
}

// Validate reports all problems.
func (c TransformerConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("d_model", c.DModel, 1)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_heads", c.NHeads, 1)
	p.Check(c.NHeads < 1 || c.DModel%c.NHeads == 0, "n_heads", "must divide d_model, %d, but is %d", c.DModel, c.NHeads)
	p.AtLeast("ff_mult", c.FFMult, 1)
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.OneOf("positions", c.Positions, "learned", "sinusoidal", "none")
	p.OneOf("pool", c.Pool, layer.Pools()...)
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// Transformer is a transformer encoder over the steps of a window (Vaswani et al. 2017,
// arXiv 1706.03762).
//
// A linear layer to the model's width, positions added, blocks of attention and feed-forward with
// the normalisation first (Xiong et al. 2020, arXiv 2002.04745), a last normalisation, and pooling
// over time. With causal: true a step attends to itself and to earlier ones only. Weights are drawn
// by Xavier's rule, biases are 0, learned positions normal with deviation 0.02, and normalisations
// begin as the identity.
//
// Windows cannot share features: the position of a bar, and what it attends to, depend on where the
// window begins.
type Transformer struct{ c TransformerConfig }

var _ Sequencer = (*Transformer)(nil)

// NewTransformer returns a transformer.
func NewTransformer(c TransformerConfig) (*Transformer, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("transformer: %w", err)
	}
	return &Transformer{c}, nil
}

// Config implements Encoder.
func (e *Transformer) Config() any { return e.c }

// Causal implements Sequencer.
func (e *Transformer) Causal() bool { return e.c.Causal }

// BuildSequence implements Sequencer.
func (e *Transformer) BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return StepsPerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.blocks(g, x) })
}

// blocks builds for x [rows, W, F].
func (e *Transformer) blocks(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	steps := g.Extent(x, 1)
	x = g.Linear("embed", x, e.c.DModel, layer.Xavier(1))
	switch e.c.Positions {
	case "learned":
		x = g.Add(x, g.Param("positions", layer.Normal(0.02), steps, e.c.DModel))
	case "sinusoidal":
		// The features are scaled up so that the positions, which are of size 1, do not drown them
		// (section 3.4 of the paper).
		x = g.Add(g.Scale(x, math.Sqrt(float64(e.c.DModel))), g.Sinusoids(steps, e.c.DModel))
	}
	x = g.Dropout("drop", x, e.c.Dropout)
	var bias onnx.Value
	if e.c.Causal {
		bias = g.CausalBias(steps)
	}
	block := layer.Block{Heads: e.c.NHeads, FF: e.c.FFMult, Activation: e.c.Activation, Dropout: e.c.Dropout}
	for i := range e.c.NLayers {
		x = g.TransformerBlock(fmt.Sprintf("block%d", i), x, bias, block)
	}
	return g.LayerNorm("norm", x), g.Err()
}

// Build implements Encoder.
func (e *Transformer) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := CheckInput(g, x, 3, 4); err != nil {
		return "", err
	}
	return PerAsset(g, x, func(x onnx.Value) (onnx.Value, error) {
		y, err := e.blocks(g, x)
		if err != nil {
			return "", err
		}
		return g.PoolTime(y, layer.Pool(e.c.Pool)), g.Err()
	})
}

// TransformerKind makes transformers from a configuration.
var TransformerKind = KindOf("transformer", "attention over the steps of a window", TransformerDefaults, NewTransformer)
