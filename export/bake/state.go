package bake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// MetaState is the metadata key under which a model that remembers lists its states, as JSON: [{"input","output","shape","initial"}].
const MetaState = MetaPrefix + "state"

// State is something that a model remembers from one step of an episode to the next. It is given as an input and comes back, changed, as an output: whoever serves the model feeds the output of one step to the next, and Initial to the first.
type State struct {
	// Input and Output name the pair; both are float32 [batch, Shape…].
	Input  string `json:"input"`
	Output string `json:"output"`
	// Shape is that of one row, without the batch.
	Shape []int `json:"shape"`
	// Initial is what an episode begins with: one number for all elements, or one for each in row-major order.
	Initial []float32 `json:"initial"`
}

// Fill writes the initial value into a row, which has the state's number of elements.
func (s State) Fill(row []float32) {
	if len(s.Initial) == 1 {
		for i := range row {
			row[i] = s.Initial[0]
		}
		return
	}
	copy(row, s.Initial)
}

// Tensor returns the initial value of n rows.
func (s State) Tensor(n int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, append([]int{n}, s.Shape...)...)
	size := t.Len() / max(n, 1)
	for i := range n {
		s.Fill(t.Float32s()[i*size : (i+1)*size])
	}
	return t
}

// StatesOf returns the states of a model in the order of its metadata, none where it does not remember. Metadata that contradict the graph are an error.
func StatesOf(m *onnx.Model) ([]State, error) {
	text, ok := m.Meta(MetaState)
	if !ok {
		return nil, nil
	}
	var list []State
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", MetaState, err)
	}
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.Input] || seen[s.Output] {
			return nil, fmt.Errorf("metadata %s: %q or %q is listed twice", MetaState, s.Input, s.Output)
		}
		seen[s.Input], seen[s.Output] = true, true
		n, err := tensor.Len(s.Shape)
		if err != nil || len(s.Initial) != 1 && len(s.Initial) != n {
			return nil, fmt.Errorf("metadata %s: state %q of shape %v has %d initial values, expected 1 or one for each element", MetaState, s.Input, s.Shape, len(s.Initial))
		}
		for _, v := range []struct {
			name string
			list []*onnx.ValueInfo
		}{{s.Input, m.Graph.Input}, {s.Output, m.Graph.Output}} {
			i := slices.IndexFunc(v.list, func(p *onnx.ValueInfo) bool { return p.Name == v.name })
			if i < 0 {
				return nil, fmt.Errorf("metadata %s: the model has no %q", MetaState, v.name)
			}
			t, _ := v.list[i].TensorType()
			if !fitsState(t, s.Shape) {
				return nil, fmt.Errorf("metadata %s: %q is %v, expected float32[batch %v]", MetaState, v.name, t, s.Shape)
			}
		}
	}
	return list, nil
}

func fitsState(t onnx.TensorType, shape []int) bool {
	if t.DType != tensor.Float32 || len(t.Dims) != 1+len(shape) || t.Dims[0].IsKnown() {
		return false
	}
	for i, n := range shape {
		if t.Dims[1+i] != onnx.Known(n) {
			return false
		}
	}
	return true
}

// setStates adds states to the metadata.
func setStates(m *onnx.Model, add []State) error {
	have, err := StatesOf(m)
	if err != nil {
		return err
	}
	text, err := json.Marshal(append(have, add...))
	if err != nil {
		return err
	}
	m.SetMeta(MetaState, string(text))
	return nil
}
