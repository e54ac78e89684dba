package bake

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Fixed gives one float32 input of a network, [batch, n], the same value in every row, so that the
// served model has no such input. There has to be another one.
type Fixed struct {
	// Input names the network's input.
	Input string
	// Value has the elements of a row.
	Value []float32
}

func (f *Fixed) wrap(m *onnx.Model) (*onnx.Model, error) {
	out, err := f.fix(m)
	if err != nil {
		return nil, fmt.Errorf("value of input %q: %w", f.Input, err)
	}
	return out, nil
}

func (f *Fixed) fix(m *onnx.Model) (*onnx.Model, error) {
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == f.Input })
	if at < 0 {
		return m, nil // The network does not look at it.
	}
	t, ok := m.Graph.Input[at].TensorType()
	if !ok || t.DType != tensor.Float32 || len(t.Dims) != 2 || t.Dims[1].Value != len(f.Value) {
		return nil, fmt.Errorf("it is %v, the value has %d elements", t, len(f.Value))
	}
	if len(m.Graph.Input) == 1 {
		return nil, errors.New("the network has no other input, which would say how many rows there are")
	}
	rows := onnx.Value(m.Graph.Input[(at+1)%len(m.Graph.Input)].Name)
	m, err := onnx.Rename(m, func(v onnx.Value) onnx.Value { return v })
	if err != nil {
		return nil, err
	}
	m.Graph.Input = slices.Delete(m.Graph.Input, at, at+1)
	b := onnx.Extend(m)
	outer := b.SetScope(f.Input + "/")
	batch := b.Op("Gather", []onnx.Value{b.Op("Shape", []onnx.Value{rows}), b.Ints(0)}, onnx.AttrInt("axis", 0))
	shape := b.Op("Concat", []onnx.Value{batch, b.Ints(len(f.Value))}, onnx.AttrInt("axis", 0))
	b.Append(&onnx.Node{Name: f.Input + "/Expand", OpType: "Expand", Input: []string{string(b.Const(tensor.Of(slices.Clone(f.Value), 1, len(f.Value)))), string(shape)}, Output: []string{f.Input}})
	b.SetScope(outer)
	if m, err = b.Model(); err != nil {
		return nil, err
	}
	return m, onnx.Sort(m.Graph)
}
