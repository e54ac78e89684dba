package apptest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// LoadModel reads a model in which nothing is wrong.
func LoadModel(path string) (*onnx.Model, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, err
	}
	if r := (onnx.CheckOptions{}).Check(m); len(r.Problems) > 0 {
		return nil, fmt.Errorf("%s: %v", path, r.Problems[0])
	}
	return m, nil
}

// Weights reads the initializers of a model by name.
func Weights(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	m, err := LoadModel(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float32{}
	for _, p := range m.Graph.Initializer {
		x, err := onnx.TensorOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if x.DType() == tensor.Float32 {
			out[p.Name] = x.Float32s()
		}
	}
	return out
}

// Save writes a model to a file of the test's own and returns its path.
func Save(t *testing.T, m *onnx.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}
