package publish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// ErrObservations is wrapped by the error of an environment that fails while observations for
// a parity check are recorded. The policy may be as good as any.
var ErrObservations = errors.New("record observations")

// observationError is an ErrObservations.
type observationError struct{ err error }

func (e *observationError) Error() string   { return fmt.Sprintf("%v: %v", ErrObservations, e.err) }
func (e *observationError) Unwrap() []error { return []error{ErrObservations, e.err} }

// patience is how long an environment is waited for once ctx has ended.
const patience = 5 * time.Second

// errNoAnswer says that an environment does not come back: it and the actor that it acts with
// cannot be freed.
var errNoAnswer = errors.New("the environment does not answer")

// collect records a block, and gives up an environment that does not answer when ctx has ended.
func collect(ctx context.Context, rows *recorder, e envs.Env, a *served.Actor, key rng.Key) error {
	done := make(chan error, 1)
	go func() { done <- rows.record(ctx, e, a, key) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("record observations: %w: %w", errNoAnswer, ctx.Err())
	}
}
