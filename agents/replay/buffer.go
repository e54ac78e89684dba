package replay

import (
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Buffer is a replay as one learner has it: what it records rounds with, and draws from. It is the
// whole replay ([Uniform], [Prioritised]) or a place in a [Store] that others use too. It belongs
// to one goroutine.
type Buffer interface {
	// Recorder keeps transitions; Rounds is the number of rounds that this learner has recorded
	// since the beginning of the run.
	agents.Recorder
	Rounds() int64
	// Len returns the number of transitions that can be drawn, of all who record.
	Len() int
	// Sample draws as many transitions as the batch has rows, with replacement, and writes what it
	// wants of them. It is [ErrEmpty] where there are none.
	Sample(s *rng.Stream, b *Batch) error
	// SampleSequences draws sequences of so many transitions that follow each other; see
	// [Uniform.SampleSequences] for their order.
	SampleSequences(s *rng.Stream, b *Batch, length int) error
	// SetReturns sets Config.NSteps and Config.Gamma of what is sampled from now on.
	SetReturns(nSteps int, gamma float64) error
	// Stater saves the replay where it is the learner's own, and else what [Reference] does.
	checkpoint.Stater
	// Closer frees what the buffer holds; a store that others use stays.
	io.Closer
}

// Updater is a Buffer with priorities, such as [Prioritised].
type Updater interface {
	Buffer
	// SetPriorities changes how errors become priorities; SetBeta sets the exponent of importance
	// weights, Update the priorities of samples.
	SetPriorities(p Priorities) error
	SetBeta(beta float64)
	Update(index []int64, errors []float32) error
}

// Sharer is a Buffer of a store that several policies record into, such as that of
// [Shared.Member]. It can fill Batch.Policy and Batch.Time.
type Sharer interface {
	Buffer
	// Policy is the one that this learner records as. Clock is the number of transitions that were
	// ever recorded, by all: Clock − 1 − Batch.Time is how many have come since.
	Policy() int32
	Clock() int64
}

var (
	_ Buffer  = (*Uniform)(nil)
	_ Updater = (*Prioritised)(nil)
	_ Sharer  = (*member)(nil)
)

// Store is a replay that learners are given instead of having one each ([agents.Setup]): the place
// of one of them in a [Shared], or a client of one that is elsewhere. It outlives the learner,
// which neither closes nor saves it.
type Store interface {
	agents.Replay
	// Open returns the learner's buffer, or says what of the layout the transitions do not have.
	// The capacity is the store's own affair.
	Open(l Layout, c Config) (Buffer, error)
}

// Open returns a learner's buffer: one of the store that it was given, unless that is nil, and else
// a [Uniform].
func Open(given agents.Replay, l Layout, c Config) (Buffer, error) {
	if given == nil {
		u, err := NewUniform(l, c)
		if err != nil {
			return nil, err
		}
		return u, nil
	}
	s, ok := given.(Store)
	if !ok {
		return nil, fmt.Errorf("replay %q is a %T, expected a replay.Store", given.Identity(), given)
	}
	b, err := s.Open(l, c)
	if err != nil {
		return nil, fmt.Errorf("replay %q: %w", given.Identity(), err)
	}
	return b, nil
}

// Reference is what a buffer of a store saves in the place of transitions: the identity of the
// store, the number of rounds, and how much the store held then. Buffers embed it.
type Reference struct {
	Store    string
	Recorded int64
	// Clock, unless nil, is the number of transitions that were ever recorded in the store.
	Clock func() int64
}

// Rounds implements Buffer.
func (r *Reference) Rounds() int64 { return r.Recorded }

// SaveState implements checkpoint.Stater.
func (r *Reference) SaveState(w *checkpoint.Writer) error {
	s := recorded{Rounds: r.Recorded, Store: r.Store}
	if r.Clock != nil {
		s.Clock = r.Clock()
	}
	w.PutJSON("recorder", s)
	return nil
}

// LoadState implements checkpoint.Stater. A checkpoint of another store, with transitions of its
// own, or of a time when the store had more than it has, is an error.
func (r *Reference) LoadState(from *checkpoint.Reader) error {
	var s recorded
	if err := from.JSON("recorder", &s); err != nil {
		return err
	}
	if s.Store != r.Store {
		return fmt.Errorf("replay: restore: the checkpoint's transitions are in %s, and the learner was given the store %q", where(s.Store), r.Store)
	}
	if r.Clock != nil && r.Clock() < s.Clock {
		return fmt.Errorf("replay: restore: %d transitions were ever recorded in the store %q, and %d when the checkpoint was saved; restore the store as it was saved with, or after, the checkpoint", r.Clock(), r.Store, s.Clock)
	}
	r.Recorded = s.Rounds
	return nil
}

func where(store string) string {
	if store == "" {
		return "the checkpoint itself"
	}
	return fmt.Sprintf("the store %q", store)
}
