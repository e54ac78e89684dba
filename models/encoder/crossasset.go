package encoder

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// CrossAssetConfig says how assets are mixed.
type CrossAssetConfig struct {
	// Mix is attention, mlp or none.
	Mix string `yaml:"mix"`
	// DModel is the width of the result; 0 keeps that of the features.
	DModel int `yaml:"d_model"`
	// NLayers is the number of blocks, or of layers.
	NLayers int `yaml:"n_layers"`
	// NHeads and FFMult describe the blocks of attention.
	NHeads int `yaml:"n_heads"`
	FFMult int `yaml:"ff_mult"`
	// Activation is that of feed-forward layers; see layer.Activations.
	Activation string `yaml:"activation"`
	// Dropout is the share of values that training leaves out at random.
	Dropout float64 `yaml:"dropout"`
}

// CrossAssetDefaults returns one block of attention with four heads.
func CrossAssetDefaults() CrossAssetConfig {
	return CrossAssetConfig{Mix: "attention", NLayers: 1, NHeads: 4, FFMult: 2, Activation: "gelu"}
}

// Validate reports all problems.
func (c CrossAssetConfig) Validate() error {
	var p configs.Problems
	p.OneOf("mix", c.Mix, "attention", "mlp", "none")
	p.NonNegative("d_model", c.DModel)
	p.AtLeast("n_layers", c.NLayers, 1)
	p.AtLeast("n_heads", c.NHeads, 1)
	p.AtLeast("ff_mult", c.FFMult, 1)
	p.Check(c.DModel == 0 || c.NHeads < 1 || c.Mix != "attention" || c.DModel%c.NHeads == 0, "n_heads", "must divide d_model, %d, but is %d", c.DModel, c.NHeads)
	p.OneOf("activation", c.Activation, layer.Activations()...)
	p.Check(c.Dropout >= 0 && c.Dropout < 1, "dropout", "must be in [0, 1), not %v", c.Dropout)
	return p.Err()
}

// CrossAssetInputs are the values that are mixed.
type CrossAssetInputs struct {
	// Features are those of an encoder, float32 [batch, N, D].
	Features onnx.Value
	// Position is float32 [batch, N], Cash float32 [batch, 1]; either may be absent.
	Position, Cash onnx.Value
	// Valid is bool [batch, N] and says which assets exist; absent means all. Features of other
	// assets must be finite all the same.
	Valid onnx.Value
}

// CrossAssetOutputs are the mixed values.
type CrossAssetOutputs struct {
	// Assets is [batch, N, D'] and Portfolio [batch, D'].
	Assets, Portfolio onnx.Value
}

// BuildCrossAsset appends the layer below g's scope.
func BuildCrossAsset(g *layer.Graph, c CrossAssetConfig, in CrossAssetInputs) (CrossAssetOutputs, error) {
	if err := c.Validate(); err != nil {
		return CrossAssetOutputs{}, fmt.Errorf("crossasset: %w", err)
	}
	if err := in.check(g); err != nil {
		return CrossAssetOutputs{}, fmt.Errorf("crossasset: %w", err)
	}
	n, width := g.Extent(in.Features, 1), g.Extent(in.Features, 2)
	if c.DModel > 0 {
		width = c.DModel
	}
	if c.Mix == "attention" && width%c.NHeads != 0 {
		return CrossAssetOutputs{}, fmt.Errorf("crossasset: %d heads do not divide the features' width of %d; set d_model", c.NHeads, width)
	}
	parts := []onnx.Value{in.Features}
	if in.Position != "" {
		parts = append(parts, g.Unsqueeze(in.Position, -1))
	}
	if in.Cash != "" {
		ones := tensor.New(tensor.Float32, 1, n, 1)
		for i := range ones.Float32s() {
			ones.Float32s()[i] = 1
		}
		parts = append(parts, g.Mul(g.Unsqueeze(in.Cash, -1), g.Const(ones)))
	}
	x := g.Linear("join", g.Concat(-1, parts...), width, layer.Xavier(1))
	mean := meanOf(g, in.Valid)
	switch c.Mix {
	case "attention":
		var bias onnx.Value
		if in.Valid != "" {
			bias = g.KeyBias(in.Valid)
		}
		block := layer.Block{Heads: c.NHeads, FF: c.FFMult, Activation: c.Activation, Dropout: c.Dropout}
		for i := range c.NLayers {
			x = g.TransformerBlock(fmt.Sprintf("block%d", i), x, bias, block)
		}
		x = g.LayerNorm("norm", x)
	case "mlp":
		for i := range c.NLayers {
			l := g.In(fmt.Sprintf("mix%d", i))
			others := l.Unsqueeze(l.Linear("all", mean(x), width, layer.Xavier(1)), 1)
			y := l.Activate(c.Activation, l.Add(l.Linear("own", x, width, layer.Xavier(1)), others))
			x = l.Add(x, l.Dropout("drop", y, c.Dropout))
		}
	case "none":
		x = g.Activate(c.Activation, x)
	}
	return CrossAssetOutputs{Assets: x, Portfolio: mean(x)}, g.Err()
}

// meanOf returns a function that averages [batch, N, D] over the valid assets; over none, it
// gives 0.
func meanOf(g *layer.Graph, valid onnx.Value) func(onnx.Value) onnx.Value {
	if valid == "" {
		return func(x onnx.Value) onnx.Value { return g.Mean(x, 1) }
	}
	v := g.Op("Cast", []onnx.Value{valid}, onnx.AttrInt("to", int(tensor.Float32)))
	count := g.Max(g.Op("ReduceSum", []onnx.Value{v, g.Ints(1)}, onnx.AttrInt("keepdims", 1)), g.Float(1))
	weights := g.Unsqueeze(g.Div(v, count), 1) // [batch, 1, N]
	return func(x onnx.Value) onnx.Value { return g.Squeeze(g.MatMul(weights, x), 1) }
}

func (in CrossAssetInputs) check(g *layer.Graph) error {
	if err := g.Err(); err != nil {
		return err
	}
	f := g.Type(in.Features)
	if f.DType != tensor.Float32 || len(f.Dims) != 3 || !f.Dims[1].IsKnown() || !f.Dims[2].IsKnown() {
		return fmt.Errorf("the features are %v, expected float32[batch,assets,width]", f)
	}
	n := f.Dims[1]
	for _, want := range []struct {
		name  string
		v     onnx.Value
		dtype tensor.DType
		width onnx.Dim
	}{
		{"position", in.Position, tensor.Float32, n}, {"cash", in.Cash, tensor.Float32, onnx.Known(1)}, {"valid", in.Valid, tensor.Bool, n},
	} {
		if want.v == "" {
			continue
		}
		if t := g.Type(want.v); t.DType != want.dtype || len(t.Dims) != 2 || t.Dims[1] != want.width {
			return fmt.Errorf("%s is %v, expected %v[batch,%v]", want.name, t, want.dtype, want.width)
		}
	}
	return nil
}
