package run

import (
	"context"
	"log/slog"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/models/transfer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// Options are what jobs are trained with in this process, beside what a [Job] says. Only Engine is
// required.
type Options struct {
	// Engine runs the networks; it stays the caller's.
	Engine engine.Compiler
	// Parallel is how many of several seeds go on at once; 0 is one.
	Parallel int
	// Factory makes the environments that the document names, where they are open already, as
	// experiment.Kinds.Open returns them; they get the document's wrappers. It stays the caller's.
	// nil opens them.
	Factory envs.Factory
	// Replay, unless nil, returns the store that a run's off-policy learner records into and draws
	// from, such as the place of a member in a replay.Shared. It depends on what the run is: its
	// seed, its directory or its configuration. It stays the caller's, who saves it; see the
	// package comment.
	Replay func(r *Run) (agents.Replay, error)
	// Prefixes, unless nil, holds what layers that never change make of windows for several plans
	// at once, see agents.Setup; it is closed after them. nil makes one for the plan.
	Prefixes *prefix.Caches
	// Actor starts a process that acts for a run (train.actors.processes) by [ServeActor]; nil
	// starts none.
	Actor func(ctx context.Context, index int) (actors.Conn, error)
	// Program is the name and the version that checkpoints and artefacts give for what has made
	// them; empty for those of the main package.
	Program string
	// Digest reads the files of networks for their SHA-256; nil for [Digest].
	Digest func(files []string) (string, error)
	// Watch, unless nil, shows the runs while they go.
	Watch metrics.Watcher
	// Executor, unless nil, trains intervals, and the runs of several seeds, elsewhere than in this
	// process. What is open here is of no use there: Factory and Prefixes are not looked at, and
	// Replay cannot be shared.
	Executor Executor
	Hooks    Hooks
}

// Hooks tell a program what goes on. All are optional. Runs of several seeds call them from
// goroutines of their own. Of runs that an Executor trains, Note, Progress and Evaluated are
// called; such a run has no trainer here, and as part of no plan no document.
type Hooks struct {
	// Log is where trainers and publishers log.
	Log *slog.Logger
	// Note receives messages of one line for whoever has started the runs: that one goes back to a
	// checkpoint, that results may differ.
	Note func(text string)
	// Transferred is called once with how Job.Init has fitted.
	Transferred func(r *transfer.Report)
	// Begin is called before a run takes its first env step in this process, and Progress as
	// train.Hooks says. End is called when it has ended or was interrupted, before its policy is
	// published and its directory says that it is finished. Its error ends the run, which calls it
	// again when it is resumed.
	Begin    func(r *Run)
	Progress func(r *Run, p train.Progress)
	End      func(r *Run, res train.Result) error
	// Evaluated is called with what a validation has found; its error ends the run.
	Evaluated func(r *Run, envSteps int64, metrics map[string]float64) error
	// Prove is called before the parity check of a policy that is to be published, which can take minutes.
	Prove func(r *Run, p train.Policy)
	// PublishWith returns the command line that publishes the best policy of a run's directory
	// later, for RunSummary.PublishWith; ties accepts nearly undecided choices.
	PublishWith func(dir string, ties bool) string
}
