package fit

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// BenchmarkStep measures a whole optimiser step — rows, forward, backward, clipping, Adam — of
// networks of 4 inputs and two hidden layers, on a table in memory.
func BenchmarkStep(b *testing.B) {
	path := table(b, 20000)
	for _, k := range []struct {
		name         string
		width, batch int
	}{{"2x32/batch64", 32, 64}, {"2x64/batch64", 64, 64}, {"2x256/batch256", 256, 256}} {
		b.Run(k.name, func(b *testing.B) {
			m := model(b, func(g *onnx.Builder) {
				h := g.Input("x", batchOf(tensor.Float32, 4))
				in := 4
				for i, name := range []string{"a", "b"} {
					h = g.Op("Relu", []onnx.Value{g.Op("Gemm", []onnx.Value{h, g.Initializer(name+".weight", filled(i, in, k.width)), g.Initializer(name+".bias", filled(i+5, k.width))})})
					in = k.width
				}
				g.Output(g.Rename(g.Op("Gemm", []onnx.Value{h, g.Initializer("c.weight", filled(9, in, 2)), g.Initializer("c.bias", filled(8, 2))}), "y"), batchOf(tensor.Float32, 2))
			})
			cfg := regression(path)
			cfg.Batch, cfg.Optimizer = k.batch, optim.Config{Kind: "adam", LR: 1e-5}
			tr, err := New(m, cfg, testengines.Fastest(b), Hooks{})
			if err != nil {
				b.Fatal(err)
			}
			defer tr.Close()
			b.ReportAllocs()
			for b.Loop() {
				if tr.train.Left() < k.batch {
					tr.train.NextEpoch()
				}
				if err := tr.step(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*k.batch)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
