package replay

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// ElsewhereError says that a checkpoint has no transitions of its own: they are in a store.
type ElsewhereError struct{ Store string }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("replay: restore: the checkpoint's transitions are in the store %q, which the learner was not given", e.Store)
}

// Elsewhere stands for the store of an identity where that is not at hand: checkpoints of its
// learners load, to be looked at or published, and there is nothing to draw.
func Elsewhere(identity string) Store { return elsewhere(identity) }

type elsewhere string

// Identity implements agents.Replay.
func (s elsewhere) Identity() string { return string(s) }

// Open implements Store.
func (s elsewhere) Open(Layout, Config) (Buffer, error) {
	return &nothing{Reference{Store: string(s)}}, nil
}

// nothing is a buffer that stays empty.
type nothing struct{ Reference }

var _ Sharer = (*nothing)(nil)

func (*nothing) Begin(*vector.Batch, *vector.Decision) error    { return nil }
func (*nothing) End(*vector.Batch) error                        { return nil }
func (*nothing) Len() int                                       { return 0 }
func (*nothing) Sample(*rng.Stream, *Batch) error               { return ErrEmpty }
func (*nothing) SampleSequences(*rng.Stream, *Batch, int) error { return ErrEmpty }
func (*nothing) SetReturns(int, float64) error                  { return nil }
func (*nothing) Policy() int32                                  { return 0 }
func (*nothing) Clock() int64                                   { return 0 }
func (*nothing) Close() error                                   { return nil }
