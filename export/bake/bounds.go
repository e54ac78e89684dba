package bake

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Bounds makes an output of a network an action of an environment: stretched from [−1, 1] to the
// bounds where Rescale is set, and limited to them.
type Bounds struct {
	// Output is float32 [batch, …].
	Output string
	// Low and High are finite, for each element of a row in row-major order, or one for all.
	Low, High []float64
	Rescale   bool
}

// Validate reports bounds that are none.
func (l *Bounds) Validate() error {
	if len(l.Low) == 0 || len(l.Low) != len(l.High) {
		return fmt.Errorf("bounds of output %q: %d lower and %d upper ones", l.Output, len(l.Low), len(l.High))
	}
	var errs []error
	for i := range l.Low {
		if !(l.Low[i] < l.High[i]) || math.IsInf(l.High[i]-l.Low[i], 0) {
			errs = append(errs, fmt.Errorf("bounds of output %q: element %d: %g to %g", l.Output, i, l.Low[i], l.High[i]))
		}
	}
	return errors.Join(errs...)
}

// Apply returns the actions for outputs of a network, computed in float64 and rounded at the end.
func (l *Bounds) Apply(x *tensor.Tensor) *tensor.Tensor {
	out := tensor.New(tensor.Float32, x.Shape()...)
	for i, v := range x.Float32s() {
		low, high, a := l.Low[i%len(l.Low)], l.High[i%len(l.High)], float64(v)
		if l.Rescale {
			a = low + (a+1)/2*(high-low)
		}
		out.Float32s()[i] = float32(max(low, min(high, a)))
	}
	return out
}

func (l *Bounds) wrap(m *onnx.Model) (*onnx.Model, error) {
	out, err := l.limit(m)
	if err != nil {
		return nil, fmt.Errorf("bounds of output %q: %w", l.Output, err)
	}
	return out, nil
}

func (l *Bounds) limit(m *onnx.Model) (*onnx.Model, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	t := outputType(m, l.Output)
	n, shape := 1, []int{}
	for _, d := range t.Dims[min(1, len(t.Dims)):] {
		n *= d.Value
		shape = append(shape, d.Value)
	}
	if t.DType != tensor.Float32 || len(t.Dims) == 0 || len(l.Low) != 1 && len(l.Low) != n {
		return nil, fmt.Errorf("it is %v, the bounds are of %d elements", t, len(l.Low))
	}
	if len(l.Low) == 1 {
		shape = nil
	}
	return behind(m, l.Output, "unbounded", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		constant := func(f func(low, high float64) float64) onnx.Value {
			c := tensor.New(tensor.Float32, shape...)
			for i := range c.Float32s() {
				c.Float32s()[i] = float32(f(l.Low[i], l.High[i]))
			}
			return b.Const(c)
		}
		if l.Rescale {
			x = b.Op("Add", []onnx.Value{b.Op("Mul", []onnx.Value{x, constant(func(low, high float64) float64 { return (high - low) / 2 })}), constant(func(low, high float64) float64 { return (high + low) / 2 })})
		}
		return b.Op("Max", []onnx.Value{b.Op("Min", []onnx.Value{x, constant(func(_, high float64) float64 { return high })}), constant(func(low, _ float64) float64 { return low })})
	})
}

// behind puts something of the same type behind an output, which keeps its name and its place; what
// it was is called output/was.
func behind(m *onnx.Model, output, was string, add func(b *onnx.Builder, x onnx.Value) onnx.Value) (*onnx.Model, error) {
	t := outputType(m, output)
	inner := onnx.Extend(m).Fresh(output + "/" + was)
	m, err := onnx.Rename(m, func(v onnx.Value) onnx.Value {
		if v == onnx.Value(output) {
			return inner
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(m.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name == string(inner) })
	m.Graph.Output = slices.Delete(m.Graph.Output, at, at+1)
	b := onnx.Extend(m)
	outer := b.SetScope(output + "/")
	x := add(b, inner)
	b.SetScope(outer)
	b.Output(b.Rename(x, output), t)
	if m, err = b.Model(); err != nil {
		return nil, err
	}
	g := m.Graph
	last := len(g.Output) - 1
	g.Output = slices.Insert(g.Output[:last], at, g.Output[last])
	return m, onnx.Sort(g)
}
