package fit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Names of the values of a [Network] beside its outputs.
const (
	networkInput    = "window"
	networkFeatures = "features"
)

// Network describes a network that begins with initial values instead of a file's: an encoder over
// windows, and linear layers over its features.
type Network struct {
	// Window is the number of steps of a window and of the features of a step.
	Window []int `yaml:"window,flow"`
	// Encoder is a kind of encoder with its keys, as agents have it.
	Encoder configs.Kinded `yaml:"encoder" kinds:"encoder"`
	// Outputs are the linear layers, by the names of their outputs, and the number of values of
	// each.
	Outputs map[string]int `yaml:"outputs"`
}

// Validate reports all problems but those of the encoder's own keys.
func (n Network) Validate() error {
	var p configs.Problems
	p.Check(len(n.Window) == 2, "window", "expected two numbers, of steps and of features, found %d", len(n.Window))
	for i, k := range n.Window {
		p.AtLeast(fmt.Sprintf("window[%d]", i), k, 1)
	}
	p.NotEmpty("encoder", n.Encoder.Kind)
	p.Check(len(n.Outputs) > 0, "outputs", "no output is given, expected a name and a number of values at least")
	for name, width := range n.Outputs {
		p.Check(name != networkInput && name != networkFeatures, "outputs."+name, "the network has a value of this name: give it another")
		p.AtLeast("outputs."+name, width, 1)
	}
	return p.Err()
}

// Model builds the network, whose initial values descend from the seed: input window float32
// [batch, W, F], outputs features [batch, D] and, of each of Outputs, [batch, values]. The
// encoder's parameters have its own names, so that an agent whose encoder is the file has them as
// an encoder of the same kind. The encoder's keys are completed by their defaults. Notes say what
// people should know of the encoder.
func (n *Network) Model(kinds []encoder.Kind, seed uint64) (m *onnx.Model, notes []string, err error) {
	e, err := encoder.New(kinds, n.Encoder)
	if err != nil {
		return nil, nil, err
	}
	if n.Encoder, err = configs.NewKinded(n.Encoder.Kind, e.Config()); err != nil {
		return nil, nil, err
	}
	g := layer.New("fit", rng.New(seed).Split("network"), layer.Options{Training: true})
	z, err := e.Build(g, g.Observation(networkInput, n.Window...))
	if err != nil {
		return nil, nil, fmt.Errorf("network.encoder: windows %v: %w", n.Window, err)
	}
	if masks := g.Masks(); len(masks) > 0 {
		return nil, nil, fmt.Errorf("network.encoder: dropout of %g is not supported; set it to 0", masks[0].Ratio)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Outputs)) {
		g.Output(name, g.In("head").Linear(name, z, n.Outputs[name], layer.Kaiming(1)))
	}
	g.Output(networkFeatures, z)
	net, _, err := g.Network(models.Options{})
	if err != nil {
		return nil, nil, err
	}
	m, err = g.Model()
	return m, net.Notes, err
}
