package bake

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The input and the output that [Sample] adds to a model.
const (
	NoiseInput   = "noise"
	SampleOutput = "sample"
)

// MetaNoise is the metadata key that says of which standard distribution the noise is drawn: gumbel
// or normal.
const MetaNoise = MetaPrefix + "noise"

// Sample returns m with a way to draw actions: another input, NoiseInput, of the form of the
// scores, and another output, SampleOutput, of the form of the choice, as last. With independent
// draws of the standard Gumbel distribution, −log(−log u) for uniform u, as noise the heads'
// choices are drawn with the probabilities of which the scores are the logarithms (Maddison et al.
// 2014, arXiv 1411.0030); with zeros they are the best ones. Randomness stays outside of the graph,
// so a caller can reproduce it.
func Sample(m *onnx.Model, c Choice) (*onnx.Model, error) {
	out, err := sample(m, c)
	if err != nil {
		return nil, fmt.Errorf("sample %q by %q: %w", c.Output, c.Scores, err)
	}
	return out, nil
}

func sample(m *onnx.Model, c Choice) (*onnx.Model, error) {
	action, scores := outputType(m, c.Output), outputType(m, c.Scores)
	total := 0
	for _, n := range c.Heads {
		total += max(n, 0)
	}
	if scores.DType != tensor.Float32 || len(scores.Dims) != 2 || scores.Dims[1] != onnx.Known(total) {
		return nil, fmt.Errorf("the scores are %v, expected float32[batch %d] for heads of %v", scores, total, c.Heads)
	}
	flat := len(action.Dims) == 1 && len(c.Heads) == 1
	if !flat && (len(action.Dims) != 2 || action.Dims[1] != onnx.Known(len(c.Heads))) {
		return nil, fmt.Errorf("the choice is %v, expected one of %d heads", action, len(c.Heads))
	}
	if err := free(m); err != nil {
		return nil, err
	}
	m = m.ShallowClone()
	b := onnx.Extend(m)
	noisy := b.Op("Add", []onnx.Value{onnx.Value(c.Scores), b.Input(NoiseInput, scores)})
	outer := b.SetScope(SampleOutput + "/")
	defer b.SetScope(outer)
	var chosen []onnx.Value
	at := 0
	for _, n := range c.Heads {
		head := b.Op("Slice", []onnx.Value{noisy, b.Ints(at), b.Ints(at + n), b.Ints(1)})
		chosen = append(chosen, b.Op("ArgMax", []onnx.Value{head}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 1)))
		at += n
	}
	v := chosen[0]
	if len(chosen) > 1 {
		v = b.Op("Concat", chosen, onnx.AttrInt("axis", 1))
	}
	if flat {
		v = b.Op("Squeeze", []onnx.Value{v, b.Ints(1)})
	}
	if c.Start != nil {
		if len(c.Start) != len(c.Heads) {
			return nil, fmt.Errorf("%d starts for %d heads", len(c.Start), len(c.Heads))
		}
		v = b.Op("Add", []onnx.Value{v, b.Const(tensor.Of(slices.Clone(c.Start), len(c.Start)))})
	}
	if action.DType != tensor.Int64 {
		v = b.Op("Cast", []onnx.Value{v}, onnx.AttrInt("to", int(action.DType)))
	}
	b.SetScope("")
	b.Output(b.Rename(v, SampleOutput), action)
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	m.SetMeta(MetaNoise, "gumbel")
	return m, onnx.Check(m)
}

// free reports a model that samples already.
func free(m *onnx.Model) error {
	for _, v := range slices.Concat(m.Graph.Input, m.Graph.Output) {
		if v.Name == NoiseInput || v.Name == SampleOutput {
			return fmt.Errorf("the model has a %q already", v.Name)
		}
	}
	return nil
}

// outputType returns the type of an output, the zero type where there is none of that name.
func outputType(m *onnx.Model, name string) onnx.TensorType {
	for _, v := range m.Graph.Output {
		if t, ok := v.TensorType(); ok && v.Name == name {
			return t
		}
	}
	return onnx.TensorType{}
}
