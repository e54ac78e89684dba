package encoder

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TimeFormerConfig describes a TimeFormer-like encoder.
type TimeFormerConfig struct {
	// DModel is the width of the blocks and of the features.
	DModel int `yaml:"d_model"`
	// NLayers is the number of blocks, NHeads the number of heads of attention in each.
	NLayers int `yaml:"n_layers"`
	NHeads  int `yaml:"n_heads"`
	// FFMult is the width of the feed-forward part in multiples of DModel.
	FFMult int `yaml:"ff_mult"`
	// Activation is that of the feed-forward part; see layer.Activations.
	Activation string `yaml:"activation"`
	// Timestamps is how many features, the last ones, say when a step is.
	Timestamps int `yaml:"timestamps"`
	// Pool is last, mean or max.
	Pool string `yaml:"pool"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// TimeFormerDefaults returns two blocks of 64 with four heads.
func TimeFormerDefaults() TimeFormerConfig {
	return TimeFormerConfig{DModel: 64, NLayers: 2, NHeads: 4, FFMult: 4, Activation: "gelu", Pool: "last"}
}

// Validate reports all problems.
func (c TimeFormerConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("d_model", c.DModel, 1)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_heads", c.NHeads, 1)
	p.Check(c.NHeads < 1 || c.DModel%c.NHeads == 0, "n_heads", "must divide d_model, %d, but is %d", c.DModel, c.NHeads)
	p.AtLeast("ff_mult", c.FFMult, 1)
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.AtLeast("timestamps", c.Timestamps, 0)
	p.OneOf("pool", c.Pool, layer.Pools()...)
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// TimeFormer is attention over the steps of a window whose influence decays with their
// distance, after TimeFormer (Liu et al. 2025, arXiv 2510.06680).
//
// TimeFormer multiplies the weight that step i gives to an earlier step j by e^(−γ·(i−j)), as the
// intensity of a Hawkes process decays, and hides what comes later. Here a linear layer to the
// model's width is followed by blocks of such attention and feed-forward with the normalisation
// first (Xiong et al. 2020, arXiv 2002.04745), a last normalisation, and pooling over time. There
// are no positions: the decay tells how far a step is. Weights are drawn by Xavier's rule, those of
// the timestamps with deviation 1/√fan_in; biases are 0 and normalisations begin as the identity.
//
// # Decay
//
// Head h of H begins with γ = 2^(−8·h/H), h from 1, the slopes of ALiBi (Press et al. 2022, arXiv
// 2108.12409), and learns the logarithm of a factor that begins at 1: some heads look at the last
// few steps and others at the whole window.
//
// # Deviations
//
// The paper multiplies after the softmax, so that the weights of a step no longer sum to 1; here
// −γ·(i−j) is added to the scores, which is the same product divided by its sum. Its one rate
// becomes one per head, in place of the subsequences of several scales that it cuts series into.
// The sizes are ours, and the formula was taken from a published review of the paper. With
// timestamps: 3 the last three features of every step are its calendar, embedded by a linear layer
// without bias.
type TimeFormer struct{ c TimeFormerConfig }

var _ Sequencer = (*TimeFormer)(nil)

// NewTimeFormer returns a TimeFormer-like encoder.
func NewTimeFormer(c TimeFormerConfig) (*TimeFormer, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("timeformer: %w", err)
	}
	return &TimeFormer{c}, nil
}

// Config implements Encoder.
func (e *TimeFormer) Config() any { return e.c }

// Causal implements Sequencer.
func (e *TimeFormer) Causal() bool { return true }

// BuildSequence implements Sequencer.
func (e *TimeFormer) BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return StepsPerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.blocks(g, x) })
}

// blocks builds for x [rows, W, F].
func (e *TimeFormer) blocks(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	x, times, err := SplitTimestamps(g, x, e.c.Timestamps)
	if err != nil {
		return "", fmt.Errorf("timeformer: %w", err)
	}
	steps := g.Extent(x, 1)
	x = g.Linear("embed", x, e.c.DModel, layer.Xavier(1))
	if times != "" {
		x = g.Add(x, g.Projection("timestamps", times, e.c.DModel, layer.Kaiming(1)))
	}
	x = g.Dropout("drop", x, e.c.Dropout)
	distance, later := g.Const(e.distances(steps)), g.CausalBias(steps)
	block := layer.Block{Heads: e.c.NHeads, FF: e.c.FFMult, Activation: e.c.Activation, Dropout: e.c.Dropout}
	for i := range e.c.NLayers {
		name := fmt.Sprintf("block%d", i)
		l := g.In(name)
		rate := l.Exp(l.Reshape(l.Param("decay", layer.Zeros(), e.c.NHeads), e.c.NHeads, 1, 1))
		x = g.TransformerBlock(name, x, l.Sub(later, l.Mul(rate, distance)), block)
	}
	return g.LayerNorm("norm", x), g.Err()
}

// distances are how far each step lies before each other in units of a head's first rate, [heads,
// W, W], and 0 for later steps.
func (e *TimeFormer) distances(steps int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, e.c.NHeads, steps, steps)
	for h := range e.c.NHeads {
		slope := math.Exp2(-8 * float64(h+1) / float64(e.c.NHeads))
		for i := range steps {
			for j := range i {
				t.Float32s()[(h*steps+i)*steps+j] = float32(slope * float64(i-j))
			}
		}
	}
	return t
}

// Build implements Encoder.
func (e *TimeFormer) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return Pooled(g, x, e, layer.Pool(e.c.Pool))
}

// TimeFormerKind makes TimeFormer-like encoders from a configuration.
var TimeFormerKind = KindOf("timeformer", "attention that decays with the distance in time", TimeFormerDefaults, NewTimeFormer)
