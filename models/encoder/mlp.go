package encoder

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// MLPConfig describes a perceptron.
type MLPConfig struct {
	// Hidden are the widths of the layers; the last one is that of the features.
	Hidden []int `yaml:"hidden"`
	// Activation follows every layer; see layer.Activations.
	Activation string `yaml:"activation"`
	// Init is orthogonal, kaiming, xavier or fan_in; the last is PyTorch's default, which biases
	// have too.
	Init string `yaml:"init"`
	// LayerNorm normalises the result of every layer before its activation.
	LayerNorm bool `yaml:"layer_norm"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// MLPDefaults returns two layers of 64 with tanh.
func MLPDefaults() MLPConfig {
	return MLPConfig{Hidden: []int{64, 64}, Activation: "tanh", Init: "orthogonal"}
}

// Validate reports all problems.
func (c MLPConfig) Validate() error {
	var p configs.Problems
	p.NotEmpty("hidden", c.Hidden)
	for i, h := range c.Hidden {
		p.AtLeast(fmt.Sprintf("hidden[%d]", i), h, 1)
	}
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.OneOf("init", c.Init, "orthogonal", "kaiming", "xavier", "fan_in")
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// MLP is the multi-layer perceptron as an encoder: what is observed, flattened, through
// fully connected layers.
//
// Weights are orthogonal with gain √2 and biases 0, whatever the activation, as in the
// implementations of PPO (Huang et al. 2022, "The 37 Implementation Details of Proximal Policy
// Optimization", detail 2). Two layers of 64 with tanh are Stable-Baselines3's default for PPO and
// A2C, and ours.
type MLP struct{ c MLPConfig }

var _ Encoder = (*MLP)(nil)

// NewMLP returns a perceptron.
func NewMLP(c MLPConfig) (*MLP, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("mlp: %w", err)
	}
	return &MLP{c}, nil
}

// Config implements Encoder.
func (e *MLP) Config() any { return e.c }

// Build implements Encoder.
func (e *MLP) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := CheckInput(g, x, 2, 3, 4); err != nil {
		return "", err
	}
	return PerAsset(g, x, func(x onnx.Value) (onnx.Value, error) {
		if len(g.Dims(x)) == 3 {
			x = g.Reshape(x, -1, g.Extent(x, 1)*g.Extent(x, 2))
		}
		for i, width := range e.c.Hidden {
			l := g.In(fmt.Sprintf("fc%d", i))
			weight, bias := layer.Zeros(), layer.Zeros()
			switch gain := layer.Gain(e.c.Activation); e.c.Init {
			case "orthogonal":
				weight = layer.Orthogonal(math.Sqrt2)
			case "kaiming":
				weight = layer.Kaiming(gain)
			case "xavier":
				weight = layer.Xavier(gain)
			case "fan_in":
				weight = layer.FanIn(g.Extent(x, -1))
				bias = weight
			}
			x = g.LinearBias(fmt.Sprintf("fc%d", i), x, width, weight, bias)
			if e.c.LayerNorm {
				x = l.LayerNorm("norm", x)
			}
			x = l.Dropout("drop", l.Activate(e.c.Activation, x), e.c.Dropout)
		}
		return x, g.Err()
	})
}

// MLPKind makes perceptrons from a configuration.
var MLPKind = KindOf("mlp", "fully connected layers over what is observed, flattened", MLPDefaults, NewMLP)
