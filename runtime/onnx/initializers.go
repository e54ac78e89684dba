package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// InitializersToInputs returns a copy of m in which the named initializers are graph inputs without
// a default, appended after the present inputs in the order of names. It is how parameters are fed
// while training (design decision D2). Weights of the other initializers are shared with m.
func InitializersToInputs(m *Model, names []Value) (*Model, error) {
	c := m.ShallowClone()
	g := c.Graph
	x := NewIndex(g)
	moved := map[string]bool{}
	for _, name := range names {
		t := x.Initializer(name)
		if t == nil {
			return nil, fmt.Errorf("make initializer %q of graph %q an input: there is none of that name", name, g.Name)
		}
		if moved[t.Name] {
			return nil, fmt.Errorf("make initializer %q of graph %q an input: it is named twice", name, g.Name)
		}
		moved[t.Name] = true
		shape, _, err := protoShape(t)
		if err != nil {
			return nil, fmt.Errorf("make initializer %q an input: %w", name, err)
		}
		// Files of IR 3 list it among the inputs already.
		g.Input = slices.DeleteFunc(g.Input, func(v *ValueInfo) bool { return v.Name == t.Name })
		g.Input = append(g.Input, NewValueInfo(name, TypeOf(tensor.DType(t.DataType), shape...)))
	}
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *TensorProto) bool { return moved[t.Name] })
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *ValueInfo) bool { return moved[v.Name] })
	return c, nil
}

// InputsToInitializers returns a copy of m in which the given inputs are initializers, in the order
// of the graph's inputs. It is how trained weights are baked in for serving. The tensors' memory is
// shared, so it must not change while the new model is used. Type and extents must be those that
// the input declares.
func InputsToInitializers(m *Model, values map[Value]*tensor.Tensor) (*Model, error) {
	c := m.ShallowClone()
	g := c.Graph
	x := NewIndex(g)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if x.Input(name) == nil {
			return nil, fmt.Errorf("bake input %q of graph %q: there is none of that name", name, g.Name)
		}
	}
	var inputs []*ValueInfo
	for _, v := range g.Input {
		t := values[Value(v.Name)]
		if t == nil {
			inputs = append(inputs, v)
			continue
		}
		declared, ok := v.TensorType()
		if !ok || !declared.Admits(t.DType(), t.Shape()) {
			return nil, fmt.Errorf("bake input %q of graph %q: it is declared as %v, the tensor is %v", v.Name, g.Name, declared, t)
		}
		g.Initializer = slices.DeleteFunc(g.Initializer, func(old *TensorProto) bool { return old.Name == v.Name })
		g.Initializer = append(g.Initializer, ProtoOf(v.Name, t))
	}
	g.Input = inputs
	return c, nil
}

// Admits reports whether a tensor of that element type and shape fits the type: extents that are
// not known fit any, and one symbol must not stand for two numbers.
func (t TensorType) Admits(d tensor.DType, shape []int) bool {
	if t.DType != tensor.Undefined && t.DType != d {
		return false
	}
	if !t.Ranked {
		return true
	}
	if len(shape) != len(t.Dims) {
		return false
	}
	bound := map[string]int{}
	for i, e := range t.Dims {
		if e.IsKnown() && e.Value != shape[i] {
			return false
		}
		if !e.IsKnown() && e.Param != "" {
			if old, ok := bound[e.Param]; ok && old != shape[i] {
				return false
			}
			bound[e.Param] = shape[i]
		}
	}
	return true
}
