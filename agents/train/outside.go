package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// outside says whether the run is in code that is not ours and need not come back: an environment
// that hangs. Whoever waits for it may then give it up. Giving up and coming back exclude each
// other.
type outside struct{ where atomic.Int32 }

const (
	inside int32 = iota
	stepping
	evaluating
	abandoned
)

// enter says where the run goes.
func (o *outside) enter(where int32) { o.where.Store(where) }

// leave says that it has come back. A run that was given up meanwhile ends here: its state is
// somebody else's.
func (o *outside) leave(where int32) {
	if !o.where.CompareAndSwap(where, inside) {
		runtime.Goexit()
	}
}

// giveUp gives up what the run is waiting for, and says where that was: inside when it is not
// waiting.
func (o *outside) giveUp() int32 {
	for _, where := range []int32{stepping, evaluating} {
		if o.where.CompareAndSwap(where, abandoned) {
			return where
		}
	}
	return inside
}

func (o *outside) abandoned() bool { return o.where.Load() == abandoned }

// watched steps environments outside.
type watched struct {
	vector.Env
	o *outside
}

func (w *watched) Step(actions *tensor.Tensor) error {
	w.o.enter(stepping)
	err := w.Env.Step(actions)
	w.o.leave(stepping)
	return err
}

// watch runs the training and, when ctx has ended and the training waits for environments that do
// not answer within Hooks.Patience, goes on without it. What was before the round, or the
// evaluation, is whole.
func (t *Trainer) watch(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		ended := errors.New("a hook has ended the goroutine of the run")
		defer func() { done <- ended }()
		ended = t.run(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(t.hooks.Patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	where := t.outside.giveUp()
	if where == inside {
		// It comes to a safe point by itself.
		return <-done
	}
	t.envsLost = where == stepping
	t.hooks.Log.Warn("an environment does not answer and is given up", "seconds", t.hooks.Patience.Seconds())
	return fmt.Errorf("an environment does not answer: %w", ctx.Err())
}
