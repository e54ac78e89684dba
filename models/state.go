package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// StateKey is the metadata key under which a model that remembers lists its states, as JSON:
// [{"input","output","shape","initial"}].
const StateKey = "onnxrl.state"

// StatePrefix and NextStatePrefix precede the names of a recurrent policy's states in training, float32
// [batch, …]: input state/x is 0 in the first step of an episode and afterwards what output
// next_state/x was.
const (
	StatePrefix     = "state/"
	NextStatePrefix = "next_state/"
)

// State is something that a model remembers from one step of an episode to the next. It is given as
// an input and comes back, changed, as an output: whoever runs the model feeds the output of one
// step to the next, and Initial to the first.
type State struct {
	// Input and Output name the pair; both are float32 [batch, Shape…].
	Input  string `json:"input"`
	Output string `json:"output"`
	// Shape is that of one row, without the batch.
	Shape []int `json:"shape"`
	// Initial is what an episode begins with: one number for all elements, or one for each in
	// row-major order.
	Initial []float32 `json:"initial"`
}

// ZeroState declares the state of a policy network: it begins with 0.
func ZeroState(name string, shape ...int) State {
	return State{Input: StatePrefix + name, Output: NextStatePrefix + name, Shape: append([]int{}, shape...), Initial: []float32{0}}
}

// Name is what [ZeroState] was given.
func (s State) Name() string { return strings.TrimPrefix(s.Input, StatePrefix) }

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

// Len is the number of elements of a row.
func (s State) Len() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Tensor returns the initial value of n rows.
func (s State) Tensor(n int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, append([]int{n}, s.Shape...)...)
	size := s.Len()
	for i := range n {
		s.Fill(t.Float32s()[i*size : (i+1)*size])
	}
	return t
}

// States returns the states of a model in the order of its metadata, none where it does not remember.
// Metadata that contradict the graph are an error.
func States(m *onnx.Model) ([]State, error) {
	text, ok := m.Meta(StateKey)
	if !ok {
		return nil, nil
	}
	list, err := ParseStates(text)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		for _, v := range []struct {
			name string
			list []*onnx.ValueInfo
		}{{s.Input, m.Graph.Input}, {s.Output, m.Graph.Output}} {
			i := slices.IndexFunc(v.list, func(p *onnx.ValueInfo) bool { return p.Name == v.name })
			if i < 0 {
				return nil, fmt.Errorf("metadata %s: the model has no %q", StateKey, v.name)
			}
			t, _ := v.list[i].TensorType()
			if !fitsState(t, s.Shape) {
				return nil, fmt.Errorf("metadata %s: %q is %v, expected float32[batch %v]", StateKey, v.name, t, s.Shape)
			}
		}
	}
	return list, nil
}

// ParseStates reads the text of the metadata.
func ParseStates(text string) ([]State, error) {
	var list []State
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", StateKey, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("metadata %s: there is something behind the list", StateKey)
	}
	seen := map[string]bool{}
	for _, s := range list {
		if s.Input == "" || s.Output == "" {
			return nil, fmt.Errorf("metadata %s: a state has input %q and output %q, expected names", StateKey, s.Input, s.Output)
		}
		if seen[s.Input] || seen[s.Output] {
			return nil, fmt.Errorf("metadata %s: %q or %q is listed twice", StateKey, s.Input, s.Output)
		}
		seen[s.Input], seen[s.Output] = true, true
		n, err := tensor.Len(s.Shape)
		if err != nil || len(s.Initial) != 1 && len(s.Initial) != n {
			return nil, fmt.Errorf("metadata %s: state %q of shape %v has %d initial values, expected 1 or one for each element", StateKey, s.Input, s.Shape, len(s.Initial))
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

// AddStates adds states to the metadata of a model.
func AddStates(m *onnx.Model, add []State) error {
	have, err := States(m)
	if err != nil {
		return err
	}
	text, err := json.Marshal(append(have, add...))
	if err != nil {
		return err
	}
	m.SetMeta(StateKey, string(text))
	return nil
}

// NamedStates finds the states of a policy network by their names: an input StatePrefix + name, and an output
// NextStatePrefix + name. They begin with 0. One without the other, and an input that is not float32
// with a symbolic batch in front and nothing else symbolic, are errors. Exporters often leave the
// extents of outputs open; those of inputs are what counts.
func NamedStates(g *onnx.Graph) ([]State, error) {
	has := func(list []*onnx.ValueInfo, name string) bool {
		return slices.ContainsFunc(list, func(v *onnx.ValueInfo) bool { return v.Name == name })
	}
	var list []State
	for _, v := range g.Inputs() {
		name, ok := strings.CutPrefix(v.Name, StatePrefix)
		if !ok {
			continue
		}
		t, _ := v.TensorType()
		var shape []int
		for _, d := range t.Dims[min(1, len(t.Dims)):] {
			shape = append(shape, d.Value)
		}
		s := ZeroState(name, shape...)
		switch {
		case !fitsState(t, s.Shape):
			return nil, fmt.Errorf("state %q is %v, expected float32[batch,…] with a symbolic batch and known extents", s.Input, t)
		case !has(g.Output, s.Output):
			return nil, fmt.Errorf("state %q: the network has no output %q", s.Input, s.Output)
		}
		list = append(list, s)
	}
	for _, v := range g.Output {
		if name, ok := strings.CutPrefix(v.Name, NextStatePrefix); ok && !has(g.Inputs(), StatePrefix+name) {
			return nil, fmt.Errorf("output %q is a state's, and the network has no input %q", v.Name, StatePrefix+name)
		}
	}
	return list, nil
}
