package onpolicy

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
)

// Forward evaluates the acting network for the batches of n environments.
type Forward struct {
	Program *program.Program
	// Value is [n], CostValue [n, constraints], nil without.
	Value, CostValue []float32
	// Inputs fills in what is no observation; nil where there is nothing.
	Inputs Inputs

	masks *Masks
	feed  *network.Feed
}

// Inputs fills in those inputs of an acting network that are neither observations nor masks: for
// what the environments show, and for the final observations of the episodes that ended.
type Inputs interface {
	Current(b *vector.Batch) error
	Final(b *vector.Batch) error
}

// NewForward compiles the acting network, which the caller closes.
func (l *Learner) NewForward(n int) (*Forward, error) {
	s, act := &l.Setup, l.Networks.Act
	p, err := program.New(act, l.Params, program.Config{Engine: s.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: s.Split(program.SplitFLOPs).Shards(act, layer.Batch, n, 1)})
	if err != nil {
		return nil, err
	}
	f := &Forward{Program: p, Value: p.Output(agents.ValueOutput).Float32s(), feed: network.NewFeed(l.Networks.Frame, n, "", p.Input), masks: l.NewMasks(p, n)}
	if costs := p.Output(agents.CostValueOutput); costs != nil {
		f.CostValue = costs.Float32s()
	}
	return f, nil
}

// Current evaluates what the environments show.
func (f *Forward) Current(b *vector.Batch) error {
	if err := f.feed.Current(b); err != nil {
		return err
	}
	if f.Inputs != nil {
		if err := f.Inputs.Current(b); err != nil {
			return err
		}
	}
	return f.Program.Run()
}

// Final evaluates the final observations of the episodes that ended; the rows of the others have no
// meaning.
func (f *Forward) Final(b *vector.Batch) error {
	if err := f.feed.Final(b); err != nil {
		return err
	}
	if f.Inputs != nil {
		if err := f.Inputs.Final(b); err != nil {
			return err
		}
	}
	return f.Program.Run()
}
