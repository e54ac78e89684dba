package app

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/export/serve"
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
		Short:  "Try a model where a crash takes nothing with it; started by serve",
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

// prover tries versions in processes of this program, nil for an engine that is Go throughout and
// cannot crash, and where nobody knows the program.
func (a *app) prover(c engine.Compiler) func(context.Context, serve.Trial) error {
	if c.Name() != ort.Name {
		return nil
	}
	program, err := executable()
	if err != nil {
		a.log.Warn("versions are loaded without being tried in a process of their own", "error", err)
		return nil
	}
	argv := []string{program, proveName, "--engine", ort.Name, "--no-install"}
	if info, err := ort.Info(); err == nil {
		argv = append(argv, "--ort-library", info.Library.Path)
	}
	return (&prove.Process{Argv: argv}).Try
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
