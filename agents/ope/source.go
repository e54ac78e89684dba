package ope

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// askRows is the number of observations that a policy is asked about at once.
const askRows = 256

// open opens the network of a policy on askRows rows: that of an agent's learner, or an exported
// model.
func open(a Actors, c engine.Compiler, f *network.Frame) (vector.Policy, error) {
	if agent, ok := a.(agents.Agent); ok {
		return openAgent(agent, c, f)
	}
	p, err := a.NewActor(agents.Greedy, askRows)
	if err != nil {
		return nil, err
	}
	if p.Remembers() {
		return nil, errors.Join(errors.New("it remembers what came before; policies of the present observation alone are evaluated"), p.Close())
	}
	return p, nil
}

// published is the network that an agent would publish.
type published struct {
	prog *program.Program
	feed *network.Feed
	d    vector.Decision
}

func openAgent(a agents.Agent, c engine.Compiler, f *network.Frame) (vector.Policy, error) {
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
	x := &published{prog: p, feed: network.NewFeed(f, askRows, "", p.Input)}
	x.d = vector.Decision{Actions: p.Output(agents.ActionOutput), Logits: p.Output(agents.LogProbsOutput)}
	if mean, logStd := p.Output(agents.MeanOutput), p.Output(agents.LogStdOutput); mean != nil && logStd != nil {
		x.d.Mean, x.d.LogStd = mean.Float32s(), logStd.Float32s()
	}
	return x, nil
}

// Act implements vector.Policy.
func (x *published) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := x.feed.Current(b); err != nil {
		return nil, err
	}
	return &x.d, x.prog.Run()
}

// Remembers implements vector.Policy.
func (x *published) Remembers() bool { return false }

// Close implements vector.Policy.
func (x *published) Close() error { return x.prog.Close() }
