package serve_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// A program serves a folder of models to itself: requests share batches, a caller in a loop has
// buffers of its own, and both follow the newest version.
func Example() {
	dir, err := os.MkdirTemp("", "models")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := publishDouble(filepath.Join(dir, "double", "1", "model.onnx")); err != nil {
		log.Fatal(err)
	}

	s, err := serve.New(serve.Options{Compiler: portable.New()}, serve.NewRepository(dir))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer s.Close(ctx)
	if err := s.Poll(ctx); err != nil {
		log.Fatal(err)
	}

	var answer serve.Response
	x := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	if err := s.Client().Infer(ctx, &serve.Request{Model: "double", Inputs: []serve.Tensor{{Name: "x", Value: x}}}, &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Model, answer.Version, answer.Outputs[0].Value.Float32s())

	caller, err := s.Client().Caller("double", "", 1)
	if err != nil {
		log.Fatal(err)
	}
	defer caller.Close()
	copy(caller.Inputs()[0].Value.Float32s(), []float32{5, 6})
	if err := caller.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(caller.Outputs()[0].Value.Float32s())
	// Output:
	// double 1 [2 4 6 8]
	// [10 12]
}

// publishDouble writes a model that doubles rows of two values.
func publishDouble(path string) error {
	rows := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	b := onnx.NewBuilder("double", onnx.DefaultOpset)
	x := b.Input("x", rows)
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, x}), "y"), rows)
	m, err := b.Model()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return onnx.Save(path, m, onnx.SaveOptions{})
}
