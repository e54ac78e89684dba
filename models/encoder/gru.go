package encoder

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// GRUConfig describes a GRU.
type GRUConfig struct {
	// Hidden is the width of each of Layers layers, and of the features.
	Hidden int `yaml:"hidden"`
	Layers int `yaml:"layers"`
	// Pool is last, mean or max.
	Pool string `yaml:"pool"`
}

// GRUDefaults returns one layer of 64.
func GRUDefaults() GRUConfig { return GRUConfig{Hidden: 64, Layers: 1, Pool: "last"} }

// Validate reports all problems.
func (c GRUConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("hidden", c.Hidden, 1)
	p.AtLeast("layers", c.Layers, 1)
	p.OneOf("pool", c.Pool, layer.Pools()...)
	return p.Err()
}

// GRU is a gated recurrent unit over the steps of a window (Cho et al. 2014, arXiv
// 1406.1078).
//
// The window's steps go through one or more GRUs in turn, which begin with a state of 0. Their
// reset gate applies behind the recurrent product, as in PyTorch's nn.GRU. The features are the
// last layer's states, pooled over time. Weights and biases begin uniformly in ±1/√hidden, as
// PyTorch's do. Each layer is one node of ONNX's GRU.
//
// Steps that fill up a window should be zeros in front, with a feature that says that they are
// none. So the last state is that of the last step, whatever the length.
//
// Windows cannot share features: what is remembered depends on where a window begins.
type GRU struct{ c GRUConfig }

var _ Sequencer = (*GRU)(nil)

// NewGRU returns a GRU.
func NewGRU(c GRUConfig) (*GRU, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("gru: %w", err)
	}
	return &GRU{c}, nil
}

// Config implements Encoder.
func (e *GRU) Config() any { return e.c }

// Causal implements Sequencer.
func (e *GRU) Causal() bool { return true }

// BuildSequence implements Sequencer.
func (e *GRU) BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	return StepsPerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.layers(g, x) })
}

// layers builds for x [rows, W, F].
func (e *GRU) layers(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	init, n := layer.Uniform(1/math.Sqrt(float64(e.c.Hidden))), e.c.Hidden
	// [W, rows, F], as the operator wants it.
	x = g.Transpose(x, 1, 0, 2)
	for i := range e.c.Layers {
		l := g.In(fmt.Sprintf("gru%d", i))
		w, r, b := l.Param("weight", init, 1, 3*n, l.Extent(x, 2)), l.Param("recurrent", init, 1, 3*n, n), l.Param("bias", init, 1, 6*n)
		y := l.Op("GRU", []onnx.Value{x, w, r, b}, onnx.AttrInt("hidden_size", n), onnx.AttrInt("linear_before_reset", 1))
		// [W, directions, rows, hidden].
		x = l.Squeeze(y, 1)
	}
	return g.Transpose(x, 1, 0, 2), g.Err()
}

// Build implements Encoder.
func (e *GRU) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := CheckInput(g, x, 3, 4); err != nil {
		return "", err
	}
	return Pooled(g, x, e, layer.Pool(e.c.Pool))
}

// GRUKind makes GRUs from a configuration.
var GRUKind = KindOf("gru", "a gated recurrent unit over the steps of a window", GRUDefaults, NewGRU)
