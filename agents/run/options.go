package run

import (
	"cmp"
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

// Options say where and how a document is trained. Only Engine is required.
type Options struct {
	// Engine runs the networks; it stays the caller's.
	Engine engine.Compiler
	// Dir is a new run directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that
	// does not exist.
	Dir string
	// Resume is the directory of a run, or of several seeds, to continue bit for bit, or a
	// checkpoint of a run to go on from. With Dir the latter goes on in a new directory; without,
	// the run goes back, and what came after the checkpoint is removed. In a new directory the
	// document may change as far as train.Trainer.Edit goes.
	Resume string
	// Sets edit the document, such as agent.gamma=0.9. In a run that is resumed only what does not
	// change its results may differ, and train.total_env_steps may grow.
	Sets []string
	// Seeds replace those of the document: one run for each, in seed-N. Parallel is how many of
	// them go on at once; 0 is one.
	Seeds    []uint64
	Parallel int
	// Init is what parameters begin with, where its Ref is set: the directory of a run, a
	// checkpoint, an ONNX file, or an artefact of the store in the directory InitStore. Of it Ref,
	// Partial and Rename are read.
	Init      Init
	InitStore string
	// NoPublish publishes nothing, whatever the document says.
	NoPublish bool
	// Interval, unless 0, is how many env steps the training intervals have that the run is divided
	// into: [Rehearse] refuses fewer than a learner step takes.
	Interval int64
	// Share is the directory of an artefact store that publications are copied into; empty copies
	// none.
	Share string
	// Factory makes the environments that the document names, where they are open already, as
	// experiment.Kinds.Open returns them; it stays the caller's. nil opens them.
	Factory envs.Factory
	// Replay, unless nil, returns the store that a run's off-policy learner records into and draws
	// from, such as the place of a member in a replay.Shared, by what the run is: its seed, its
	// directory or its document. It stays the caller's, who saves it; see the package comment.
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
	// Watch, unless nil, shows the runs while they go, under the name Label, or without one that of
	// the directory, see [Label].
	Watch metrics.Watcher
	Label string
	// Executor, unless nil, trains intervals, and the runs of several seeds, elsewhere than in this
	// process. What is open here is of no use there: Factory and Prefixes are not looked at, and
	// Replay cannot be shared.
	Executor Executor
	// Group is the directory of what the runs are a part of, such as a search. Those that an Executor
	// trains are of the directory that theirs are in where it is empty.
	Group string
	// Root is the directory below which digests of documents call files by their place in it, as it is
	// that of a population, of which a search is a part; empty is Group, and without that files are
	// called by their paths.
	Root  string
	Hooks Hooks

	// start is the checkpoint that a new run goes on from, until the env steps at which a run
	// pauses, unless 0, and unkept says that there is no directory: all of an [Interval].
	start  string
	until  int64
	unkept bool
	// runs is how many runs a [Task]'s is one of, 0 for a single one, and alias what its
	// publications are called in a shared store, empty for the name of its directory.
	runs  int
	alias string
	// continues is what lineage calls start; empty for its path.
	continues string
}

// root is Options.Root, or Group.
func (o *Options) root() string { return cmp.Or(o.Root, o.Group) }

// Hooks tell a program what goes on. All are optional. Runs of several seeds call them from
// goroutines of their own. Of runs that an Executor trains, Note, Progress and Evaluated are
// called; such a run has no trainer here.
type Hooks struct {
	// Log is where trainers and publishers log.
	Log *slog.Logger
	// Note is told, in one line, what somebody should know who has started the runs: that one goes
	// back to a checkpoint, that results may differ.
	Note func(text string)
	// Transferred is called once with how Options.Init has fitted.
	Transferred func(r *transfer.Report)
	// Begin is called before a run takes its first env step in this process, Progress as
	// train.Hooks says, and End when it has ended or was interrupted, before its policy is
	// published and its directory says that it is finished; its error ends the run, which calls it
	// again when it is resumed.
	Begin    func(r *Run)
	Progress func(r *Run, p train.Progress)
	End      func(r *Run, res train.Result) error
	// Evaluated is called with what a validation has found; its error ends the run.
	Evaluated func(r *Run, envSteps int64, metrics map[string]float64) error
	// Prove is called before a policy is proved to be published, which can take minutes.
	Prove func(r *Run, p train.Policy)
	// PublishWith returns the command line that publishes the best policy of a run's directory
	// later, for RunSummary.PublishWith; ties accepts nearly undecided choices.
	PublishWith func(dir string, ties bool) string
}
