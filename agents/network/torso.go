package network

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Config is the part of an algorithm's configuration that describes a torso; algorithms inline it.
type Config struct {
	// Encoder reads windows [W,N,F] or [W,F] that an environment declares; absent is timecnn with
	// its defaults. Observations without a window have none unless one is named: one that reads
	// windows takes a matrix for one, others read all as one vector.
	Encoder configs.Kinded `yaml:"encoder,omitempty" kinds:"encoder"`
	// LoRA trains low-rank adapters beside the encoder's layers, for actor and critics each, over
	// one encoder that stays as it begins.
	LoRA *lora.Config `yaml:"lora,omitempty"`
	// EncoderCache is how many MiB may be taken by what the encoder makes of windows with layers
	// that never change, which is then computed once for each window of a table; 0 is 1024, and −1
	// keeps nothing.
	EncoderCache int `yaml:"encoder_cache_mib,omitzero"`
	// CrossAsset mixes the assets of a window [W,N,F].
	CrossAsset encoder.CrossAssetConfig `yaml:"cross_asset"`
	// Policy is the whole policy, from the observation to logits, means or values of actions, as
	// {kind: file, path: …}; absent is one made of encoder, hidden layers and a last one, which
	// with a Policy are the critic's alone.
	Policy configs.Kinded `yaml:"policy,omitempty" kinds:"encoder"`
	// Hidden and Activation are the layers where actions are not those of assets.
	Hidden     []int  `yaml:"hidden,flow"`
	Activation string `yaml:"activation"`
	// Privileged are fields of the observation that critics read and the policy does not, which is
	// exported without them (asymmetric actor-critic, Pinto et al. 2018, arXiv 1710.06542). Those
	// that the environment marks as central are read by nobody else in any case.
	Privileged []string `yaml:"privileged,flow,omitempty"`
}

// Validate reports the problems of the configuration's own fields.
func (c Config) Validate() error {
	var p configs.Problems
	for _, width := range c.Hidden {
		p.AtLeast("hidden", width, 1)
	}
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.AtLeast("encoder_cache_mib", c.EncoderCache, -1)
	p.Check(c.LoRA == nil || c.Policy.Kind == "", "lora", "is for encoders of policies that are made here; a user-supplied one is trained as it is")
	p.Check(len(c.Privileged) == 0 || c.Policy.Kind == "", "privileged", "is for policies that are made here; a user-supplied one has the inputs that it has")
	return p.Err()
}

// encoderScope has the encoder's parameters.
const encoderScope = "encoder"

// Torso appends the layers between inputs and heads. It is immutable.
type Torso struct {
	c       Config
	f       *Frame
	encoder encoder.Encoder
	policy  *userPolicy
	init    layer.Init
	// norm says that hidden layers are normalised.
	norm bool
}

// NewTorso makes the torso of a configuration for a frame. init is that of the hidden layers'
// weights.
func NewTorso(c Config, f *Frame, list []encoder.Kind, init layer.Init) (*Torso, error) {
	policy, err := openPolicy(c, f, list)
	if err != nil {
		return nil, err
	}
	if f, err = f.central(c.Privileged); err != nil {
		return nil, err
	}
	if err := c.refuseImages(f); err != nil {
		return nil, err
	}
	t := &Torso{c: c, f: f, policy: policy, init: init}
	switch {
	case c.Encoder.Kind != "":
		t.encoder, err = encoder.New(list, c.Encoder)
	case f.Series >= 0:
		t.encoder, err = encoder.NewTimeCNN(encoder.TimeCNNDefaults())
	case c.LoRA != nil:
		err = fmt.Errorf("lora: there is no encoder to adapt: the observations of %s have no window, and agent.encoder names none", f.Spec.Name)
	}
	return t, err
}

// refuseImages refuses images, uint8 of rank 3, where nothing but fully connected layers would read
// them.
func (c Config) refuseImages(f *Frame) error {
	if c.Policy.Kind != "" || c.Encoder.Kind != "" && c.Encoder.Kind != encoder.MLPKind.Name {
		return nil
	}
	for _, i := range f.Flat {
		field := f.Spec.Observation[i]
		if s := field.Space; s.DType() == tensor.Uint8 && len(s.Shape()) == 3 {
			return fmt.Errorf("observation %q of %s is an image, uint8%v, and an mlp would read its bytes one by one; expected agent.policy or agent.encoder {kind: file, path: …} of a network that reads images", field.Name, f.Spec.Name, s.Shape())
		}
	}
	return nil
}

// LayerNormed returns the torso with what the hidden layers read, and the result of each after its
// activation, normalised.
func (t *Torso) LayerNormed() *Torso {
	own := *t
	own.norm = true
	return &own
}

// Acting returns the torso of the policy: t itself, or one that does not read the privileged
// fields, for which it declares no inputs. It builds from the inputs of t as well.
func (t *Torso) Acting() (*Torso, error) {
	if len(t.c.Privileged) == 0 {
		return t, nil
	}
	f, err := t.f.without(t.c.Privileged)
	if err != nil {
		return nil, fmt.Errorf("privileged: %w", err)
	}
	own := *t
	own.f = f
	return &own, nil
}

// Frame returns what the torso was made for.
func (t *Torso) Frame() *Frame { return t.f }

// Encoder returns the encoder; nil where there is none.
func (t *Torso) Encoder() encoder.Encoder { return t.encoder }

// Inputs are the values of an observation in a graph.
type Inputs struct {
	// Obs has an input for each field of the spec, in order; those that are not read are absent.
	Obs []onnx.Value
	// Mask is bool [batch, MaskLen]; absent unless the environment has one.
	Mask onnx.Value
}

// Inputs declares the inputs of an observation, [batch, …] each in the field's own element type.
// Their names are prefix and the field's name, or agents.MaskInput.
func (t *Torso) Inputs(g *layer.Graph, prefix string) Inputs { return t.InputSequences(g, prefix, 0) }

// InputSequences declares inputs of sequences of a length, [batch, length, …], and returns them
// with their steps as rows, [batch·length, …]: the steps of the first sequence, then those of the
// next. Without a length they are the inputs of single observations.
func (t *Torso) InputSequences(g *layer.Graph, prefix string, length int) Inputs {
	var in Inputs
	for i, field := range t.f.Spec.Observation {
		if !t.f.Reads(i) {
			in.Obs = append(in.Obs, "")
			continue
		}
		in.Obs = append(in.Obs, Sequence(g, prefix+field.Name, length, field.Space.DType(), field.Space.Shape()...))
	}
	if t.f.Spec.Masked {
		in.Mask = Sequence(g, prefix+agents.MaskInput, length, tensor.Bool, t.f.MaskLen())
	}
	return in
}

// Sequence declares an input [batch, length, shape…] and returns it as [batch·length, shape…].
// Without a length it is [batch, shape…].
func Sequence(g *layer.Graph, name string, length int, d tensor.DType, shape ...int) onnx.Value {
	if length == 0 {
		return g.Batched(name, d, shape...)
	}
	return g.Reshape(g.Batched(name, d, append([]int{length}, shape...)...), append([]int{-1}, shape...)...)
}

// Features are what heads read.
type Features struct {
	// PerAsset is [batch, N, D] for windows of assets, and otherwise Pooled.
	PerAsset onnx.Value
	// Pooled is [batch, D].
	Pooled onnx.Value
	// Given are the parameters of the distribution, [batch, Frame.Parameters]: logits or means of a
	// user-supplied policy, which needs no last layer, and Pooled are then absent unless gSDE needs
	// them; otherwise Given is absent.
	Given onnx.Value
}

// Build appends the torso below the graph's scope.
func (t *Torso) Build(g *layer.Graph, in Inputs) (Features, error) {
	z, err := t.Encode(g, in)
	if err != nil {
		return Features{}, err
	}
	return t.Finish(g, in, z)
}

// Encode appends the encoder over the window; it is absent where there is none.
func (t *Torso) Encode(g *layer.Graph, in Inputs) (onnx.Value, error) {
	if t.f.Series < 0 {
		return "", nil
	}
	z, err := t.EncodeBy(g, in.Obs[t.f.Series], t.encoder.Build)
	if err != nil {
		field := t.f.Spec.Observation[t.f.Series]
		return "", fmt.Errorf("encoder: observation %q %v: %w", field.Name, field.Space.Shape(), err)
	}
	return z, nil
}

// EncodeBy appends what build makes of x below the scope of the encoder, whose parameters it is to
// use, with the configuration's adapters.
func (t *Torso) EncodeBy(g *layer.Graph, x onnx.Value, build func(g *layer.Graph, x onnx.Value) (onnx.Value, error)) (onnx.Value, error) {
	if t.c.LoRA != nil {
		return g.Adapt(encoderScope, *t.c.LoRA, x, build)
	}
	return build(g.In(encoderScope), x)
}

// Finish appends what follows the encoder, whose result is z.
func (t *Torso) Finish(g *layer.Graph, in Inputs, z onnx.Value) (Features, error) {
	f := t.f
	if f.Assets+f.Among > 0 {
		mixed := encoder.CrossAssetInputs{Features: z, Valid: t.valid(g, in)}
		if f.Position >= 0 {
			mixed.Position = in.Obs[f.Position]
		}
		if f.Cash >= 0 {
			mixed.Cash = in.Obs[f.Cash]
		}
		out, err := encoder.BuildCrossAsset(g.In("cross"), t.c.CrossAsset, mixed)
		if err != nil || f.Assets > 0 && len(f.Shared) == 0 {
			return Features{PerAsset: out.Assets, Pooled: out.Portfolio}, err
		}
		if f.Assets > 0 {
			each := tensor.New(tensor.Float32, 1, f.Assets, 1)
			for i := range each.Float32s() {
				each.Float32s()[i] = 1
			}
			assets, all := []onnx.Value{out.Assets}, []onnx.Value{out.Portfolio}
			for _, i := range f.Shared {
				z := in.Obs[i]
				assets, all = append(assets, g.Mul(g.Unsqueeze(z, 1), g.Const(each))), append(all, z)
			}
			return Features{PerAsset: g.Concat(2, assets...), Pooled: g.Concat(1, all...)}, g.Err()
		}
		z = out.Portfolio
	}
	x, err := t.Join(g, in, z)
	if err != nil {
		return Features{}, err
	}
	return t.Hidden(g, x), g.Err()
}

// Join appends what lies before the hidden layers, where actions are not those of assets: all
// fields as one vector [batch, D], encoded if an encoder is named. z is the result of Encode,
// summed up where it is of assets.
func (t *Torso) Join(g *layer.Graph, in Inputs, z onnx.Value) (onnx.Value, error) {
	f := t.f
	x := t.flat(g, in, z)
	if f.Series < 0 && t.encoder != nil {
		var err error
		if x, err = t.EncodeBy(g, x, t.encoder.Build); err != nil {
			return "", fmt.Errorf("encoder: the observations of %s together: %w", f.Spec.Name, err)
		}
	}
	return x, g.Err()
}

// flat appends the fields that are flattened as one vector [batch, D], behind what is given.
func (t *Torso) flat(g *layer.Graph, in Inputs, before ...onnx.Value) onnx.Value {
	parts := slices.DeleteFunc(before, func(z onnx.Value) bool { return z == "" })
	for _, i := range t.f.Flat {
		parts = append(parts, Flatten(g, in.Obs[i], t.f.Spec.Observation[i].Space))
	}
	return g.Concat(1, parts...)
}

// Hidden appends the hidden layers over x [batch, D].
func (t *Torso) Hidden(g *layer.Graph, x onnx.Value) Features {
	l := g.In("hidden")
	if !t.norm {
		x = l.MLP(x, t.c.Hidden, t.c.Activation, t.init)
		return Features{PerAsset: x, Pooled: x}
	}
	x = l.LayerNorm("norm", x)
	for i, width := range t.c.Hidden {
		x = l.Activate(t.c.Activation, l.Linear(fmt.Sprintf("fc%d", i), x, width, t.init))
		x = l.LayerNorm(fmt.Sprintf("norm%d", i), x)
	}
	return Features{PerAsset: x, Pooled: x}
}

// Flatten appends a field as a float32 vector [batch, D].
func Flatten(g *layer.Graph, x onnx.Value, s envs.Space) onnx.Value {
	n := 1
	for _, k := range s.Shape() {
		n *= k
	}
	switch s := s.(type) {
	case envs.Discrete:
		return oneHot(g, x, s.N)
	case envs.MultiDiscrete:
		parts := make([]onnx.Value, len(s.N))
		for i, k := range s.N {
			parts[i] = oneHot(g, g.Squeeze(g.Slice(x, 1, i, i+1), 1), k)
		}
		return g.Concat(1, parts...)
	}
	if s.DType() != tensor.Float32 {
		x = g.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(tensor.Float32)))
	}
	if len(s.Shape()) == 1 {
		return x
	}
	return g.Reshape(x, -1, n)
}

// oneHot turns x [batch] of integers into [batch, n].
func oneHot(g *layer.Graph, x onnx.Value, n int) onnx.Value {
	classes := make([]int, n)
	for i := range classes {
		classes[i] = i
	}
	equal := g.Op("Equal", []onnx.Value{g.Unsqueeze(x, 1), g.Ints(classes...)})
	return g.Op("Cast", []onnx.Value{equal}, onnx.AttrInt("to", int(tensor.Float32)))
}

// valid appends which assets have a choice, bool [batch, N]: the others are not listed, or
// suspended, and nobody should look at them.
func (t *Torso) valid(g *layer.Graph, in Inputs) onnx.Value {
	if t.f.Tradable >= 0 {
		return g.Op("Cast", []onnx.Value{in.Obs[t.f.Tradable]}, onnx.AttrInt("to", int(tensor.Bool)))
	}
	if in.Mask == "" || t.f.Among > 0 {
		return ""
	}
	mask, n := in.Mask, t.f.Assets*t.f.Heads[0]
	if t.f.Portfolio() > 0 {
		mask = g.Slice(mask, 1, 0, n)
	}
	choices := g.Reshape(g.Op("Cast", []onnx.Value{mask}, onnx.AttrInt("to", int(tensor.Float32))), -1, t.f.Assets, t.f.Heads[0])
	return g.Op("Greater", []onnx.Value{g.Sum(choices, 2), g.Float(1.5)})
}
