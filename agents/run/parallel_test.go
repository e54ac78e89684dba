package run_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
)

// TestEach: the first that fails ends the others, whose interruption is no failure of theirs; where
// ctx has ended the error is ctx's.
func TestEach(t *testing.T) {
	broken := errors.New("broken")
	begun := make(chan int, 9)
	err := run.Each(t.Context(), 2, 9, func(ctx context.Context, i int) error {
		begun <- i
		if i == 1 {
			return broken
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, broken) || errors.Is(err, context.Canceled) || len(begun) != 2 {
		t.Errorf("%d have begun, %v", len(begun), err)
	}
	list := make([]int, 5)
	if err := run.Each(t.Context(), 0, 5, func(_ context.Context, i int) error { list[i] = i; return nil }); err != nil || !slices.IsSorted(list) || list[4] != 4 {
		t.Errorf("%v, %v", list, err)
	}
	if err := run.Each(t.Context(), 1, 2, func(context.Context, int) error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by somebody else: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := run.Each(ctx, 1, 2, func(context.Context, int) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
