package bake

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Normal shifts and scales every element of one float32 input of a network, z = (x − Mean)/Std, and
// limits z to ±Clip: the running statistics of a training run, as they were when the policy was
// taken.
type Normal struct {
	// Input names the network's input.
	Input string
	// Mean and Std are of the elements of a row, in row-major order.
	Mean, Std []float64
	// Clip is the limit; 0 limits nothing.
	Clip float64
}

// Validate reports statistics that do not fit together or cannot be divided by.
func (n *Normal) Validate() error {
	if len(n.Mean) == 0 || len(n.Mean) != len(n.Std) {
		return fmt.Errorf("normalization of input %q: %d means and %d deviations", n.Input, len(n.Mean), len(n.Std))
	}
	var errs []error
	for i := range n.Mean {
		if s, m := float64(float32(n.Std[i])), float64(float32(n.Mean[i])); !(s > 0) || math.IsInf(s, 0) || m-m != 0 {
			errs = append(errs, fmt.Errorf("normalization of input %q: element %d: mean %g, deviation %g", n.Input, i, n.Mean[i], n.Std[i]))
		}
	}
	if !(n.Clip >= 0) {
		errs = append(errs, fmt.Errorf("normalization of input %q: limit %g", n.Input, n.Clip))
	}
	return errors.Join(errs...)
}

// Apply returns z for x [rows, …] in float64, rounded at the end.
func (n *Normal) Apply(x *tensor.Tensor) (*tensor.Tensor, error) {
	if x.DType() != tensor.Float32 || x.Rank() == 0 || x.Len() != x.Shape()[0]*len(n.Mean) {
		return nil, fmt.Errorf("normalize input %q: %v, expected float32 and %d elements in a row", n.Input, x, len(n.Mean))
	}
	z := tensor.New(tensor.Float32, x.Shape()...)
	limit := n.Clip
	if limit == 0 {
		limit = math.Inf(1)
	}
	for i, v := range x.Float32s() {
		k := i % len(n.Mean)
		z.Float32s()[i] = float32(max(-limit, min(limit, (float64(v)-n.Mean[k])/n.Std[k])))
	}
	return z, nil
}

func (n *Normal) wrap(m *onnx.Model) (*onnx.Model, error) {
	out, err := n.normalize(m)
	if err != nil {
		return nil, fmt.Errorf("normalization of input %q: %w", n.Input, err)
	}
	return out, nil
}

func (n *Normal) normalize(m *onnx.Model) (*onnx.Model, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == n.Input })
	if at < 0 {
		return nil, errors.New("the network has no such input")
	}
	t, ok := m.Graph.Input[at].TensorType()
	size, shape := 1, []int{}
	for _, d := range t.Dims[min(1, len(t.Dims)):] {
		size *= d.Value
		shape = append(shape, d.Value)
	}
	if !ok || t.DType != tensor.Float32 || len(t.Dims) < 2 || size != len(n.Mean) {
		return nil, fmt.Errorf("it is %v, the statistics are of %d elements", t, len(n.Mean))
	}
	return inFront(m, n.Input, t, func(b *onnx.Builder, x, z onnx.Value) {
		element := func(f func(i int) float64) (onnx.Value, bool) { return constant(b, f, shape...) }
		// In two parts, as an Affine's, and for the same reason.
		high, _ := element(func(i int) float64 { return n.Mean[i] })
		y := b.Op("Sub", []onnx.Value{x, high})
		if low, none := element(func(i int) float64 { return n.Mean[i] - float64(float32(n.Mean[i])) }); !none {
			y = b.Op("Sub", []onnx.Value{y, low})
		}
		std, _ := element(func(i int) float64 { return n.Std[i] })
		last := &onnx.Node{Name: n.Input + "/Div", OpType: "Div", Input: []string{string(y), string(std)}, Output: []string{string(z)}}
		if n.Clip > 0 {
			last = &onnx.Node{Name: n.Input + "/Clip", OpType: "Clip", Input: []string{string(b.Op("Div", []onnx.Value{y, std})), string(b.Float(float32(-n.Clip))), string(b.Float(float32(n.Clip)))}, Output: []string{string(z)}}
		}
		b.Append(last)
	})
}

// constant adds f of every element, as float32 of a shape; zero says that it is 0 everywhere.
func constant(b *onnx.Builder, f func(i int) float64, shape ...int) (v onnx.Value, zero bool) {
	t := tensor.New(tensor.Float32, shape...)
	zero = true
	for i := range t.Float32s() {
		t.Float32s()[i] = float32(f(i))
		zero = zero && t.Float32s()[i] == 0
	}
	return b.Const(t), zero
}

// inFront renames an input's value and lets nodes make it of a new input of the old name, type and
// place.
func inFront(m *onnx.Model, input string, t onnx.TensorType, nodes func(b *onnx.Builder, x, z onnx.Value)) (*onnx.Model, error) {
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == input })
	z := onnx.Extend(m).Fresh(input + "/scaled")
	m, err := onnx.Rename(m, func(v onnx.Value) onnx.Value {
		if v == onnx.Value(input) {
			return z
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	m.Graph.Input = slices.Delete(m.Graph.Input, at, at+1)
	b := onnx.Extend(m)
	x := b.Input(input, t)
	outer := b.SetScope(input + "/")
	nodes(b, x, z)
	b.SetScope(outer)
	if m, err = b.Model(); err != nil {
		return nil, err
	}
	g := m.Graph
	last := len(g.Input) - 1
	g.Input = slices.Insert(g.Input[:last], at, g.Input[last])
	return m, onnx.Sort(g)
}
