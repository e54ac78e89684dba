package corebench

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/floor"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// policyNet is a policy that acts on one observation, its weights compiled in, as for acting.
type policyNet struct {
	name  string
	model func() (*onnx.Model, error)
}

var policies = []policyNet{
	{"2x64", mlp("policy", "Tanh", 17, 64, 64, 6)},
	{"2x256", mlp("policy", "Tanh", 17, 256, 256, 6)},
}

// measure compares single calls from Go with single calls from C, both on the same binding.
func (p policyNet) measure(ctx context.Context, b *bench) (_ []benchmark.Row, err error) {
	m, err := p.model()
	if err != nil {
		return nil, err
	}
	if m, err = onnx.BindDims(m, map[string]int{batchSymbol: 1}); err != nil {
		return nil, err
	}
	s, err := b.Engine.Compile(m, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	in, out := tensor.New(tensor.Float32, s.Inputs()[0].Shape...), tensor.New(tensor.Float32, s.Outputs()[0].Shape...)
	for i := range in.Float32s() {
		in.Float32s()[i] = float32(i%5) / 5
	}
	binding, err := s.Bind([]*tensor.Tensor{out}, []*tensor.Tensor{in})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, binding.Close()) }()
	allocs, err := allocations(binding.Run)
	if err != nil {
		return nil, err
	}
	d, err := b.pace.alternate(ctx, each(binding.Run), inC(binding))
	if err != nil {
		return nil, err
	}
	row := duelRow("policy/"+p.name, "latency of one observation", "C loop", d, benchmark.AtMost(1.15))
	row.Allocs = &allocs
	row.Note = "p99, p99.9: " + tails(d.a)
	if d.b != nil {
		row.Note += " against " + tails(d.b)
	}
	row.Note += fmt.Sprintf(" µs; %g allocations", allocs)
	return []benchmark.Row{row}, nil
}

func tails(s *benchmark.Summary) string { return fmt.Sprintf("%.2f, %.2f", s.P99/1e3, s.P999/1e3) }

// inC samples runs of the binding in a C loop.
func inC(binding engine.Binding) sampler {
	var buf []int64
	return func(n int, ns []float64) ([]float64, error) {
		if cap(buf) < n {
			buf = make([]int64, n)
		}
		buf = buf[:n]
		if err := floor.Runs(binding, buf); err != nil {
			return ns, err
		}
		for _, v := range buf {
			ns = append(ns, float64(v))
		}
		return ns, nil
	}
}
