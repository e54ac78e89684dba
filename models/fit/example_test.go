package fit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// Example trains a PyTorch export on a CSV file and writes the result. Package export/bake also
// proves that the file computes what was trained.
func Example() {
	model, err := onnx.Load("testdata/torch/mlp/model.onnx")
	check(err)
	cfg := fit.Defaults()
	cfg.Data.Path = "testdata/torch/mlp/data.csv"
	cfg.Data.Inputs = map[string][]string{"x": {"x_*"}}
	cfg.Data.Targets = map[string][]string{"y": {"to_y_*"}}
	cfg.Loss = []loss.Term{{Kind: "mse"}}
	trainer, err := fit.New(model, cfg, portable.New(), fit.Hooks{})
	check(err)
	defer trainer.Close()
	result, err := trainer.Run(context.Background())
	check(err)
	trained, err := trainer.Baked()
	check(err)
	dir, err := os.MkdirTemp("", "fit")
	check(err)
	defer os.RemoveAll(dir)
	check(onnx.Save(filepath.Join(dir, "trained.onnx"), trained, onnx.SaveOptions{}))
	fmt.Println(result.Steps, "steps,", result.Epochs, "epochs")
	// Output: 20 steps, 10 epochs
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
