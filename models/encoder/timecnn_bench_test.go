package encoder_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// BenchmarkTimeCNNRollout measures one forward and backward pass over a rollout of 50 steps, windows of 20
// bars, 16 assets and 30 features, with the default encoder, on one core: each window alone, and
// with shared rows.
func BenchmarkTimeCNNRollout(b *testing.B) {
	const rollout, window, assets, features = 50, 20, 16, 30
	engine, err := ort.New(b.Context(), ort.Options{})
	if err != nil {
		b.Skip(err)
	}
	cnn, err := encoder.NewTimeCNN(encoder.TimeCNNDefaults())
	if err != nil {
		b.Fatal(err)
	}
	for name, shape := range sorted.All(map[string]struct {
		batch int
		dims  []int
		build func(g *layer.Graph, x onnx.Value) (onnx.Value, error)
	}{
		"windows": {rollout, []int{window, assets, features}, cnn.Build},
		"shared":  {1, []int{rollout + window - 1, assets, features}, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) { return cnn.BuildShared(g, x, window) }},
	}) {
		b.Run(name, func(b *testing.B) {
			g := layer.New("rollout", rng.New(1), layer.Options{})
			z, err := shape.build(g.In("encoder"), g.Observation("x", shape.dims...))
			if err != nil {
				b.Fatal(err)
			}
			g.Output("z", z)
			net, values, err := g.Network(models.Options{})
			if err != nil {
				b.Fatal(err)
			}
			params, err := models.NewParams(net, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer params.Close()
			if err := params.Load(values); err != nil {
				b.Fatal(err)
			}
			p, err := program.New(net, params, program.Config{Engine: engine, Batch: shape.batch, BatchSymbol: layer.Batch,
				Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "z"}}, Wrt: []string{"encoder.*"}}}})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			rng.New(2).Stream().FillNormal32(p.Input("x").Float32s(), 0, 1)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
