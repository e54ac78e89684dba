package encoder

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// TimesNetConfig describes a TimesNet.
type TimesNetConfig struct {
	// DModel is the width of the blocks and of the features.
	DModel int `yaml:"d_model"`
	// DFF is the width between the two inceptions of a block.
	DFF int `yaml:"d_ff"`
	// NLayers is the number of blocks.
	NLayers int `yaml:"n_layers"`
	// NKernels is the number of convolutions of an inception: of kernel 1, 3, 5 and so on.
	NKernels int `yaml:"n_kernels"`
	// PeriodChoice is sample, frozen or batch: whether the strongest periods of each row, those of
	// Periods, or the strongest of the batch are used.
	PeriodChoice string `yaml:"period_choice"`
	// TopK is how many frequencies are chosen; frozen periods are all used.
	TopK int `yaml:"top_k"`
	// Periods are the frozen periods, in steps.
	Periods []int `yaml:"periods,flow,omitempty"`
	// Timestamps is how many features, the last ones, say when a step is.
	Timestamps int `yaml:"timestamps"`
	// Pool is last, mean or max.
	Pool string `yaml:"pool"`
	// Project is the width of a linear layer behind the pooling, the published network's
	// projection, and of the features; 0 has none. What adapts it alone leaves everything before it
	// frozen.
	Project int `yaml:"project,omitzero"`
	// Adapt puts a linear layer without bias behind every block, the same one, which is the identity
	// at first. Low-rank adapters of it alone, which target *adapt*, add h·A·B to what each block
	// makes of the window and leave the blocks as they are.
	Adapt bool `yaml:"adapt,omitzero"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// The choices of periods.
const (
	PeriodsSample = "sample"
	PeriodsFrozen = "frozen"
	PeriodsBatch  = "batch"
)

// TimesNetDefaults returns two blocks of 64 with five periods of each row.
func TimesNetDefaults() TimesNetConfig {
	return TimesNetConfig{DModel: 64, DFF: 64, NLayers: 2, NKernels: 6, PeriodChoice: PeriodsSample, TopK: 5, Pool: "last"}
}

// Validate reports all problems.
func (c TimesNetConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("d_model", c.DModel, 1)
	p.AtLeast("d_ff", c.DFF, 1)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_kernels", c.NKernels, 1)
	p.OneOf("period_choice", c.PeriodChoice, PeriodsSample, PeriodsFrozen, PeriodsBatch)
	p.AtLeast("top_k", c.TopK, 1)
	p.Check((len(c.Periods) > 0) == (c.PeriodChoice == PeriodsFrozen), "periods", "go with period_choice: frozen, which has one at least; it is %s, and there are %d", c.PeriodChoice, len(c.Periods))
	for i, n := range c.Periods {
		p.Check(n >= 2 && !slices.Contains(c.Periods[:i], n), fmt.Sprintf("periods[%d]", i), "must be two steps or more, and there once, not %d", n)
	}
	p.AtLeast("timestamps", c.Timestamps, 0)
	p.AtLeast("project", c.Project, 0)
	p.OneOf("pool", c.Pool, layer.Pools()...)
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// TimesNet is the encoder of a TimesNet (Wu et al. 2023, arXiv 2210.02186;
// thuml/Time-Series-Library, models/TimesNet.py and layers/Conv_Blocks.py).
//
// A circular convolution of kernel 3 without bias embeds the steps, sinusoidal positions are added,
// and blocks follow. A block finds the strongest frequencies of its series, and folds the series
// into an image of cycles by steps of a cycle for each of their periods. The same two inceptions
// with a GELU in between see every image. The block adds to its input the mean of the results that
// the softmax of the amplitudes weighs. One normalisation, shared by all blocks, follows each; then
// pooling over time. Convolutions are drawn as published, normally with deviation √2/√fan_out in
// the blocks, where the fan counts the taps, and √2/√fan_in for the embedding; that of the
// timestamps has 1/√fan_in. Biases are 0 and the normalisation begins as the identity.
//
// # Periods
//
// The published network chooses the periods of a block by the amplitudes' mean over the batch, so
// the features of an observation depend on its neighbours. Acting on one row and learning from many
// then disagree, and the ratio of PPO is not 1 where it has to be. period_choice says otherwise:
//
//   - sample, the default, chooses for every row by itself;
//   - frozen takes the periods from the configuration, and weighs them by the amplitudes at exactly
//     these periods, which need not divide the window;
//   - batch is the published choice, for forecasting: see what is said of it while training.
//
// An amplitude is the mean over channels of √(re² + im² + 1e-12), whose gradient exists where a
// series is constant; the transform is a product with a constant matrix. Frequency i of a window of
// W steps has the period ⌊W/i⌋, so many frequencies share the small ones, and their weights add up
// as published. The gradient flows through the amplitudes and not through the choice.
//
// All periods that a window of W steps can have, less than 2√W, are computed for every row, and
// those that were not chosen weigh nothing: shapes depend on no data. A small image crops the
// kernel, exactly, to the taps that can meet it, which pays for the periods that are too many in
// short windows. Of 20 steps, seven periods take 335 taps for each pair of channels, where five
// uncropped take 605. Of 96 steps, seventeen take 1529.
//
// # Inceptions
//
// An inception is the mean of n_kernels parallel convolutions of kernels 1, 3, 5, …, whose sum is
// one convolution with the largest: it is computed as that, exactly. The parameters stay the
// kernels of the parallel ones, because an optimiser moves them otherwise than one large kernel.
// With Adam, the centre, which all of them have, moves n_kernels times as far as the corners.
//
// A step of learning does not convolve where images are so small: see package autodiff, which makes
// products of these convolutions once there are enough of them. Forward and backward over 32 windows
// of 20 steps and 30 features take 0.29 s of one core with the defaults, and 0.49 s as convolutions
// (BenchmarkTimesNet). A step of one block of width 32 with five given periods takes 24 ms of one
// core, 0.45 times as long as the bare products of its convolutions (onnxrl-bench core
// 'step/timesnet*'). Compiled PyTorch 2.15 takes 24 ms and eager PyTorch 66 ms, all on a busy
// machine by processor time. The features of one observation take 29 ms while parameters are inputs,
// of which making the large kernels is 18. They take 6 ms where parameters are constants, as in an
// exported model; PyTorch takes 82 ms.
//
// It was trained to foresee volatility and returns of the shipped stocks, with the same weights,
// batches and Adam as in PyTorch (cmd/peers/forecast_torch.py). The losses of 264 updates differ
// by 7.0e-7 at most, relatively, with periods of each row, and by 1.1e-6 with those of the batch.
//
// # Deviations
//
// The published forecaster subtracts the window's mean and divides by its deviation, prolongs the
// window to the horizon by a linear layer before the blocks, and undoes the scaling at its end.
// Those belong to a forecast; here the environment's normaliser scales, the level of a feature is
// kept, and a head reads the pooled steps. There is no dropout unless asked for, d_model and d_ff
// are 64 and the pooling is the last step's. With timestamps: 3 the last three features of every
// step are its calendar, embedded by a linear layer without bias, and not convolved.
type TimesNet struct{ c TimesNetConfig }

var _ Sequencer = (*TimesNet)(nil)

// NewTimesNet returns a TimesNet.
func NewTimesNet(c TimesNetConfig) (*TimesNet, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("timesnet: %w", err)
	}
	return &TimesNet{c}, nil
}

// Config implements Encoder.
func (e *TimesNet) Config() any { return e.c }

// Causal implements Sequencer: the spectrum is that of the whole window.
func (e *TimesNet) Causal() bool { return false }

// BuildSequence implements Sequencer.
func (e *TimesNet) BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return StepsPerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.blocks(g, x) })
}

// Build implements Encoder.
func (e *TimesNet) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	z, err := Pooled(g, x, e, layer.Pool(e.c.Pool))
	if err == nil && e.c.Project > 0 {
		z = g.Linear("project", z, e.c.Project, layer.LinearDefault())
	}
	return z, errors.Join(err, g.Err())
}

// blocks builds for x [rows, W, F].
func (e *TimesNet) blocks(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	steps := g.Extent(x, 1)
	if steps < 2 || e.c.PeriodChoice != PeriodsFrozen && e.c.TopK > steps/2 {
		return "", fmt.Errorf("timesnet with top_k: %d needs a window of %d steps, which has as many frequencies; it has %d steps", e.c.TopK, 2*e.c.TopK, steps)
	}
	for i, p := range e.c.Periods {
		if p > steps {
			return "", fmt.Errorf("timesnet: periods[%d] is %d steps, the window has %d", i, p, steps)
		}
	}
	x, times, err := SplitTimestamps(g, x, e.c.Timestamps)
	if err != nil {
		return "", fmt.Errorf("timesnet: %w", err)
	}
	if e.c.PeriodChoice == PeriodsBatch {
		g.Note("timesnet with period_choice: batch turns an observation into features that depend on the others of its batch")
	}
	// One step of the other end on each side makes the convolution circular.
	round := g.Concat(1, g.Slice(x, 1, steps-1, steps), x, g.Slice(x, 1, 0, 1))
	taps := g.Concat(-1, g.Slice(round, 1, 0, steps), x, g.Slice(round, 1, 2, steps+2))
	x = g.Add(g.Projection("embed", taps, e.c.DModel, layer.Kaiming(math.Sqrt2)), g.Sinusoids(steps, e.c.DModel))
	if times != "" {
		x = g.Add(x, g.Projection("timestamps", times, e.c.DModel, layer.Kaiming(1)))
	}
	x = g.Dropout("drop", x, e.c.Dropout)
	norm := g
	for i := range e.c.NLayers {
		x = norm.LayerNorm("norm", e.block(g.In(fmt.Sprintf("block%d", i)), x))
		if e.c.Adapt {
			x = norm.Projection("adapt", x, e.c.DModel, layer.Identity())
		}
		norm = g.Again()
	}
	return x, g.Err()
}

// block builds for x [rows, W, D].
func (e *TimesNet) block(l *layer.Graph, x onnx.Value) onnx.Value {
	steps, width := l.Extent(x, 1), l.Extent(x, 2)
	// Channels lie before time, so that folding moves nothing.
	x = l.Transpose(x, 0, 2, 1)
	periods, weights := e.weigh(l, x)
	first := e.inception(l.In("inception0"), width, e.c.DFF)
	second := e.inception(l.In("inception1"), e.c.DFF, width)
	var results []onnx.Value
	for _, p := range periods {
		cycles := (steps + p - 1) / p
		image := x
		if rest := cycles*p - steps; rest > 0 {
			image = l.Op("Pad", []onnx.Value{x, l.Ints(0, 0, 0, 0, 0, rest)})
		}
		image = l.Reshape(image, -1, width, cycles, p)
		image = second.over(l.Activate("gelu", first.over(image)))
		y := l.Reshape(image, -1, width, cycles*p)
		if cycles*p > steps {
			y = l.Slice(y, 2, 0, steps)
		}
		results = append(results, l.Reshape(y, -1, 1, width*steps))
	}
	// [rows, 1, periods] · [rows, periods, D·W].
	y := l.Reshape(l.MatMul(weights, l.Concat(1, results...)), -1, width, steps)
	return l.Transpose(l.Add(y, x), 0, 2, 1)
}

// inception is the mean of parallel convolutions, as one.
type inception struct {
	l            *layer.Graph
	weight, bias onnx.Value
	size         int
	cropped      map[[2]int]onnx.Value
}

func (e *TimesNet) inception(l *layer.Graph, in, out int) *inception {
	n := &inception{l: l, size: 1, cropped: map[[2]int]onnx.Value{}}
	for i := range e.c.NKernels {
		n.size = 2*i + 1
		own := l.In(fmt.Sprintf("conv%d", n.size))
		weight := own.Param("weight", layer.Normal(math.Sqrt2/math.Sqrt(float64(out*n.size*n.size))), out, in, n.size, n.size)
		bias := own.Param("bias", layer.Zeros(), out)
		if i > 0 {
			// Each sum is padded to the next kernel, which is less work than padding every kernel
			// to the largest.
			weight = l.Add(l.Op("Pad", []onnx.Value{n.weight, l.Ints(0, 0, 1, 1, 0, 0, 1, 1)}), weight)
			bias = l.Add(n.bias, bias)
		}
		n.weight, n.bias = weight, bias
	}
	share := 1 / float64(e.c.NKernels)
	n.weight, n.bias = l.Scale(n.weight, share), l.Scale(n.bias, share)
	return n
}

// over appends the convolution of images [rows, channels, height, width], which keeps their
// extents.
func (n *inception) over(x onnx.Value) onnx.Value {
	rows, columns := n.reach(n.l.Extent(x, 2)), n.reach(n.l.Extent(x, 3))
	w, ok := n.cropped[[2]int{rows, columns}]
	if !ok {
		w = n.weight
		middle := n.size / 2
		if rows < middle {
			w = n.l.Slice(w, 2, middle-rows, middle+rows+1)
		}
		if columns < middle {
			w = n.l.Slice(w, 3, middle-columns, middle+columns+1)
		}
		n.cropped[[2]int{rows, columns}] = w
	}
	return n.l.Op("Conv", []onnx.Value{x, w, n.bias}, onnx.AttrInts("kernel_shape", 2*rows+1, 2*columns+1), onnx.AttrInts("pads", rows, columns, rows, columns))
}

// reach is how far from its middle a kernel meets an image of an extent.
func (n *inception) reach(extent int) int { return min(n.size/2, extent-1) }

// TimesNetKind makes TimesNets from a configuration.
var TimesNetKind = KindOf("timesnet", "convolutions over series folded by their periods", TimesNetDefaults, NewTimesNet)
