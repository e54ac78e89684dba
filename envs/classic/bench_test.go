package classic

import (
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// BenchmarkStep takes a step in one environment, and begins another episode where one ends.
func BenchmarkStep(b *testing.B) {
	for _, k := range Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			e := opened(b, k, 1)[0]
			ts := envs.NewTimeStep(e.Spec())
			actions := drawn(e.Spec(), 64)
			ts.Type = envs.Last
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if ts.Type == envs.Last {
					if err := e.Reset(rng.New(1).Split("episode", i), ts); err != nil {
						b.Fatal(err)
					}
				}
				if err := e.Step(actions[i%len(actions)], ts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVector steps 256 environments of a kind on one core, with random actions; steps/s counts
// steps of single environments.
func BenchmarkVector(b *testing.B) {
	for _, k := range Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			const n = 256
			v, err := vector.New(opened(b, k, n), vector.Options{Workers: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer v.Close()
			if err := v.Reset(rng.New(1)); err != nil {
				b.Fatal(err)
			}
			spec := v.Spec()
			batches := make([]*tensor.Tensor, 64)
			s := rng.New(2).Stream()
			for i := range batches {
				batches[i] = tensor.New(spec.Action.DType(), append([]int{n}, spec.Action.Shape()...)...)
				for j := range n {
					spec.Action.Sample(s, nil, batches[i].Rows(j, j+1).Reshape(spec.Action.Shape()...))
				}
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := v.Step(batches[i%len(batches)]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func opened(b *testing.B, k envs.Kind, n int) []envs.Env {
	b.Helper()
	f, err := k.Open(b.Context(), configs.Section{})
	if err != nil {
		b.Fatal(err)
	}
	list, err := envs.Make(f, envs.Train, n)
	if err != nil {
		b.Fatal(err)
	}
	return list
}

func drawn(spec envs.Spec, n int) []*tensor.Tensor {
	s := rng.New(2).Stream()
	list := make([]*tensor.Tensor, n)
	for i := range list {
		list[i] = tensor.New(spec.Action.DType(), spec.Action.Shape()...)
		spec.Action.Sample(s, nil, list[i])
	}
	return list
}
