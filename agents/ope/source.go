package ope

import (
	"context"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// askRows is the number of observations that a policy is asked about at once.
const askRows = 256

// source is the published network of a policy on askRows rows.
type source struct {
	// act returns the best actions.
	act func(ctx context.Context, b *vector.Batch) (*tensor.Tensor, error)
	// output returns what else the network gave by name, nil where it does not give that.
	output func(name string) *tensor.Tensor
	close  func() error
}

// open opens the network of a policy: that of an agent's learner, or an exported model.
func open(a Actors, c engine.Compiler, f *network.Frame) (*source, error) {
	if agent, ok := a.(agents.Agent); ok {
		return openAgent(agent, c, f)
	}
	actor, err := a.NewActor(agents.Greedy, askRows)
	if err != nil {
		return nil, err
	}
	s := &source{close: actor.Close, act: func(ctx context.Context, b *vector.Batch) (*tensor.Tensor, error) {
		d, err := actor.Act(ctx, rng.Key{}, b)
		if err != nil {
			return nil, err
		}
		return d.Actions, nil
	}}
	s.output = func(string) *tensor.Tensor { return nil }
	if m, ok := actor.(interface{ Policy() *served.Policy }); ok {
		s.output = m.Policy().Output
		if i := slices.IndexFunc(m.Policy().Inputs(), m.Policy().Remembers); i >= 0 {
			return nil, fmt.Errorf("input %q: it remembers what came before; policies of the present observation alone are evaluated", m.Policy().Inputs()[i])
		}
	}
	return s, nil
}

func openAgent(a agents.Agent, c engine.Compiler, f *network.Frame) (*source, error) {
	net, params := a.Learner().Policy()
	p, err := program.New(net, params, program.Config{Engine: c, Batch: askRows, BatchSymbol: layer.Batch})
	if err != nil {
		return nil, err
	}
	for _, name := range p.Inputs() {
		if name != agents.MaskInput && f.Spec.Observation.Index(name) < 0 {
			_ = p.Close()
			return nil, fmt.Errorf("input %q is no field of the observation; policies of the present observation alone are evaluated", name)
		}
	}
	feed := network.NewFeed(f, askRows, "", p.Input)
	return &source{output: p.Output, close: p.Close, act: func(_ context.Context, b *vector.Batch) (*tensor.Tensor, error) {
		if err := feed.Current(b); err != nil {
			return nil, err
		}
		return p.Output(agents.ActionOutput), p.Run()
	}}, nil
}
