package bake

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Start makes choices, which networks count from 0, those of the environment: it subtracts where
// these begin from an input, or adds it to an output.
type Start struct {
	// Port names an input or output of int64, [batch, …].
	Port string
	// Of are the environment's first choices, for each element of a row.
	Of []int64
}

// Apply returns the environment's choices for those of a network, whole rows of int64.
func (s *Start) Apply(x *tensor.Tensor) *tensor.Tensor {
	out := x.Clone()
	for i := range out.Int64s() {
		out.Int64s()[i] += s.Of[i%len(s.Of)]
	}
	return out
}

func (s *Start) wrap(m *onnx.Model) (*onnx.Model, error) {
	out, err := s.shift(m)
	if err != nil {
		return nil, fmt.Errorf("start of the choices of %q: %w", s.Port, err)
	}
	return out, nil
}

func (s *Start) shift(m *onnx.Model) (*onnx.Model, error) {
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == s.Port })
	t := outputType(m, s.Port)
	if at >= 0 {
		t, _ = m.Graph.Input[at].TensorType()
	}
	n := 1
	for _, d := range t.Dims[min(1, len(t.Dims)):] {
		n *= d.Value
	}
	switch {
	case len(t.Dims) == 0:
		return nil, errors.New("the network has no such input or output")
	case t.DType != tensor.Int64 || n != len(s.Of):
		return nil, fmt.Errorf("it is %v, and there are %d starts", t, len(s.Of))
	}
	starts := tensor.Of(slices.Clone(s.Of), len(s.Of))
	if at < 0 {
		return behind(m, s.Port, "counted", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Add", []onnx.Value{x, b.Const(starts)})
		})
	}
	return inFront(m, s.Port, t, func(b *onnx.Builder, x, z onnx.Value) {
		b.Append(&onnx.Node{Name: s.Port + "/Sub", OpType: "Sub", Input: []string{string(x), string(b.Const(starts))}, Output: []string{string(z)}})
	})
}
