package app

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// How long a command may take to end after the first signal, and one that has something to save.
// Commands look at their context and end sooner; this is for what does not come back: code of a
// library, a model with a loop of a million million iterations, a file system that hangs.
const (
	stopGrace = 5 * time.Second
	saveGrace = 30 * time.Second
)

// stopping is what is known of how a command ends.
type stopping struct {
	mu    sync.Mutex
	to    io.Writer
	name  string
	holds int
	grace time.Duration
	// released is when the last hold was, after which the command has as long as one without.
	released time.Time
}

// tellOn says where the user reads that the command stops, and by which program.
func (s *stopping) tellOn(w io.Writer, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to, s.name = w, name
}

// hold gives the command that long to end after a signal, until what it returns is called.
func (s *stopping) hold(grace time.Duration) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds++
	s.grace = max(s.grace, grace)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holds--; s.holds == 0 {
			s.grace, s.released = 0, time.Now()
		}
	}
}

// late reports whether the command has had its time since it was told to end, at began. One that
// has taken long, as it might, and has nothing more to save has yet to return.
func (s *stopping) late(began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(began) > max(s.grace, stopGrace) && time.Since(s.released) > stopGrace
}

// tell says at once that a signal was seen.
func (s *stopping) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clean := ""
	if isTerminal(s.to) {
		clean = "\r\x1b[K" // A progress bar has not ended its line.
	}
	fmt.Fprintf(printable.Raw(s.to), "%s%s: stopping; a second signal ends the program at once\n", clean, s.name)
}

// execute runs the command line. When ctx ends the user reads so first, and then the command ends,
// so that its own last words come last. If it does not end, execute returns all the same: gone is
// then true, and nothing may be freed.
func (s *stopping) execute(ctx context.Context, root *cobra.Command) (gone bool, err error) {
	if ctx.Done() == nil {
		return false, root.ExecuteContext(ctx)
	}
	inner, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(inner) }()
	select {
	case err := <-done:
		return false, err
	case <-ctx.Done():
	}
	s.tell()
	end(context.Cause(ctx))
	began := time.Now()
	looks := time.NewTicker(50 * time.Millisecond)
	defer looks.Stop()
	for {
		select {
		case err := <-done:
			return false, err
		case <-looks.C:
		}
		if s.late(began) {
			return true, fmt.Errorf("what was being done did not end within %.0f seconds and was cut off: %w", time.Since(began).Seconds(), context.Canceled)
		}
	}
}
