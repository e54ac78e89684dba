package app

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/export/serve/prove"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// proveName is the hidden command that is the other process of package prove.
const proveName = "prove-model"

// proveCommand tries the model on its standard input.
func (a *app) proveCommand() *cobra.Command {
	return &cobra.Command{
		Use:    proveName,
		Short:  "Try a model where a crash takes nothing with it; started by commands that open models",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.compiler(cmd.Context())
			if err != nil {
				return err
			}
			expendable()
			return prove.Main(cmd.Context(), c, a.in, printable.Raw(a.out))
		},
	}
}

// expendable has the system end this process before the server where memory runs out, and ends it
// when the server is gone: nothing else would end one that hangs below Go.
func expendable() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // Linux has it
	endWithParent()
}

// endWithParent ends this process when the one that started it is gone.
func endWithParent() {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		os.Exit(1)
	}()
}

// foreign opens an engine, as namedEngine does, for models that others wrote: each is tried in a
// process of its own before it is compiled in this one.
func (a *app) foreign(ctx context.Context, name string) (engine.Compiler, error) {
	c, err := a.namedEngine(ctx, name)
	if err != nil {
		return nil, err
	}
	if p := a.prover(c); p != nil {
		return p.Compiler(ctx, c), nil
	}
	return c, nil
}

// prover tries models in processes of this program, nil for an engine that is Go throughout and
// cannot crash, and where nobody knows the program.
func (a *app) prover(c engine.Compiler) *prove.Process {
	if c.Name() != ort.Name {
		return nil
	}
	if a.tries != nil {
		return a.tries
	}
	program, err := executable()
	if err != nil {
		a.log.Warn("models are loaded without being tried in a process of their own", "error", err)
		return nil
	}
	argv := []string{program, proveName, "--engine", ort.Name, "--no-install"}
	if info, err := ort.Info(); err == nil {
		argv = append(argv, "--ort-library", info.Library.Path)
	}
	a.tries = &prove.Process{Argv: argv}
	return a.tries
}

// executable is this program's file. Where /proc has it, it is found after an upgrade has put
// another in its place, too.
func executable() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}
