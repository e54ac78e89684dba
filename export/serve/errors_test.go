package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

func TestErrorsHaveAClass(t *testing.T) {
	cases := []struct {
		err  error
		code Code
		http int
		grpc uint32
	}{
		{errors.New("anything"), Internal, 500, 13},
		{fmt.Errorf("wrapped: %w", invalid("shape")), InvalidArgument, 400, 3},
		{at(fail(NotFound, "no such model"), "m", ""), NotFound, 404, 5},
		{at(context.DeadlineExceeded, "m", "1"), DeadlineExceeded, 504, 4},
		{fmt.Errorf("read: %w", context.Canceled), Canceled, 499, 1},
		{fail(Overloaded, "full"), Overloaded, 429, 14},
		{fail(NotReady, "loading"), NotReady, 503, 14},
		{fail(Unsupported, "fixed"), Unsupported, 501, 12},
		{fail(Unauthenticated, "token"), Unauthenticated, 401, 16},
		{fail(PermissionDenied, "admin"), PermissionDenied, 403, 7},
		{fail(Drifted, "observations"), Drifted, 422, 9},
	}
	if len(cases) != len(codes) {
		t.Errorf("%d cases for %d classes", len(cases), len(codes))
	}
	// The errors of engines about the numbers of a request.
	for _, err := range []error{engine.ErrDivideByZero, engine.ErrNoElements, engine.ErrNotPositive, engine.DataError("index 9 is out of range"), &engine.ShapeError{Err: errors.New("rank 3")}, &engine.InputError{}} {
		if got := CodeOf(at(&engine.RunError{Node: "node", Err: fmt.Errorf("input 1: %w", err)}, "m", "1")); got != InvalidArgument {
			t.Errorf("%v: %v, expected %v", err, got, InvalidArgument)
		}
	}
	for _, c := range cases {
		got := CodeOf(c.err)
		if got != c.code || got.HTTPStatus() != c.http || got.GRPCCode() != c.grpc || got.String() == "" || got.Reason() == "" {
			t.Errorf("%v: %v %d %d", c.err, got, got.HTTPStatus(), got.GRPCCode())
		}
	}
	if got := at(invalid("input %q: bad", "obs"), "m", "3").Error(); got != `model "m" version 3: input "obs": bad` {
		t.Error(got)
	}
}

// late is a context whose deadline has passed, and which was cancelled before its own timer fired.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

// TestCancelledAtTheDeadline: who cancels a context when its deadline has passed only says that it
// has.
func TestCancelledAtTheDeadline(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		deadline time.Duration
		want     error
	}{{-time.Millisecond, context.DeadlineExceeded}, {time.Hour, context.Canceled}} {
		if got := ended(late{cancelled, time.Now().Add(test.deadline)}); got != test.want {
			t.Errorf("deadline in %v: %v, expected %v", test.deadline, got, test.want)
		}
	}
	if got := ended(cancelled); got != context.Canceled {
		t.Errorf("no deadline: %v", got)
	}
	if got := ended(t.Context()); got != nil {
		t.Errorf("not ended: %v", got)
	}
}
