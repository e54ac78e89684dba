package app

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// TestStopping: a command has its time to end after a signal, longer while it saves, and then its
// time to return.
func TestStopping(t *testing.T) {
	for _, c := range []struct {
		name string
		// held is how long it may save, saves how long it does, and returns what it takes after.
		held, saves, returns time.Duration
		gone                 bool
	}{
		{"at once", 0, 0, 0, false},
		{"in its time", 0, 0, stopGrace - time.Second, false},
		{"never", 0, 0, time.Hour, true},
		{"saves", 15 * time.Second, 10 * time.Second, time.Second, false},
		{"saves to the end of its time", 15 * time.Second, 15 * time.Second, time.Second, false},
		{"saves too long", 15 * time.Second, 20 * time.Second, 0, true},
		{"saves and does not return", 15 * time.Second, 10 * time.Second, 6 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stopping{}
			s.tellOn(io.Discard, "test")
			ctx, cancel := context.WithCancel(t.Context())
			saved := errors.New("saved")
			root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) error {
				release := func() {}
				if c.held > 0 {
					release = s.hold(c.held)
				}
				cancel()
				<-cmd.Context().Done()
				time.Sleep(c.saves)
				release()
				time.Sleep(c.returns)
				return saved
			}}
			root.SetArgs([]string{})
			gone, err := s.execute(ctx, root)
			if gone != c.gone || errors.Is(err, saved) == c.gone {
				t.Errorf("%s: gone %v, %v", c.name, gone, err)
			}
			time.Sleep(time.Hour) // A process that is gone ends, too.
		})
	}
}
