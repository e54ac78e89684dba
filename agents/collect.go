package agents

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Collect lets an actor act in the environments for a number of rounds and records them; a nil
// recorder keeps nothing. Round i, counted from first, draws from key.Split("round", first+i). The
// environments must have been reset. After each round, each is called with the batch, unless it is
// nil; its error ends the collection. Collect allocates nothing. When ctx ends, the error is ctx's
// and the round before it is complete.
func Collect(ctx context.Context, env vector.Env, a Actor, r Recorder, key rng.Key, first, rounds int, each func(*vector.Batch) error) error {
	return (*Profile)(nil).Collect(ctx, env, a, r, key, first, rounds, each)
}

// EnvError is that of the environments' step of a round, after which they need a reset. What was
// recorded before the round is whole.
type EnvError struct{ Err error }

func (e *EnvError) Error() string { return "step: " + e.Err.Error() }

// Unwrap returns what the environments said.
func (e *EnvError) Unwrap() error { return e.Err }

// CutOff reports whether some environment begins an episode though the one before has not ended:
// ended says of each whether its last step ended one, or it was absent.
func CutOff(b *vector.Batch, ended []bool) bool {
	for e, t := range b.Type {
		if t == envs.First && !ended[e] {
			return true
		}
	}
	return false
}

// Collect is the function of that name, whose time is counted for Acting, Stepping and Recording.
func (p *Profile) Collect(ctx context.Context, env vector.Env, a Actor, r Recorder, key rng.Key, first, rounds int, each func(*vector.Batch) error) error {
	b := env.Batch()
	for i := first; i < first+rounds; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.round(ctx, env, b, a, r, key.Split("round", i)); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		if each != nil {
			if err := each(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Profile) round(ctx context.Context, env vector.Env, b *vector.Batch, a Actor, r Recorder, key rng.Key) error {
	watch := p.Start()
	d, err := a.Act(ctx, key, b)
	if err != nil {
		return fmt.Errorf("act: %w", err)
	}
	watch = watch.Lap(Acting)
	if r != nil {
		if err := r.Begin(b, d); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		watch = watch.Lap(Recording)
	}
	if err := env.Step(d.Actions); err != nil {
		return &EnvError{err}
	}
	watch = watch.Lap(Stepping)
	if r != nil {
		if err := r.End(b); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		watch.Lap(Recording)
	}
	return nil
}
