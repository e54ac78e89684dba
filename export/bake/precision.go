package bake

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// metaWeights is the metadata key that says in which precision a model keeps its weights, where
// that is not float32.
const metaWeights = MetaPrefix + "weights"

// SmallestWeight is the number of elements below which a weight stays float32: it would save
// little, and int8 costs nodes.
const SmallestWeight = 1024

// Float16 returns m with its larger float32 weights, those of rank 2 or more, as float16, and their
// number. They are cast back once, when a runtime prepares the model, so the file is half as large
// and runs are as fast as before. Weights that float16 cannot hold stay as they are.
func Float16(m *onnx.Model) (*onnx.Model, int, error) {
	m = m.ShallowClone()
	var casts []*onnx.Node
	b := onnx.Extend(m)
	for i, p := range m.Graph.Initializer {
		if tensor.DType(p.DataType) != tensor.Float32 || len(p.Dims) < 2 {
			continue
		}
		w, err := onnx.TensorOf(p)
		if err != nil {
			return nil, 0, fmt.Errorf("float16 weights: initializer %q: %w", p.Name, err)
		}
		if w.Len() < SmallestWeight || isInput(m.Graph, p.Name) {
			continue
		}
		half := tensor.New(tensor.Float16, w.Shape()...)
		fits, bits := true, tensor.Data[uint16](half)
		for k, x := range w.Float32s() {
			h := tensor.Float32ToFloat16(x)
			fits = fits && math.Abs(float64(tensor.Float16ToFloat32(h))) < 65520 && x == x
			bits[k] = h
		}
		if !fits {
			continue
		}
		name := string(b.Fresh(p.Name + "/float16"))
		m.Graph.Initializer[i] = onnx.ProtoOf(name, half)
		casts = append(casts, &onnx.Node{Name: name, OpType: "Cast", Input: []string{name}, Output: []string{p.Name}, Attribute: []*onnx.Attribute{onnx.AttrInt("to", int(tensor.Float32))}})
	}
	m.Graph.Node = slices.Concat(casts, m.Graph.Node)
	m.SetMeta(metaWeights, "float16")
	if err := onnx.Check(m); err != nil {
		return nil, 0, fmt.Errorf("float16 weights: %w", err)
	}
	return m, len(casts), nil
}

// isInput reports whether an initializer is the default of an input.
func isInput(g *onnx.Graph, name string) bool {
	return slices.ContainsFunc(g.Input, func(v *onnx.ValueInfo) bool { return v.Name == name })
}
