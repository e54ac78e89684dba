package served

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Expert makes an actor of one row an expert of package meta, which owns it.
func Expert(a *Actor) meta.Policy {
	floats := func(name string) []float32 {
		if t := a.p.Output(name); t != nil && t.DType() == tensor.Float32 {
			return t.Float32s()
		}
		return nil
	}
	x := &expert{a: a, action: a.d.Actions.Reshape(a.d.Actions.Shape()[1:]...)}
	x.d = meta.Decision{Action: x.action, Mean: floats(agents.MeanOutput), LogStd: floats(agents.LogStdOutput), LogProbs: floats(agents.LogProbsOutput)}
	return x
}

type expert struct {
	a      *Actor
	action *tensor.Tensor
	d      meta.Decision
}

// Act implements meta.Policy.
func (x *expert) Act(_ context.Context, ts *envs.TimeStep) (meta.Decision, error) {
	if err := x.a.Observe(0, ts); err != nil {
		return meta.Decision{}, err
	}
	if _, err := x.a.Decide(); err != nil {
		return meta.Decision{}, err
	}
	return x.d, nil
}

// Remembers implements meta.Policy.
func (x *expert) Remembers() bool { return len(x.a.p.states) > 0 }

// Close implements meta.Policy.
func (x *expert) Close() error { return x.a.Close() }
