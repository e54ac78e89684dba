package versus

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// block is how many seats a model decides for at once: more of one game cost nothing, and a block
// that is not full costs as much as a full one.
const block = 8

// Opener opens the model of a file for agents of a factory's worlds, for so many rows. Compiler and
// factory outlive the policy, whose decisions have no NaN.
type Opener func(ctx context.Context, path string, worlds envs.Factory, split envs.Split, c engine.Compiler, rows int) (vector.Policy, error)

// Pool are players that are open. It is not safe for concurrent use.
type Pool struct {
	members []member
	sum     float64
	// frame shows steps to models; nil before the first one that is shown.
	frame *vector.Frame
}

// member is one of a pool.
type member struct {
	name   string
	weight float64
	player envs.Player // nil for a policy
	policy vector.Policy
	greedy bool
	asks   []ask
}

// ask is a seat that waits for a decision.
type ask struct {
	t    *table
	seat int
}

// OpenPool opens players for worlds of a factory, which outlives the pool, as compile does where
// one of them is a model. Errors name the player.
func OpenPool(ctx context.Context, worlds envs.MultiFactory, split envs.Split, list []Opponent, open Opener, compile func(context.Context) (engine.Compiler, error)) (_ *Pool, err error) {
	p := &Pool{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, o := range list {
		m := member{name: o.Called(), weight: o.weight(), greedy: o.Greedy}
		if o.Path == "" {
			if m.player, err = envs.NewPlayer(worlds, o.Player); err != nil {
				return nil, fmt.Errorf("opponent %q: %w", m.name, err)
			}
		} else {
			if compile == nil {
				return nil, fmt.Errorf("opponent %q is a model, and nobody has said which engine runs it", m.name)
			}
			c, err := compile(ctx)
			if err != nil {
				return nil, fmt.Errorf("opponent %q: the engine: %w", m.name, err)
			}
			if m.policy, err = open(ctx, o.Path, worlds, split, c, block); err != nil {
				return nil, fmt.Errorf("opponent %q: %w", m.name, err)
			}
			if m.policy.Remembers() {
				return nil, errors.Join(fmt.Errorf("opponent %q remembers steps before, and opponents decide on the present one alone", m.name), m.policy.Close())
			}
		}
		p.members = append(p.members, m)
		p.sum += m.weight
	}
	return p, nil
}

// Close frees the models.
func (p *Pool) Close() error {
	var errs []error
	for _, m := range p.members {
		if m.policy != nil {
			errs = append(errs, m.policy.Close())
		}
	}
	if p.frame != nil {
		errs = append(errs, p.frame.Close())
	}
	return errors.Join(errs...)
}

// draw draws a member by the weights.
func (p *Pool) draw(s *rng.Stream) int {
	at, last := s.Float64()*p.sum, 0
	for i, m := range p.members {
		if m.weight == 0 {
			continue
		}
		if last = i; at < m.weight {
			break
		}
		at -= m.weight
	}
	return last
}

// index is the member of a name, or -1.
func (p *Pool) index(name string) int {
	for i, m := range p.members {
		if m.name == name {
			return i
		}
	}
	return -1
}

// decide writes the actions of all seats of a table that members play, or queues them, and those of
// the learner where it has no choice.
func (p *Pool) decide(t *table) error {
	for i, acts := range t.acts {
		switch {
		case !acts || p.forced(t, i) || t.players[i] == learner:
			continue
		}
		m := &p.members[t.players[i]]
		if m.player == nil {
			m.asks = append(m.asks, ask{t, i})
			continue
		}
		if err := m.player.Act(t.world, i, t.steps[i], &t.random[i], t.actions[i]); err != nil {
			return p.failed(m, t, i, err)
		}
		if err := t.valid(i); err != nil {
			return p.failed(m, t, i, err)
		}
	}
	return nil
}

// forced reports whether the mask leaves an agent no choice, and writes what it does then.
func (p *Pool) forced(t *table, i int) bool {
	mask := t.masks[i]
	if mask == nil || t.choices == nil {
		return false
	}
	action := t.ints[i]
	for h, n := range t.choices {
		only := -1
		for k, valid := range mask[:n] {
			if !valid {
				continue
			}
			if only >= 0 {
				return false
			}
			only = k
		}
		action[h], mask = int64(max(only, 0)), mask[n:]
	}
	return true
}

// answer lets models decide for the seats that are queued.
func (p *Pool) answer() error {
	for k := range p.members {
		m := &p.members[k]
		list := m.asks
		m.asks = m.asks[:0]
		for len(list) > 0 {
			n := min(block, len(list))
			if err := p.blockOf(m, list[:n]); err != nil {
				for j := range p.members {
					p.members[j].asks = p.members[j].asks[:0]
				}
				return err
			}
			list = list[n:]
		}
	}
	return nil
}

func (p *Pool) blockOf(m *member, list []ask) error {
	for row, a := range list {
		if err := p.show(row, a.t.spec, a.t.steps[a.seat]); err != nil {
			return p.failed(m, a.t, a.seat, err)
		}
	}
	d, err := p.ask(m, len(list))
	if err != nil {
		return err
	}
	for row, a := range list {
		if err := p.take(m, d, row, a); err != nil {
			return p.failed(m, a.t, a.seat, err)
		}
	}
	return nil
}

// show copies a step into a row of what models decide on.
func (p *Pool) show(row int, spec envs.Spec, ts *envs.TimeStep) (err error) {
	if p.frame == nil {
		if p.frame, err = vector.NewFrame(spec, block, false); err != nil {
			return err
		}
		p.frame.Batch().Present = make([]bool, block)
	}
	return p.frame.Put(row, ts)
}

// ask lets a model decide for the first n rows.
func (p *Pool) ask(m *member, n int) (*vector.Decision, error) {
	b := p.frame.Batch()
	for row := range b.Present {
		b.Present[row] = row < n
	}
	d, err := m.policy.Act(context.Background(), rng.Key{}, b)
	if err != nil {
		return nil, fmt.Errorf("opponent %q: %w", m.name, err)
	}
	return d, nil
}

// take writes what a model decided for a row as the action of a seat.
func (p *Pool) take(m *member, d *vector.Decision, row int, a ask) error {
	to := a.t.actions[a.seat]
	if d.Logits == nil || m.greedy || a.t.choices == nil {
		all, n := d.Actions.Bytes(), len(to.Bytes())
		copy(to.Bytes(), all[row*n:(row+1)*n])
		return a.t.valid(a.seat)
	}
	n := d.Logits.Len() / block
	logits := d.Logits.Float32s()[row*n : (row+1)*n]
	for h, k := range a.t.choices {
		a.t.ints[a.seat][h] = int64(a.t.random[a.seat].Categorical(logits[:k]))
		logits = logits[k:]
	}
	return a.t.valid(a.seat)
}

// failed says which member failed where.
func (p *Pool) failed(m *member, t *table, seat int, err error) error {
	return fmt.Errorf("opponent %q as %s, step %d: %w", m.name, t.names[seat], t.length, err)
}

// table is a world and who plays in it.
type table struct {
	world envs.Multi
	spec  envs.Spec
	names []string
	// choices are those of each head of actions of integers that can be masked; nil for others.
	choices []int
	steps   []*envs.TimeStep
	masks   [][]bool
	actions []*tensor.Tensor
	ints    [][]int64
	random  []rng.Stream
	// players has who plays each seat: a member of the pool, or learner.
	players []int
	// present says who has a step, acts who is to act next.
	present, acts []bool
	returns       []float64
	length        int
}

// learner is the player of a seat that belongs to nobody in the pool.
const learner = -1

func newTable(w envs.Multi) *table {
	spec, names := w.Spec(), w.Agents()
	n := len(names)
	t := &table{
		world: w, spec: spec, names: names, steps: make([]*envs.TimeStep, n), masks: make([][]bool, n), actions: make([]*tensor.Tensor, n), ints: make([][]int64, n), random: make([]rng.Stream, n),
		players: make([]int, n), present: make([]bool, n), acts: make([]bool, n), returns: make([]float64, n),
	}
	switch spec.Action.(type) {
	case envs.Discrete, envs.MultiDiscrete:
		t.choices = envs.Heads(spec.Action)
	}
	for i := range n {
		t.steps[i], t.actions[i] = envs.NewTimeStep(spec), tensor.New(spec.Action.DType(), spec.Action.Shape()...)
		if spec.Masked {
			t.masks[i] = t.steps[i].Mask.Bools()
		}
		if t.choices != nil {
			t.ints[i] = t.actions[i].Int64s()
		}
	}
	return t
}

// reset begins an episode. All of its randomness descends from key.
func (t *table) reset(key rng.Key) error {
	for i := range t.random {
		t.random[i].Seed(key.Split("player", i))
		t.returns[i] = 0
	}
	t.length = 0
	if err := t.world.Reset(key.Split("world"), t.steps, t.present); err != nil {
		return err
	}
	copy(t.acts, t.present)
	return nil
}

// step takes the actions. over says that nobody is left to act.
func (t *table) step() (over bool, err error) {
	if err := t.world.Step(t.actions, t.steps, t.present); err != nil {
		return false, err
	}
	t.length++
	over = true
	for i, here := range t.present {
		t.acts[i] = here && t.steps[i].Type != envs.Last
		over = over && !t.acts[i]
		if here {
			t.returns[i] += t.steps[i].Reward
		}
	}
	return over, nil
}

// valid returns an error unless the action of a seat is one that it may take.
func (t *table) valid(i int) error {
	if err := envs.CheckAction(&t.spec, t.actions[i]); err != nil {
		return err
	}
	mask := t.masks[i]
	if mask == nil || t.choices == nil {
		return nil
	}
	for h, n := range t.choices {
		if a := t.ints[i][h]; !mask[a] {
			return fmt.Errorf("action %d of %v is not valid there", a, t.spec.Action)
		}
		mask = mask[n:]
	}
	return nil
}
