package ppo

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// states are those of a recurrent policy in the environments that one actor acts in.
type states struct {
	// now has the states for the next decision, [n, size] each, unless an episode begins with it;
	// before has those that the last decision was taken with: the inputs of the actor's program,
	// nil when there is none.
	now, before [][]float32
	sizes       []int
}

func newStates(g *graphs, n int) *states {
	if len(g.states) == 0 {
		return nil
	}
	s := &states{sizes: g.sizes}
	for _, size := range g.sizes {
		s.now = append(s.now, make([]float32, n*size))
	}
	return s
}

// begin forgets what was before in the environments that begin an episode.
func (s *states) begin(types []envs.StepType) {
	for e, t := range types {
		if t == envs.Mid {
			continue
		}
		for i, x := range s.now {
			clear(x[e*s.sizes[i]:][:s.sizes[i]])
		}
	}
}

// forward runs the acting network for the batches of n environments.
type forward struct {
	prog *program.Program
	feed *network.Feed
	// value is [n]; in and out are the states.
	value   []float32
	in, out [][]float32
}

// newForward compiles the acting network.
func newForward(g *graphs, params *models.Params, s *agents.Setup, n int) (*forward, error) {
	p, err := program.New(g.act, params, program.Config{Engine: s.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: s.Split(program.SplitFLOPs).Shards(g.act, layer.Batch, n, 1)})
	if err != nil {
		return nil, err
	}
	f := &forward{prog: p, feed: network.NewFeed(g.frame, n, "", p.Input), value: p.Output(agents.ValueOutput).Float32s()}
	for _, name := range g.states {
		f.in, f.out = append(f.in, p.Input(agents.StatePrefix+name).Float32s()), append(f.out, p.Output(agents.NextStatePrefix+name).Float32s())
	}
	return f, nil
}

// remember copies states into the program.
func (f *forward) remember(s *states) {
	for i, x := range f.in {
		copy(x, s.now[i])
	}
}

// next evaluates what the environments show after a step. s may be nil.
func (f *forward) next(b *vector.Batch, s *states) error {
	if err := f.feed.Current(b); err != nil {
		return err
	}
	if s != nil {
		s.begin(b.Type)
		f.remember(s)
	}
	return f.prog.Run()
}

// final evaluates the final observations of the episodes that ended, with the states after their
// last decisions; the rows of the others have no meaning.
func (f *forward) final(b *vector.Batch, s *states) error {
	if err := f.feed.Final(b); err != nil {
		return err
	}
	if s != nil {
		f.remember(s)
	}
	return f.prog.Run()
}

// actor draws actions, or takes the best ones, with the parameters where they are learnt.
type actor struct {
	f       *forward
	sampler *network.Sampler
	// states are nil without a memory. Those of the exploring actor for all environments are the
	// agent's, which release gives back.
	states  *states
	release func()
	learner *learner
	d       agents.Decision
}

// Act implements agents.Actor.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	if err := a.f.next(b, a.states); err != nil {
		return nil, fmt.Errorf("ppo: act: %w", err)
	}
	for i, x := range a.f.out {
		copy(a.states.now[i], x)
	}
	a.d.Value, a.d.Version = a.f.value, a.learner.updates
	if err := a.sampler.Decide(&a.d, key, a.learner.moment()); err != nil {
		return nil, fmt.Errorf("ppo: act: %w", err)
	}
	return &a.d, nil
}

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *actor) Close() error {
	if a.release != nil {
		a.release()
	}
	return a.f.prog.Close()
}
