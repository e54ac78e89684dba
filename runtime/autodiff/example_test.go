package autodiff_test

import (
	"context"
	"fmt"
	"log"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The gradient of a graph is a graph: the model's own outputs, and ∂loss/∂weight beside them. Here
// the loss is the sum of (x·w)², so that its gradient is 2·xᵀ·(x·w).
func ExampleGrad() {
	b := onnx.NewBuilder("squares", onnx.DefaultOpset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2, 2))
	w := b.Initializer("w", tensor.Of([]float32{1, -1}, 2, 1))
	y := b.Op("MatMul", []onnx.Value{x, w})
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{y, y}), "loss"), onnx.TypeOf(tensor.Float32, 2, 1))
	m, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}

	g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{
		Losses: []autodiff.Loss{{Value: "loss"}},
		Wrt:    []string{"w"},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	s, err := portable.New().Compile(g.Model, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	out, err := engine.Run(context.Background(), s, tensor.Of([]float32{1, 2, 3, 5}, 2, 2))
	if err != nil {
		log.Fatal(err)
	}
	for i, p := range s.Outputs() {
		fmt.Println(p.Name, out[i].Float32s())
	}
	// Output:
	// loss [1 4]
	// grad/w [-14 -24]
}
