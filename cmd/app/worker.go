package app

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/log"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/agents/worker/temporal"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// workerFlags are the command line of worker.
type workerFlags struct {
	queues []string
	dir    string
}

// workerCommand trains for another process.
func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Train what programs on other machines hand over",
		Long: `Carries out training intervals of programs with the same --executor: members of populations, trials, runs of studies. A Temporal server keeps what is to be done, and checkpoints
and run directories go through the storage that the program's address names. The worker needs nothing of them but their credentials. It serves the queue of the address, or those of --queues: one for each kind of machine, such
as cpu, memory and gpu. Ctrl-C saves what is going on, and another worker goes on with it.

Without --executor the worker serves the process that has started it, as --workers does. Intervals come on standard input as JSON, one object a line, and their progress goes to standard output. When
standard input ends the state is saved and the worker ends. Package agents/worker has the protocol.`,
		Example: `  onnxrl worker --executor temporal://temporal.example.org:7233 --workers 4
  onnxrl worker --executor temporal://temporal.example.org:7233/research --queues cpu,memory
  onnxrl evolve cartpole_evolve --workers 2   # starts two by itself`,
		Args:        cobra.NoArgs,
		Annotations: map[string]string{printsText: "messages"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return saying("worker", a.worker(cmd.Context(), &f))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&a.executorURL, "executor", "", "serve programs through this Temporal server: temporal://HOST:PORT/NAMESPACE")
	fl.StringSliceVar(&f.queues, "queues", nil, "with --executor, the task queues that are served (default: that of the address, or "+temporal.DefaultQueue+")")
	fl.IntVar(&a.workers, "workers", 0, "with --executor, train in this many processes, as many intervals at once (0: in this one, one at a time)")
	fl.StringVar(&f.dir, "dir", "", "with --executor, where run directories are while they are trained (default: the system's for temporary files)")
	a.addNice(cmd)
	return cmd
}

func (a *app) worker(ctx context.Context, f *workerFlags) (err error) {
	if a.executorURL == "" && (len(f.queues) > 0 || f.dir != "" || a.workers != 0) {
		return errors.New("--queues, --dir and --workers belong to --executor")
	}
	eng, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	if a.executorURL == "" {
		return a.serveStdio(ctx, eng)
	}
	address, err := temporal.ParseAddress(a.executorURL)
	if err != nil {
		return fmt.Errorf("--executor: %w", err)
	}
	do, err := a.processes(eng)
	if err != nil {
		return err
	}
	if do == nil {
		t := a.tasks(eng, func(text string) { a.say("%s", text) })
		defer func() { err = errors.Join(err, t.Close()) }()
		do = t
	}
	w, err := temporal.NewWorker(temporal.WorkerOptions{Cache: a.objectsCache(), Address: address, Queues: f.queues, Do: do, Hello: hello(eng), Dir: f.dir, Log: log.NewStructuredLogger(a.logTo(a.err))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	// Intervals save where they stop.
	defer a.stop.hold(saveGrace)()
	if !a.quiet {
		a.say("serves %v, %s at once; Ctrl-C ends it", address, plural(do.Slots(), "interval"))
	}
	return w.Run(ctx)
}

// serveStdio serves tasks on the standard streams.
func (a *app) serveStdio(ctx context.Context, eng engine.Compiler) error {
	var say func(text string)
	t := a.tasks(eng, func(text string) { say(text) })
	// A task saves where it stops.
	defer a.stop.hold(saveGrace)()
	err := worker.Serve(ctx, t, hello(eng), a.in, printable.Raw(a.out), func(to func(string)) { say = to })
	return errors.Join(err, t.Close())
}

// tasks trains in this process. What data knows of the future is said once.
func (a *app) tasks(eng engine.Compiler, say func(text string)) *worker.Local {
	var told sync.Once
	return worker.NewLocal(a.kinds, run.Options{Engine: eng, Program: a.program(), Hooks: run.Hooks{
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
	}})
}

// hello is what this process says of itself where it trains together with others.
func hello(eng engine.Compiler) worker.Hello {
	h := worker.NewHello(eng.Name(), runtime.GOOS+"/"+runtime.GOARCH+" "+strings.Join(cpuFeatures(), " "))
	if info, err := ort.Info(); err == nil && eng.Name() == ort.Name {
		h.Engine += " " + info.Version
	}
	return h
}

// addWorkers gives a command that trains many runs the flags --workers and --executor. What they
// are called, and what else there is to know, is for its help.
func (a *app) addWorkers(cmd *cobra.Command, runs, about string) {
	cmd.Flags().IntVar(&a.workers, "workers", 0, "train "+runs+" in this many processes of this machine, where one that ends takes nothing with it (0: in this one)"+about)
	cmd.Flags().StringVar(&a.executorURL, "executor", "", "train "+runs+" on the machines whose workers serve temporal://HOST:PORT/NAMESPACE?queue=NAME&objects=URL"+about)
	rarely(cmd.Flags(), "workers", "executor")
}

// slots is how many runs are trained at once where others than this process do, 0 where this one
// does.
func (a *app) slots() int {
	if a.trains == nil {
		return 0
	}
	return a.trains.Slots()
}

// executor returns what trains where --workers or --executor ask for others than this process, nil
// where this one trains. The program ends it when it ends.
func (a *app) executor(ctx context.Context, eng engine.Compiler) (run.Executor, error) {
	if a.executorURL == "" {
		return a.processes(eng)
	}
	if a.workers != 0 {
		return nil, errors.New("--workers are of this machine, and --executor says that others train: give one of them")
	}
	if a.trains != nil {
		return a.trains, nil
	}
	address, err := temporal.ParseAddress(a.executorURL)
	if err != nil {
		return nil, fmt.Errorf("--executor: %w", err)
	}
	e, err := temporal.NewExecutor(ctx, temporal.ExecutorOptions{Cache: a.objectsCache(), Address: address, Hello: hello(eng), Log: log.NewStructuredLogger(a.logTo(a.err)), Note: func(text string) { a.say("%s", text) }})
	if err != nil {
		return nil, fmt.Errorf("--executor: %w", err)
	}
	a.trains = e
	return e, nil
}

// processes returns what trains in processes of this machine where --workers asks for them, else
// nil.
func (a *app) processes(eng engine.Compiler) (run.Executor, error) {
	switch {
	case a.workers < 0:
		return nil, fmt.Errorf("--workers %d: expected at least 0", a.workers)
	case a.workers == 0:
		return nil, nil
	case a.trains != nil:
		return a.trains, nil
	}
	program, err := executable()
	if err != nil {
		return nil, fmt.Errorf("--workers: %w", err)
	}
	args := []string{"worker", "--engine", eng.Name(), "--no-install", "--quiet", "--log-level", a.logLevel}
	if info, err := ort.Info(); err == nil && eng.Name() == ort.Name {
		args = append(args, "--ort-library", info.Library.Path)
	}
	pool, err := worker.NewPool(worker.Options{
		Workers: a.workers, Command: func() *exec.Cmd { return exec.Command(program, args...) }, Hello: hello(eng), Log: a.err,
		Note: func(text string) { a.say("%s", text) },
	})
	if err != nil {
		return nil, fmt.Errorf("--workers: %w", err)
	}
	a.trains = pool
	return pool, nil
}
