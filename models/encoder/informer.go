package encoder

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// InformerConfig describes an Informer encoder.
type InformerConfig struct {
	// DModel is the width of the blocks and of the features, a multiple of the number of kernels.
	DModel int `yaml:"d_model"`
	// Kernels are the steps of each convolution, odd numbers.
	Kernels []int `yaml:"kernels,flow"`
	// NLayers is the number of blocks, NHeads the number of heads of attention in each.
	NLayers int `yaml:"n_layers"`
	NHeads  int `yaml:"n_heads"`
	// DFF is the width of the feed-forward part.
	DFF int `yaml:"d_ff"`
	// Activation is that of the feed-forward part; see layer.Activations.
	Activation string `yaml:"activation"`
	// Attention is full or probsparse.
	Attention string `yaml:"attention"`
	// Factor is that of ProbSparse attention: factor·⌈ln W⌉ queries of a window of W steps attend.
	Factor int `yaml:"factor"`
	// Timestamps is how many features, the last ones, say when a step is.
	Timestamps int `yaml:"timestamps"`
	// Pool is last, mean or max.
	Pool string `yaml:"pool"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// InformerDefaults returns two blocks of 64 with four heads of full attention.
func InformerDefaults() InformerConfig {
	return InformerConfig{DModel: 64, Kernels: []int{3, 5, 7, 9}, NLayers: 2, NHeads: 4, DFF: 256, Activation: "gelu", Attention: "full", Factor: 5, Pool: "last"}
}

// Validate reports all problems.
func (c InformerConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("d_model", c.DModel, 1)
	p.Check(len(c.Kernels) > 0, "kernels", "there must be one at least")
	for i, k := range c.Kernels {
		p.Check(k > 0 && k%2 == 1, fmt.Sprintf("kernels[%d]", i), "must be odd and positive, not %d", k)
	}
	p.Check(len(c.Kernels) == 0 || c.DModel%len(c.Kernels) == 0, "d_model", "must be a multiple of the number of kernels, %d, but is %d", len(c.Kernels), c.DModel)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_heads", c.NHeads, 1)
	p.Check(c.NHeads < 1 || c.DModel%c.NHeads == 0, "n_heads", "must divide d_model, %d, but is %d", c.DModel, c.NHeads)
	p.AtLeast("d_ff", c.DFF, 1)
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.OneOf("attention", c.Attention, "full", "probsparse")
	p.AtLeast("factor", c.Factor, 1)
	p.AtLeast("timestamps", c.Timestamps, 0)
	p.OneOf("pool", c.Pool, layer.Pools()...)
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// Informer is the encoder of an Informer (Zhou et al. 2021, arXiv 2012.07436;
// zhouhaoyi/Informer2020) behind convolutions of several widths, as the owner's specification of a
// population of traders has it.
//
// Convolutions along time of kernel 3, 5, 7 and 9, each to a part of the model's width, are
// concatenated, and sinusoidal positions are added. Blocks of attention and feed-forward follow,
// with a normalisation after each sum, and pooling over time. The linear layers' weights are drawn
// by Xavier's rule, those of the convolutions and of the timestamps with deviation 1/√fan_in;
// biases are 0, and normalisations begin as the identity.
//
// # Deviations
//
// The paper embeds values by one circular convolution of kernel 3; here they are several, padded
// with zeros. There is no distilling, which halves the steps between blocks of long sequences, no
// decoder, and no dropout unless asked for. attention: full is the default: windows of bars are
// short. With attention: probsparse, factor·⌈ln W⌉ queries of each head attend, as published. But
// they are chosen by their scores over all keys and not over keys drawn at random, so an
// observation has the same features whenever it is seen; see layer.Graph.ProbSparseAttention.
//
// It was trained to foresee volatility and returns of the shipped stocks, with the same weights,
// batches and Adam as in PyTorch (cmd/peers/forecast_torch.py). The losses of 264 updates differ by
// 1.4e-6 at most, relatively, with full attention, and by 9.1e-5 with probsparse (8.4e-7 in the
// first 50).
//
// # Timestamps
//
// Published networks take the calendar beside the series. Here it is columns of the observation.
// With timestamps: 3 a linear layer without bias embeds the last three features of every step,
// and is added to what the convolutions make of the others.
type Informer struct{ c InformerConfig }

var _ Sequencer = (*Informer)(nil)

// NewInformer returns an Informer encoder.
func NewInformer(c InformerConfig) (*Informer, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("informer: %w", err)
	}
	return &Informer{c}, nil
}

// Config implements Encoder.
func (e *Informer) Config() any { return e.c }

// Causal implements Sequencer: a step attends to the whole window.
func (e *Informer) Causal() bool { return false }

// BuildSequence implements Sequencer.
func (e *Informer) BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return StepsPerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.blocks(g, x) })
}

// blocks builds for x [rows, W, F].
func (e *Informer) blocks(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	x, times, err := SplitTimestamps(g, x, e.c.Timestamps)
	if err != nil {
		return "", fmt.Errorf("informer: %w", err)
	}
	steps := g.Extent(x, 1)
	var scales []onnx.Value
	for _, k := range e.c.Kernels {
		scales = append(scales, g.Conv1D(fmt.Sprintf("conv%d", k), x, e.c.DModel/len(e.c.Kernels), k, 1, layer.Same, layer.Kaiming(1)))
	}
	x = g.Add(g.Concat(-1, scales...), g.Sinusoids(steps, e.c.DModel))
	if times != "" {
		x = g.Add(x, g.Projection("timestamps", times, e.c.DModel, layer.Kaiming(1)))
	}
	x = g.Dropout("drop", x, e.c.Dropout)
	for i := range e.c.NLayers {
		x = e.block(g.In(fmt.Sprintf("block%d", i)), x, e.queries(steps))
	}
	return x, g.Err()
}

// queries is how many queries of a head attend, of so many steps.
func (e *Informer) queries(steps int) int {
	return min(e.c.Factor*int(math.Ceil(math.Log(float64(steps)))), steps)
}

func (e *Informer) block(l *layer.Graph, x onnx.Value, queries int) onnx.Value {
	var a onnx.Value
	// With one step, or all of them, there is nothing to choose.
	if e.c.Attention == "probsparse" && queries > 0 && queries < l.Extent(x, 1) {
		a = l.ProbSparseAttention("attention", x, e.c.NHeads, queries, layer.Xavier(1))
	} else {
		a = l.SelfAttention("attention", x, e.c.NHeads, "", layer.Xavier(1))
	}
	x = l.LayerNorm("norm1", l.Add(x, l.Dropout("drop1", a, e.c.Dropout)))
	h := l.Activate(e.c.Activation, l.Linear("ff1", x, e.c.DFF, layer.Xavier(1)))
	return l.LayerNorm("norm2", l.Add(x, l.Dropout("drop2", l.Linear("ff2", h, e.c.DModel, layer.Xavier(1)), e.c.Dropout)))
}

// Build implements Encoder.
func (e *Informer) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return Pooled(g, x, e, layer.Pool(e.c.Pool))
}

// InformerKind makes Informer encoders from a configuration.
var InformerKind = KindOf("informer", "attention behind convolutions of several widths", InformerDefaults, NewInformer)
