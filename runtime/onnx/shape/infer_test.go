package shape

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// torchModels is the number of committed PyTorch exports.
const torchModels = 14

func torchFixtures(tb testing.TB) map[string]*onnx.Model {
	tb.Helper()
	paths, err := filepath.Glob("../../autodiff/testdata/torch/*/model.onnx")
	if err != nil {
		tb.Fatal(err)
	}
	models := map[string]*onnx.Model{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		m := &onnx.Model{}
		if err := proto.Unmarshal(b, m); err != nil {
			tb.Fatal(err)
		}
		models[filepath.Base(filepath.Dir(p))] = m
	}
	if len(models) < torchModels {
		tb.Fatalf("found %d models, want at least %d", len(models), torchModels)
	}
	return models
}

func TestTorchModelsAreFullyStatic(t *testing.T) {
	for name, m := range sorted.All(torchFixtures(t)) {
		t.Run(name, func(t *testing.T) {
			e, err := Infer(m, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range m.Graph.Node {
				for _, o := range n.Output {
					if _, ok := e.Type(onnx.Value(o)).Static(); o != "" && !ok {
						t.Errorf("%s: %q is %v", n.Describe(), o, e.Type(onnx.Value(o)))
					}
				}
			}
		})
	}
}

func BenchmarkInferLargestTorchModel(b *testing.B) {
	var largest *onnx.Model
	for _, m := range sorted.All(torchFixtures(b)) {
		if largest == nil || len(m.Graph.Node) > len(largest.Graph.Node) {
			largest = m
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Infer(largest, nil); err != nil {
			b.Fatal(err)
		}
	}
}
