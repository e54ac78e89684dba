package offline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Part chooses the episodes of one side of a split.
type Part struct {
	// Held says of each episode by its number that it is held out.
	Held []bool
	// Validation takes those that are held out, and not the others.
	Validation bool
}

// Split holds out a share of the episodes, drawn by a seed: at least one where the share is above
// 0, and never all.
func (d *Dataset) Split(share float64, seed uint64) []bool {
	held := make([]bool, d.Episodes)
	n := int(math.Round(share * float64(d.Episodes)))
	if share > 0 {
		n = min(max(n, 1), int(d.Episodes)-1)
	}
	perm := make([]int, d.Episodes)
	rng.New(seed).Split("split").Stream().Perm(perm)
	for _, i := range perm[:max(n, 0)] {
		held[i] = true
	}
	return held
}

// has reports whether an episode belongs to the part.
func (p Part) has(number int64) bool {
	return p.Held == nil || p.Held[number] == p.Validation
}

// Fill records the episodes of a part into a replay, which must be new and of one environment.
// Actions in a box are recorded as learners of a replay have them: float32 in [−1, 1]. Episodes are
// checked before. Of the replay's rows it takes those of the transitions and of the final
// observations.
func (d *Dataset) Fill(ctx context.Context, p Part, spec envs.Spec, u *replay.Uniform) (err error) {
	c, err := NewChecker(d)
	if err != nil {
		return err
	}
	frame, err := vector.NewFrame(spec, 1, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, frame.Close()) }()
	f := &filler{d: d, u: u, b: frame.Batch(), space: spec.Action}
	f.decision.Actions = tensor.New(spec.Action.DType(), append([]int{1}, spec.Action.Shape()...)...)
	if box, ok := spec.Action.(envs.Box); ok {
		n := f.decision.Actions.Len()
		f.decision.Drawn = tensor.New(tensor.Float32, 1, n)
		for i := range n {
			f.bounds = append(f.bounds, box.Bounds(i))
		}
		if !box.Bounded() || !box.Of.IsFloat() {
			return fmt.Errorf("actions are %v; learners from data sets choose actions in a box of finite bounds, of float32 or float64, or discrete ones", box)
		}
	}
	f.decision.LogProb = make([]float32, 1)
	err = d.Each(ctx, func(e *Episode) error {
		if !p.has(e.Number) {
			return nil
		}
		if err := c.Check(e); err != nil {
			return err
		}
		return f.add(e)
	})
	if err == nil && f.open {
		err = f.close()
	}
	return err
}

// filler records episodes into a replay, one after the other.
type filler struct {
	d        *Dataset
	u        *replay.Uniform
	b        *vector.Batch
	space    envs.Space
	bounds   []envs.Range
	decision vector.Decision
	// open says that the last step of an episode waits for what follows it.
	open bool
}

func (f *filler) add(e *Episode) error {
	n := e.Len()
	for t := range n {
		f.show(f.b.Obs, f.b.Rows, f.b.Mask, e, t)
		if f.open {
			if err := f.close(); err != nil {
				return err
			}
		}
		f.decide(e, t)
		if err := f.u.Begin(f.b, &f.decision); err != nil {
			return err
		}
		f.b.Type[0], f.b.Reward[0], f.b.Discount[0] = envs.Mid, e.Reward[t], e.Discount[t]
		copy(f.b.Costs[0], e.Cost[t*len(f.b.Costs[0]):])
		if t == n-1 {
			f.b.Type[0] = envs.Last
			f.show(f.b.Final, f.b.FinalRows, f.b.FinalMask, e, n)
		}
		f.open = true
		if t < n-1 {
			f.show(f.b.Obs, f.b.Rows, f.b.Mask, e, t+1)
			if err := f.close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// close ends the round that is open, now that what follows is shown.
func (f *filler) close() error {
	f.open = false
	return f.u.End(f.b)
}

// show copies observation t of an episode into a row of a batch.
func (f *filler) show(obs []*tensor.Tensor, rows [][]int64, mask *tensor.Tensor, e *Episode, t int) {
	for i := range obs {
		if rows[i] != nil {
			rows[i][0] = e.Rows[i][t]
			continue
		}
		b := obs[i].Bytes()
		copy(b, e.Obs[i][t*len(b):])
	}
	if mask != nil {
		b := mask.Bytes()
		copy(b, e.Mask[t*len(b):])
	}
}

// decide makes the action of step t a decision.
func (f *filler) decide(e *Episode, t int) {
	b := f.decision.Actions.Bytes()
	copy(b, e.Action[t*len(b):])
	f.decision.LogProb[0] = float32(e.LogProb[t])
	for i, r := range f.bounds {
		x := 0.0
		if f.decision.Actions.DType() == tensor.Float64 {
			x = f.decision.Actions.Float64s()[i]
		} else {
			x = float64(f.decision.Actions.Float32s()[i])
		}
		y := 0.0
		if r.High > r.Low {
			y = (x - (r.High+r.Low)/2) / ((r.High - r.Low) / 2)
		}
		f.decision.Drawn.Float32s()[i] = float32(min(max(y, -1), 1))
		f.decision.LogProb[0] += float32(math.Log((r.High - r.Low) / 2))
	}
}

// rows is the number of a replay's rows that a part takes: its transitions and final observations.
func (d *Dataset) rows(ctx context.Context, p Part) (rows int64, err error) {
	if p.Held == nil {
		return d.Transitions + d.Episodes, nil
	}
	err = d.Each(ctx, func(e *Episode) error {
		if p.has(e.Number) {
			rows += int64(e.Len()) + 1
		}
		return nil
	})
	return rows, err
}

// Store is a data set as a learner's replay: nothing can be recorded into it, and every round
// counts as one. It is a replay.Store, which several learners may open at once; each has a copy of
// the transitions in memory.
type Store struct {
	d    *Dataset
	spec envs.Spec
	held []bool
	// share is the part of each batch that is drawn from the data set.
	share float64
	ctx   context.Context
}

// NewStore returns a data set as the replay of learners in environments of a spec. Episodes that
// are held out, by number, are not drawn; nil holds out none. Of each batch the share is drawn from
// the data set: 1 is learning without an environment; of the rest the learner has a replay of its
// own. Transitions are read, until ctx ends, when the replay is opened.
func NewStore(ctx context.Context, d *Dataset, spec envs.Spec, held []bool, share float64) (*Store, error) {
	if err := d.Fits(spec); err != nil {
		return nil, fmt.Errorf("data set %s: %w", d.Dir, err)
	}
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("data set %s: a share of %g of the batches, expected one above 0 and at most 1", d.Dir, share)
	}
	return &Store{d, spec, held, share, ctx}, nil
}

// Identity implements agents.Replay: checkpoints belong to the same files with the same episodes
// held out.
func (s *Store) Identity() string {
	h := sha256.New()
	fmt.Fprint(h, s.d.Digest, s.held, s.share)
	return fmt.Sprintf("dataset:%x", h.Sum(nil))
}

// Offline implements agents.Offline.
func (s *Store) Offline() bool { return s.share == 1 }

// Open implements replay.Store.
func (s *Store) Open(l replay.Layout, c replay.Config) (replay.Buffer, error) {
	u, err := s.load(Part{s.held, false}, l, c)
	if err != nil {
		return nil, err
	}
	if s.Offline() {
		return &fixed{u, replay.Reference{Store: s.Identity()}}, nil
	}
	own, err := replay.NewUniform(l, c)
	if err != nil {
		return nil, errors.Join(err, u.Close())
	}
	return &mixed{Uniform: own, data: u, identity: s.Identity(), share: s.share}, nil
}

// Validation returns the episodes that are held out as a replay of single steps; the caller closes
// it.
func (s *Store) Validation(l replay.Layout, c replay.Config) (*replay.Uniform, error) {
	return s.load(Part{s.held, true}, l, c)
}

// load reads a part into memory.
func (s *Store) load(p Part, l replay.Layout, c replay.Config) (*replay.Uniform, error) {
	rows, err := s.d.rows(s.ctx, p)
	if err != nil {
		return nil, err
	}
	if rows == 0 {
		return nil, fmt.Errorf("data set %s: no episode is left", s.d.Dir)
	}
	if rows > math.MaxInt32 {
		return nil, fmt.Errorf("data set %s: %d rows, and a replay has at most %d", s.d.Dir, rows, math.MaxInt32)
	}
	// With one row more the replay is never full, and draws no row twice as often.
	c.Capacity, c.Envs = int(rows)+1, 1
	u, err := replay.NewUniform(l, c)
	if err != nil {
		return nil, err
	}
	if err := s.d.Fill(s.ctx, p, s.spec, u); err != nil {
		return nil, errors.Join(fmt.Errorf("data set %s: %w", s.d.Dir, err), u.Close())
	}
	return u, nil
}

// fixed is the replay of a learner that records nothing.
type fixed struct {
	*replay.Uniform
	replay.Reference
}

// Begin implements agents.Recorder: there is nothing to keep.
func (f *fixed) Begin(*vector.Batch, *vector.Decision) error { return nil }

// End implements agents.Recorder: it counts the round.
func (f *fixed) End(*vector.Batch) error {
	f.Recorded++
	return nil
}

// Rounds implements replay.Buffer.
func (f *fixed) Rounds() int64 { return f.Reference.Rounds() }

// SaveState implements checkpoint.Stater.
func (f *fixed) SaveState(w *checkpoint.Writer) error { return f.Reference.SaveState(w) }

// LoadState implements checkpoint.Stater.
func (f *fixed) LoadState(r *checkpoint.Reader) error { return f.Reference.LoadState(r) }
