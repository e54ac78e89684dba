package es

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actor acts by the centre.
type actor struct {
	learner *learner
	prog    *program.Program
	feed    *network.Feed
	d       vector.Decision
}

func newActor(l *learner, f *network.Frame, n int) (*actor, error) {
	s := &l.setup
	p, err := program.New(l.policy, l.params, program.Config{Engine: s.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: s.Split(program.SplitFLOPs).Shards(l.policy, layer.Batch, n, 1)})
	if err != nil {
		return nil, err
	}
	return &actor{learner: l, prog: p, feed: network.NewFeed(f, n, "", p.Input), d: vector.Decision{Actions: p.Output(agents.ActionOutput), Logits: p.Output(agents.LogProbsOutput)}}, nil
}

// Act implements agents.Actor. Nothing is drawn.
func (a *actor) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := a.feed.Current(b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", a.learner.name, err)
	}
	if err := a.prog.Run(); err != nil {
		return nil, fmt.Errorf("%s: act: %w", a.learner.name, err)
	}
	a.d.Version = a.learner.updates
	return &a.d, nil
}

// Remembers implements vector.Policy.
func (a *actor) Remembers() bool { return false }

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *actor) Close() error { return a.prog.Close() }

// explorer acts by the members of the generation, each environment by the one that it measures.
type explorer struct {
	// actor has the inputs of all environments.
	*actor
	rows []*row
	// scratch is one block for each worker.
	scratch [][]float32
	act     func(k int)
	release func()
}

// row is what acts in one environment.
type row struct {
	params *models.Params
	prog   *program.Program
	// copies pairs what the program computes with the environment's row of the decision.
	copies [][2][]byte
	// has says whose parameters these are.
	has holder
	err error
}

// holder identifies parameters: of a member, or of the centre where that is -1.
type holder struct {
	updates, replaced int64
	member            int
}

func newExplorer(l *learner, f *network.Frame, release func()) (*explorer, error) {
	n := len(l.episode)
	a, err := newActor(l, f, n)
	if err != nil {
		return nil, err
	}
	x := &explorer{actor: a, scratch: make([][]float32, l.pool.Size()), release: release}
	x.act = x.share
	for k := range x.scratch {
		x.scratch[k] = make([]float32, block)
	}
	for e := range n {
		r, err := newRow(a, e)
		x.rows = append(x.rows, r)
		if err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// newRow compiles the policy for one environment, whose inputs are its rows of the actor's. What no
// strategy changes is the learner's.
func newRow(a *actor, e int) (*row, error) {
	l := a.learner
	r := &row{has: holder{updates: -1}}
	var err error
	if r.params, err = models.NewParams(l.policy, l.params.Segment(models.Frozen), l.params.Segment(models.Buffer), l.params.Segment(models.Base)); err != nil {
		return r, err
	}
	inputs := map[string]*tensor.Tensor{}
	for _, v := range l.policy.Model.Graph.Inputs() {
		if in := a.prog.Input(v.Name); in != nil {
			inputs[v.Name] = in.Rows(e, e+1)
		}
	}
	if r.prog, err = program.New(l.policy, r.params, program.Config{Engine: l.setup.Engine, Batch: 1, BatchSymbol: layer.Batch, Inputs: inputs}); err != nil {
		return r, err
	}
	for _, name := range []string{agents.ActionOutput, agents.LogProbsOutput} {
		if to := a.prog.Output(name); to != nil {
			r.copies = append(r.copies, [2][]byte{to.Rows(e, e+1).Bytes(), r.prog.Output(name).Bytes()})
		}
	}
	return r, nil
}

// Act implements agents.Actor. Nothing is drawn but the perturbations of members that begin.
func (x *explorer) Act(ctx context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	l := x.learner
	if err := x.feed.Current(b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", l.name, err)
	}
	l.pool.Run(x.act)
	for e, r := range x.rows {
		if r.err != nil {
			return nil, fmt.Errorf("%s: act: environment %d: %w", l.name, e, r.err)
		}
	}
	x.d.Version = l.updates
	return &x.d, nil
}

// share lets every Size-th environment act.
func (x *explorer) share(k int) {
	l := x.learner
	for e := k; e < len(x.rows); e += len(x.scratch) {
		r := x.rows[e]
		if now := (holder{l.updates, l.replaced, l.member(e)}); r.has != now {
			r.has = now
			own := r.params.Segment(models.Trainable).Floats()
			if now.member < 0 {
				copy(own, l.params.Segment(models.Trainable).Floats())
			} else {
				l.strategy.write(now.member, own, x.scratch[k])
			}
		}
		if r.err = r.prog.Run(); r.err == nil {
			for _, c := range r.copies {
				copy(c[0], c[1])
			}
		}
	}
}

// Sync implements agents.Actor: something else than the learner may have changed the centre.
func (x *explorer) Sync(context.Context) error {
	for _, r := range x.rows {
		r.has = holder{updates: -1}
	}
	return nil
}

// Close implements agents.Actor.
func (x *explorer) Close() error {
	var errs []error
	for _, r := range x.rows {
		if r.prog != nil {
			errs = append(errs, r.prog.Close())
		}
		if r.params != nil {
			errs = append(errs, r.params.Close())
		}
	}
	x.rows = nil
	x.release()
	return errors.Join(append(errs, x.actor.Close())...)
}
