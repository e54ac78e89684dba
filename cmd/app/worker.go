package app

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
)

// workerCommand is the other process of --workers.
func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Train for another process, as --workers has it",
		Long: `Carries out training intervals for another process, which hands them over on standard input as JSON, one object a line, and is told on standard output how they go. It is
what --workers starts; package agents/worker has the protocol. When standard input ends, the state is saved and the worker ends.`,
		Example:     "  onnxrl evolve cartpole_evolve --workers 2   # starts two of them",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{printsText: "messages"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			eng, err := a.compiler(cmd.Context())
			if err != nil {
				return fmt.Errorf("worker: %w", err)
			}
			return saying("worker", a.work(cmd.Context(), eng))
		},
	}
}

// work serves tasks on the standard streams.
func (a *app) work(ctx context.Context, eng engine.Compiler) error {
	var say func(text string)
	var told sync.Once
	o := run.Options{Engine: eng, Hooks: run.Hooks{
		Log: a.logTo(a.err),
		Begin: func(r *run.Run) {
			told.Do(func() {
				var text strings.Builder
				a.tellData(&text, r.Plan().Factory())
				if text.Len() > 0 {
					say(strings.TrimSpace(text.String()))
				}
			})
		},
		PublishWith: a.publishWith,
	}}
	t := worker.NewTasks(a.kinds, o)
	// A task saves where it stops.
	defer a.stop.hold(saveGrace)()
	err := worker.Serve(ctx, t, hello(eng), a.in, a.out, func(to func(string)) { say = to })
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	return err
}

// hello is what this process says of itself where it trains together with others.
func hello(eng engine.Compiler) worker.Hello {
	h := worker.NewHello(eng.Name(), runtime.GOOS+"/"+runtime.GOARCH+" "+strings.Join(cpuFeatures(), " "))
	if info, err := ort.Info(); err == nil && eng.Name() == ort.Name {
		h.Engine += " " + info.Version
	}
	return h
}

// addWorkers gives a command that trains many runs the flag --workers. What they are called, and
// what else there is to know, is for its help.
func (a *app) addWorkers(cmd *cobra.Command, runs, about string) {
	cmd.Flags().IntVar(&a.workers, "workers", 0, "train "+runs+" in this many processes of this machine, where one that ends takes nothing with it (0: in this one)"+about)
}

// executor returns what trains where --workers asks for processes, nil where this one trains. The
// program ends it when it ends.
func (a *app) executor(eng engine.Compiler) (run.Executor, error) {
	switch {
	case a.workers < 0:
		return nil, fmt.Errorf("--workers %d: expected at least 0", a.workers)
	case a.workers == 0:
		return nil, nil
	case a.pool != nil:
		return a.pool, nil
	}
	program, err := executable()
	if err != nil {
		return nil, fmt.Errorf("--workers: %w", err)
	}
	args := []string{"worker", "--engine", eng.Name(), "--no-install", "--quiet", "--log-level", a.logLevel}
	if info, err := ort.Info(); err == nil && eng.Name() == ort.Name {
		args = append(args, "--ort-library", info.Library.Path)
	}
	a.pool, err = worker.NewPool(worker.Options{
		Workers: a.workers, Command: func() *exec.Cmd { return exec.Command(program, args...) }, Hello: hello(eng), Log: a.err,
		Note: func(text string) { a.say("%s", text) },
	})
	if err != nil {
		return nil, fmt.Errorf("--workers: %w", err)
	}
	return a.pool, nil
}
