package encoder_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// BenchmarkTimesNet measures the default encoder over windows of 20 steps of 30 features on one
// core: the features of one observation, and forward and backward over 32.
func BenchmarkTimesNet(b *testing.B) {
	engine, err := ort.New(b.Context(), ort.Options{})
	if err != nil {
		b.Skip(err)
	}
	e, err := encoder.NewTimesNet(encoder.TimesNetDefaults())
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range []struct {
		name       string
		batch      int
		objectives []autodiff.Objective
	}{
		{"act", 1, nil},
		{"step", 32, []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "z"}}, Wrt: []string{"encoder.*"}}}},
	} {
		b.Run(k.name, func(b *testing.B) {
			g := layer.New("bench", rng.New(1), layer.Options{})
			z, err := e.Build(g.In("encoder"), g.Observation("x", 20, 30))
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
			p, err := program.New(net, params, program.Config{Engine: engine, Batch: k.batch, BatchSymbol: layer.Batch, Objectives: k.objectives})
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
