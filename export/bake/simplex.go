package bake

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Simplex makes an output of a network weights: not negative, and 1 in sum in each row.
type Simplex struct {
	// Output is float32 [batch, n].
	Output string
	// Project takes the nearest weights by Euclidean distance instead of the softmax.
	Project bool
	// Of computes the same for one row as the environment does, and the parity check compares the graph with
	// it.
	Of func(weights []float64, row []float32)
}

// Apply returns the weights for outputs of a network.
func (s *Simplex) Apply(x *tensor.Tensor) *tensor.Tensor {
	out := tensor.New(tensor.Float32, x.Shape()...)
	n := x.Shape()[1]
	weights := make([]float64, n)
	for from := 0; from < x.Len(); from += n {
		s.Of(weights, x.Float32s()[from:from+n])
		for i, w := range weights {
			out.Float32s()[from+i] = float32(w)
		}
	}
	return out
}

func (s *Simplex) wrap(m *onnx.Model) (*onnx.Model, error) {
	t := outputType(m, s.Output)
	if t.DType != tensor.Float32 || len(t.Dims) != 2 || !t.Dims[1].IsKnown() {
		return nil, fmt.Errorf("weights of output %q: it is %v, expected float32 [batch n]", s.Output, t)
	}
	out, err := behind(m, s.Output, "scores", func(b *onnx.Builder, x onnx.Value) onnx.Value {
		if s.Project {
			return projection(b, x, t.Dims[1].Value)
		}
		return b.Op("Softmax", []onnx.Value{x}, onnx.AttrInt("axis", 1))
	})
	if err != nil {
		return nil, fmt.Errorf("weights of output %q: %w", s.Output, err)
	}
	return out, nil
}

// projection appends max(x − θ, 0), where θ is the largest of (u₁+…+u_j − 1)/j over the elements u
// in descending order. All of them are one matrix product.
func projection(b *onnx.Builder, x onnx.Value, n int) onnx.Value {
	sums, ones := tensor.New(tensor.Float32, n, n), tensor.New(tensor.Float32, n)
	for j := range n {
		for i := range j + 1 {
			sums.Float32s()[i*n+j] = 1 / float32(j+1)
		}
		ones.Float32s()[j] = 1 / float32(j+1)
	}
	largest := func(x onnx.Value, k int) onnx.Value { return b.OpN("TopK", "", 2, []onnx.Value{x, b.Ints(k)})[0] }
	means := b.Op("MatMul", []onnx.Value{largest(x, n), b.Const(sums)})
	theta := largest(b.Op("Sub", []onnx.Value{means, b.Const(ones)}), 1)
	return b.Op("Relu", []onnx.Value{b.Op("Sub", []onnx.Value{x, theta})})
}
