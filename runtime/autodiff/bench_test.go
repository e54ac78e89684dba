package autodiff_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// BenchmarkGrad differentiates the largest fixture with respect to all its parameters.
func BenchmarkGrad(b *testing.B) {
	m, err := onnx.Load("testdata/torch/timesblock_fixed_periods/model.onnx")
	if err != nil {
		b.Fatal(err)
	}
	o := wrt(m.Graph.Output[0].Name, "*")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := autodiff.Grad(m, o); err != nil {
			b.Fatal(err)
		}
	}
}
