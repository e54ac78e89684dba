package valuebased

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actor takes the actions of the largest values, with the parameters where they are learnt, or
// random ones.
type actor struct {
	mode    agents.Mode
	learner *Learner
	masked  bool
	actions int
	prog    *program.Program
	obs     []*tensor.Tensor
	q       []float32
	stream  rng.Stream
	d       vector.Decision
}

// newActor compiles the network for a batch of n rows.
func (l *Learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	g := l.graphs
	p, err := program.New(g.q, l.Params, program.Config{Engine: l.setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards(&l.setup, g.q, n, 1)})
	if err != nil {
		return nil, err
	}
	x := &actor{mode: m, learner: l, masked: g.spec.Masked, actions: g.actions, prog: p, q: p.Output(agents.QValuesOutput).Float32s(), d: vector.Decision{Actions: tensor.New(tensor.Int64, n)}}
	for _, f := range g.spec.Observation {
		x.obs = append(x.obs, p.Input(f.Name))
	}
	return x, nil
}

// Act implements agents.Actor. A row that explores takes one draw more than one that does not;
// where all explore, no network runs.
func (x *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := x.act(key, b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", x.learner.name, err)
	}
	return &x.d, nil
}

func (x *actor) act(key rng.Key, b *vector.Batch) error {
	chosen := x.d.Actions.Int64s()
	if len(b.Type) != len(chosen) {
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), len(chosen))
	}
	if x.masked && b.Mask == nil {
		return errors.New("the batch has no mask")
	}
	rate := 0.0
	if x.mode.Draws() {
		rate = x.learner.rate()
	}
	x.stream.Seed(key)
	greedy := false
	for e := range chosen {
		if chosen[e] = -1; rate > 0 && x.stream.Bernoulli(rate) {
			chosen[e] = x.random(x.mask(b, e))
		}
		greedy = greedy || chosen[e] < 0
	}
	x.d.Version = x.learner.Updates
	if !greedy {
		return nil
	}
	for i, t := range x.obs {
		if err := b.Gather(i, t); err != nil {
			return err
		}
	}
	if err := x.prog.Run(); err != nil {
		return err
	}
	for e := range chosen {
		if chosen[e] < 0 {
			q := x.q[e*x.actions : (e+1)*x.actions]
			if chosen[e] = best(q, x.mask(b, e)); chosen[e] < 0 {
				return fmt.Errorf("environment %d has the action values %v and the mask %v: there is nothing to choose", e, q, x.mask(b, e))
			}
		}
	}
	return nil
}

// mask returns that of environment e; nil where there is none.
func (x *actor) mask(b *vector.Batch, e int) []bool {
	if !x.masked {
		return nil
	}
	return b.Mask.Bools()[e*x.actions : (e+1)*x.actions]
}

// random draws uniformly among the valid actions; −1 when there is none.
func (x *actor) random(mask []bool) int64 {
	if mask == nil {
		return int64(x.stream.IntN(x.actions))
	}
	valid := 0
	for _, ok := range mask {
		if ok {
			valid++
		}
	}
	if valid == 0 {
		return -1
	}
	k := x.stream.IntN(valid)
	for a, ok := range mask {
		if ok {
			if k == 0 {
				return int64(a)
			}
			k--
		}
	}
	return -1
}

// best returns the first valid action of the largest value; −1 when there is none, or only values
// that are no numbers.
func best(q []float32, mask []bool) int64 {
	at := -1
	for a, v := range q {
		if (mask == nil || mask[a]) && v == v && (at < 0 || v > q[at]) {
			at = a
		}
	}
	return int64(at)
}

// Remembers implements vector.Policy.
func (x *actor) Remembers() bool { return false }

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (x *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (x *actor) Close() error { return x.prog.Close() }
