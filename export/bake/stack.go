package bake

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Frames makes a model that takes the last k observations, oldest first, one that takes an
// observation at a time and remembers the others.
type Frames struct {
	// Input is float32 [batch, k, …]; the model that is made takes [batch, …] under the same name.
	Input string
	// Shape is that of a frame where the input is [batch, k·n], the frames one after the other; nil
	// otherwise.
	Shape []int
	// Initial is what the elements of the k−1 observations before an episode's first one are. It
	// must be finite, for metadata have it as JSON.
	Initial float32
	// Repeat lets the first observation stand for those before it, as Gymnasium's
	// FrameStackObservation does by default, instead of Initial.
	Repeat bool
}

// Stack returns m with a stack of frames inside. It has another input and output, INPUT_state_in
// and INPUT_state_out [batch, k−1, …], and with Repeat also INPUT_seen_in and INPUT_seen_out
// [batch, 1], which say whether an episode has begun; all are listed under [models.StateKey]. Where k is
// 1 nothing is remembered.
func Stack(m *onnx.Model, f Frames) (*onnx.Model, error) {
	return f.wrap(m)
}

func (f Frames) wrap(m *onnx.Model) (*onnx.Model, error) {
	out, err := f.stack(m)
	if err != nil {
		return nil, fmt.Errorf("stack frames of input %q: %w", f.Input, err)
	}
	return out, nil
}

func (f Frames) stack(m *onnx.Model) (*onnx.Model, error) {
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == f.Input })
	if at < 0 {
		return nil, fmt.Errorf("the model has no such input")
	}
	t, ok := m.Graph.Input[at].TensorType()
	if !ok || t.DType != tensor.Float32 || len(t.Dims) < 2 || t.Dims[0].IsKnown() || !t.Dims[1].IsKnown() || t.Dims[1].Value < 1 {
		return nil, fmt.Errorf("it is %v, expected float32[batch frames …]", t)
	}
	if f.Initial-f.Initial != 0 {
		return nil, fmt.Errorf("initial value %g, expected a finite number", f.Initial)
	}
	flat := f.Shape != nil
	if flat {
		n, err := tensor.Len(f.Shape)
		if err != nil || n < 1 || len(t.Dims) != 2 || t.Dims[1].Value%n != 0 {
			return nil, fmt.Errorf("it is %v, expected float32[batch n] for whole frames of %v", t, f.Shape)
		}
		dims := []onnx.Dim{t.Dims[0], onnx.Known(t.Dims[1].Value / n)}
		for _, d := range f.Shape {
			dims = append(dims, onnx.Known(d))
		}
		t.Dims = dims
	}
	frames := t.Dims[1].Value
	stacked := onnx.Extend(m).Fresh(f.Input + "/stacked")
	m, err := onnx.Rename(m, func(v onnx.Value) onnx.Value {
		if v == onnx.Value(f.Input) {
			return stacked
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	m.Graph.Input = slices.Delete(m.Graph.Input, at, at+1)
	b := onnx.Extend(m)
	frame := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: slices.Concat(t.Dims[:1], t.Dims[2:])}
	x := b.Input(f.Input, frame)
	g := m.Graph
	last := len(g.Input) - 1
	g.Input = slices.Insert(g.Input[:last], at, g.Input[last])
	whole := stacked
	if flat {
		whole = b.Fresh(f.Input + "/frames")
	}
	states := f.nodes(b, x, t, frames, whole)
	if flat {
		n, _ := tensor.Len(f.Shape) // checked above
		b.Append(&onnx.Node{Name: f.Input + "/Reshape", OpType: "Reshape", Input: []string{string(whole), string(b.Ints(-1, frames*n))}, Output: []string{string(stacked)}})
	}
	if m, err = b.Model(); err != nil {
		return nil, err
	}
	if err := onnx.Sort(m.Graph); err != nil {
		return nil, err
	}
	if len(states) > 0 {
		if err := models.AddStates(m, states); err != nil {
			return nil, err
		}
	}
	if err := onnx.Check(m); err != nil {
		return nil, err
	}
	_, err = models.States(m)
	return m, err
}

// nodes appends the stack and returns what it remembers.
func (f Frames) nodes(b *onnx.Builder, x onnx.Value, t onnx.TensorType, frames int, stacked onnx.Value) []models.State {
	newest := b.Op("Unsqueeze", []onnx.Value{x, b.Ints(1)})
	if frames == 1 {
		b.Append(&onnx.Node{Name: f.Input + "/Identity", OpType: "Identity", Input: []string{string(newest)}, Output: []string{string(stacked)}})
		return nil
	}
	var states []models.State
	state := t
	state.Dims = slices.Clone(t.Dims)
	state.Dims[1] = onnx.Known(frames - 1)
	s := models.State{Input: f.Input + "_state_in", Output: f.Input + "_state_out", Initial: []float32{f.Initial}}
	for _, d := range state.Dims[1:] {
		s.Shape = append(s.Shape, d.Value)
	}
	past := b.Input(s.Input, state)
	if f.Repeat {
		s.Initial = []float32{0}
		flag := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{t.Dims[0], onnx.Known(1)}}
		seen := models.State{Input: f.Input + "_seen_in", Output: f.Input + "_seen_out", Shape: []int{1}, Initial: []float32{0}}
		in := b.Input(seen.Input, flag)
		wide := in // [batch, 1, 1, …]
		if extra := len(t.Dims) - 2; extra > 0 {
			axes := make([]int, extra)
			for i := range axes {
				axes[i] = 2 + i
			}
			wide = b.Op("Unsqueeze", []onnx.Value{in, b.Ints(axes...)})
		}
		past = b.Op("Where", []onnx.Value{b.Op("Greater", []onnx.Value{wide, b.Float(0)}), past, newest})
		// 1, in the shape that only the input tells.
		b.Output(b.Rename(b.Op("Max", []onnx.Value{in, b.Float(1)}), seen.Output), flag)
		states = append(states, seen)
	}
	b.Append(&onnx.Node{Name: f.Input + "/Concat", OpType: "Concat", Input: []string{string(past), string(newest)}, Output: []string{string(stacked)}, Attribute: []*onnx.Attribute{onnx.AttrInt("axis", 1)}})
	b.Output(b.Rename(b.Op("Slice", []onnx.Value{stacked, b.Ints(1), b.Ints(frames), b.Ints(1)}), s.Output), state)
	return append([]models.State{s}, states...)
}
