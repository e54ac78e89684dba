package app

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/processes"
)

// ActorName is the hidden command of a program that acts for a training in another process.
const ActorName = "act"

// actCommand acts for the run on its standard input.
func (a *app) actCommand() *cobra.Command {
	return &cobra.Command{
		Use:    ActorName,
		Short:  "Act for a run whose learner is another process; started by train",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.compiler(cmd.Context())
			if err != nil {
				return err
			}
			endWithParent()
			return run.ServeActor(cmd.Context(), a.kinds, c, a.log, a.in, printable.Raw(a.out))
		},
	}
}

// launchActor starts processes of this program that act, with the engine of the run. They open what
// is permitted, all where it is nil.
func (a *app) launchActor(c engine.Compiler, permitted *gymnasium.Permission) func(context.Context, int) (actors.Conn, error) {
	return func(context.Context, int) (actors.Conn, error) {
		program, err := executable()
		if err != nil {
			return nil, err
		}
		args := []string{ActorName, "--engine", c.Name(), "--no-install", "--log-level", a.logLevel}
		if info, err := ort.Info(); c.Name() == ort.Name && err == nil {
			args = append(args, "--ort-library", info.Library.Path)
		}
		// The end of its input ends it, and not a signal from the terminal.
		cmd := exec.Command(program, args...)
		if permitted != nil {
			cmd.Env = append(cmd.Environ(), permitted.Variable())
		}
		ownGroup(cmd)
		p, err := processes.Start(cmd)
		if err != nil {
			return nil, fmt.Errorf("start the process of an actor: %w", err)
		}
		return p, nil
	}
}
