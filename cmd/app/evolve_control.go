package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/worker/temporal"
)

// controlTimeout is how long a server may take to answer.
const controlTimeout = 15 * time.Second

// evolveStatus is what onnxrl evolve status prints; the JSON keys are stable.
type evolveStatus struct {
	Dir string `json:"dir"`
	temporal.Place
	// Generations of Of are recorded.
	Generations int `json:"generations"`
	temporal.GroupStatus
}

// Print writes the status for a terminal.
func (s *evolveStatus) Print(w io.Writer) error {
	state := "goes on"
	switch {
	case s.Cancelled:
		state = "was cancelled"
	case s.Paused:
		state = "is paused"
	}
	_, err := fmt.Fprintf(w, "%s %s: %s recorded; tasks %s of %s, %s carried out\n", s.Dir, state, plural(s.Generations, "generation"), s.Group, s.Address, plural(int(s.Finished), "interval"))
	for _, list := range []struct {
		name string
		keys []string
	}{{"running", s.Running}, {"waiting", s.Waiting}} {
		if err == nil && len(list.keys) > 0 {
			_, err = fmt.Fprintf(w, "%s: %s\n", list.name, strings.Join(list.keys, ", "))
		}
	}
	return err
}

// evolveControlCommands are those for a population that others train.
func (a *app) evolveControlCommands() []*cobra.Command {
	var url string
	control := func(name, short, long string, do func(ctx context.Context, c *temporal.Control, dir string) error) *cobra.Command {
		cmd := &cobra.Command{
			Use: name + " DIR", Short: short, Long: long, Example: "  onnxrl evolve " + name + " runs/population", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) (err error) {
				var address temporal.Address
				if url != "" {
					if address, err = temporal.ParseAddress(url); err != nil {
						return fmt.Errorf("evolve %s: --executor: %w", name, err)
					}
				}
				c, err := temporal.OpenControl(args[0], address, log.NewStructuredLogger(a.logTo(a.err)))
				if err == nil {
					defer c.Close()
					ctx, cancel := context.WithTimeout(cmd.Context(), controlTimeout)
					defer cancel()
					err = do(ctx, c, args[0])
				}
				return saying("evolve "+name, err)
			},
		}
		cmd.Flags().StringVar(&url, "executor", "", "how the server is reached, where that takes more than the address that the directory names: as temporal://HOST:PORT/NAMESPACE?ca=FILE, and &cert=FILE and &key=FILE")
		return cmd
	}
	status := func(ctx context.Context, c *temporal.Control, dir string) error {
		s := &evolveStatus{Dir: dir, Place: c.Place()}
		var err error
		if s.GroupStatus, err = c.Status(ctx); err != nil {
			return err
		}
		if t, err := evolve.ReadTree(dir); err == nil {
			s.Generations = t.Generations
		}
		return a.printTable(s, nil)
	}
	then := func(do func(*temporal.Control, context.Context) error) func(context.Context, *temporal.Control, string) error {
		return func(ctx context.Context, c *temporal.Control, dir string) error {
			if err := do(c, ctx); err != nil {
				return err
			}
			return status(ctx, c, dir)
		}
	}
	return []*cobra.Command{
		control("status", "Say how a population that others train goes", "Says of a population that was begun with --executor how many generations are recorded, which members train, and which are held by a pause.", status),
		control("pause", "Pause a population that others train", "Has the members of a population that was begun with --executor save where they are and wait. The program that evolves it waits, too.", then((*temporal.Control).Pause)),
		control("resume", "Let a paused population go on", "Lets the members of a population that was paused go on from where they were, with the same results.", then((*temporal.Control).Resume)),
		control("cancel", "Stop a population that others train", "Has the members of a population that was begun with --executor save where they are, and the program that evolves it end; onnxrl evolve --resume goes on.", then((*temporal.Control).Cancel)),
	}
}
