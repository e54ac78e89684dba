package run

import (
	"cmp"
	"context"
	"errors"
)

// Work carries out what next returns, at most n at a time. It asks for more whenever something has
// ended, and returns when next has nothing and nothing goes on any more. next is called by one
// goroutine.
func Work(n int, next func() (do func())) {
	ended := make(chan struct{})
	for going := 0; ; going-- {
		for going < max(n, 1) {
			do := next()
			if do == nil {
				break
			}
			going++
			go func() {
				defer func() { ended <- struct{}{} }()
				do()
			}()
		}
		if going == 0 {
			return
		}
		<-ended
	}
}

// Each calls do for 0 to count-1, at most n at a time. The first that fails ends the context of the
// others, and none begins after it. Each returns the errors of those that have failed. Where none
// has, and some were interrupted or did not begin, it is ctx's error; interrupted calls count as
// failed where ctx goes on, for somebody else has ended them.
func Each(ctx context.Context, n, count int, do func(ctx context.Context, i int) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	errs, i := make([]error, count), -1
	Work(n, func() func() {
		if i++; i >= count || inner.Err() != nil {
			return nil
		}
		k := i
		return func() {
			if errs[k] = do(inner, k); errs[k] != nil {
				cancel()
			}
		}
	})
	var failed []error
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			failed = append(failed, err)
		}
	}
	all := errors.Join(errs...)
	if err := errors.Join(failed...); err != nil || all == nil && i >= count {
		return err
	}
	return cmp.Or(ctx.Err(), all)
}
