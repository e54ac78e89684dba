package portable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// A model is loaded from a file, compiled once, and run. With ort.New instead of
// portable.New, ONNX Runtime does the same.
func Example() {
	m, err := onnx.Load("../autodiff/testdata/torch/mlp_tanh/model.onnx")
	if err != nil {
		log.Fatal(err)
	}
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, p := range s.Inputs() {
		fmt.Println("input ", p)
	}
	for _, p := range s.Outputs() {
		fmt.Println("output", p)
	}

	in := []*tensor.Tensor{tensor.New(s.Inputs()[0].DType, s.Inputs()[0].Shape...)}
	out := make([]*tensor.Tensor, 1) // Nil: the run makes it.
	if err := s.Run(context.Background(), out, in); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out[0].Shape())
	// Output:
	// input  x0 float32[6 7]
	// output y float32[6 3]
	// [6 3]
}
