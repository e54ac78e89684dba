package replay

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Lend returns the replay as a store of one learner, whose environments, steps and gamma must be
// those of the replay. It stays the caller's to save and to close.
func (u *Uniform) Lend(identity string) Store { return &lender{identity, u, nil} }

// Lend is Uniform.Lend; the learner sets priorities if it has any use for them.
func (r *Prioritised) Lend(identity string) Store { return &lender{identity, r.Uniform, r} }

// lender implements Store.
type lender struct {
	identity string
	u        *Uniform
	p        *Prioritised
}

// Identity implements agents.Replay.
func (s *lender) Identity() string { return s.identity }

// Open implements Store.
func (s *lender) Open(l Layout, c Config) (Buffer, error) {
	if err := s.u.l.covers(&l); err != nil {
		return nil, err
	}
	if has := &s.u.c; c.Envs != has.Envs || max(c.NSteps, 1) != has.NSteps || c.Gamma != has.Gamma {
		return nil, fmt.Errorf("it is of %d environments, %d steps and gamma %g, and the learner of %d, %d and %g", has.Envs, has.NSteps, has.Gamma, c.Envs, max(c.NSteps, 1), c.Gamma)
	}
	s.u.c.Action = c.Action
	b := borrowed{s.u, Reference{Store: s.identity}}
	if s.p == nil {
		return &b, nil
	}
	b.Buffer = s.p
	return &borrowedUpdater{b, s.p}, nil
}

// borrowed is the buffer of a learner that the replay does not belong to.
type borrowed struct {
	Buffer
	ref Reference
}

// End implements agents.Recorder.
func (b *borrowed) End(x *vector.Batch) error {
	err := b.Buffer.End(x)
	if err == nil {
		b.ref.Recorded++
	}
	return err
}

// Rounds implements Buffer.
func (b *borrowed) Rounds() int64 { return b.ref.Rounds() }

// SaveState implements checkpoint.Stater.
func (b *borrowed) SaveState(w *checkpoint.Writer) error { return b.ref.SaveState(w) }

// LoadState implements checkpoint.Stater.
func (b *borrowed) LoadState(r *checkpoint.Reader) error { return b.ref.LoadState(r) }

// Close implements Buffer.
func (b *borrowed) Close() error { return nil }

// borrowedUpdater is borrowed with priorities.
type borrowedUpdater struct {
	borrowed
	p *Prioritised
}

var _ Updater = (*borrowedUpdater)(nil)

// SetPriorities implements Updater.
func (b *borrowedUpdater) SetPriorities(p Priorities) error { return b.p.SetPriorities(p) }

// SetBeta implements Updater.
func (b *borrowedUpdater) SetBeta(beta float64) { b.p.SetBeta(beta) }

// Update implements Updater.
func (b *borrowedUpdater) Update(index []int64, errors []float32) error {
	return b.p.Update(index, errors)
}
