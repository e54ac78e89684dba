package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/transfer"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// trainPlan is what onnxrl train is going to do, with the bar that shows how far it has come.
type trainPlan struct {
	*run.Plan
	bar *trainBar
}

// openPlan reads the document and opens what it names. Nothing is written. Close the plan after
// use.
func (a *app) openPlan(ctx context.Context, path string, f *trainFlags) (_ *trainPlan, err error) {
	bar := a.newBar()
	j := run.Job{Dir: f.out, Resume: f.resume, Sets: f.sets, InitStore: f.store.path(), Share: f.store.dir}
	o := run.Options{Parallel: f.parallel, Program: a.program(), Digest: a.digest, Watch: a.watch, Hooks: a.trainHooks(bar)}
	if f.noPublish {
		j.Sets = append(slices.Clone(j.Sets), "publish.when="+experiment.Never)
	}
	if f.seeds != "" {
		if j.Seeds, err = parseSeeds(f.seeds); err != nil {
			return nil, err
		}
	}
	if f.init != "" {
		if j.Init, err = f.initOf(); err != nil {
			return nil, err
		}
	}
	// Its problems are reported before an engine is installed.
	switch {
	case f.resume != "":
		err = refuseSearch(f.resume)
	case f.zoo.file != "":
		j.Config, j.Name, err = a.zoo(&f.zoo, j.Sets)
		j.Sets = nil // which the document has
	default:
		_, _, err = a.kinds.Load(path, j.Sets)
	}
	if err != nil {
		return nil, err
	}
	if o.Engine, err = a.compiler(ctx); err != nil {
		return nil, err
	}
	o.Actor = a.launchActor(o.Engine, nil)
	if o.Executor, err = a.executor(ctx, o.Engine); err != nil {
		return nil, err
	}
	if o.Executor != nil {
		o.Parallel = o.Executor.Slots()
	}
	var p *run.Plan
	if j.Config != "" {
		p, err = run.New(ctx, a.kinds, j, o)
	} else {
		p, err = run.Open(ctx, a.kinds, path, j, o)
	}
	if err != nil {
		return nil, advise(err, "train", "--out", f.out)
	}
	return &trainPlan{p, bar}, nil
}

// zoo reads RL-Zoo's document of an environment, with edits. It returns what its run is called.
func (a *app) zoo(f *zooFlags, sets []string) (text, name string, err error) {
	doc, name, err := f.open()
	if err == nil {
		err = doc.Set(sets...)
	}
	if err == nil {
		err = experiment.Absolute(doc)
	}
	if err == nil {
		_, err = a.kinds.Decode(doc)
	}
	if err != nil {
		return "", "", err
	}
	return string(doc.Bytes()), name, nil
}

// train trains all runs of the plan.
func (p *trainPlan) train(ctx context.Context) (run.Summary, error) {
	defer p.bar.end()
	sum, err := p.Train(ctx)
	return sum, advise(err, "train", "--out", p.Dir())
}

// initOf is what the flags say that parameters begin with. Files are meant from any folder.
func (f *trainFlags) initOf() (run.Init, error) {
	r := run.Init{Ref: f.init, Partial: f.partial}
	if _, err := os.Stat(r.Ref); err == nil {
		if r.Ref, err = objects.Abs(r.Ref); err != nil {
			return r, err
		}
	}
	for _, m := range f.initMap {
		from, to, ok := strings.Cut(m, "=")
		if !ok || from == to {
			return r, fmt.Errorf("--init-map %q: expected FROM=TO, the beginnings of names", m)
		}
		r.Rename = append(r.Rename, transfer.Rename{From: from, To: to})
	}
	return r, nil
}

// trainHooks show what goes on, above the bar.
func (a *app) trainHooks(bar *trainBar) run.Hooks {
	out := bar.above(a.err)
	return run.Hooks{
		Log: a.logTo(out), Note: a.noteTo(out), Progress: bar.step, End: bar.settle,
		// An error of writing ends no run.
		Transferred: func(r *transfer.Report) { _ = printTransfer(out, r) },
		Begin: func(r *run.Run) {
			bar.told.Do(func() {
				a.tellData(out, r.Plan().Factory())
				a.tellNetwork(out, r.Trainer().Agent())
				a.tellLength(out, r.Trainer())
			})
			bar.begin(r)
		},
		Prove: func(r *run.Run, p train.Policy) {
			which := ""
			if r.Plan().Group() {
				which = fmt.Sprintf("seed %d: ", r.Seed())
			}
			if !a.quiet {
				fmt.Fprintf(out, "%sproving the policy of env step %d on %d observations, to publish it\n", which, p.EnvSteps, r.Config().Publish.Observations)
			}
		},
		PublishWith: a.publishWith,
	}
}

// publishWith is the command line that publishes the best policy of a run later.
func (a *app) publishWith(dir string, ties bool) string {
	if ties {
		return a.name + " models publish --allow-ties " + dir
	}
	return a.name + " models publish " + dir
}

// noteTo writes what a run has to say.
func (a *app) noteTo(w io.Writer) func(text string) {
	return func(text string) { fmt.Fprintf(w, "%s: %s\n", a.name, a.named(text)) }
}

// advise adds to an error of a run in a directory how to go on: which flag of the command changes
// it.
func advise(err error, command, flag, dir string) error {
	var resumable *run.ResumableError
	switch {
	case errors.As(err, &resumable):
		return fmt.Errorf("%w; continue from it with: onnxrl %s --resume %s", err, command, dir)
	case errors.Is(err, run.ErrExists):
		return fmt.Errorf("%w: continue it with --resume %s, or choose another %s", err, dir, flag)
	case errors.Is(err, run.ErrFinished):
		return fmt.Errorf("%w with %s", err, flag)
	case errors.Is(err, run.ErrNoConfig):
		return fmt.Errorf("%w: --config FILE", err)
	case errors.Is(err, transfer.ErrPartial):
		return fmt.Errorf("%w; --partial accepts that, and --init-map changes the beginnings of names", err)
	}
	return err
}

// printTransfer writes how parameters fitted: the summary, and a line for each of them.
func printTransfer(out io.Writer, r *transfer.Report) error {
	if _, err := fmt.Fprintln(out, r.Summary()); err != nil {
		return err
	}
	w := printable.NewTable(out)
	for _, m := range r.Matched {
		from := ""
		if m.From != m.Name {
			from = "\tfrom " + m.From
		}
		fmt.Fprintf(w, "copied\t%s\t%v%s\n", m.Name, m.Shape, from)
	}
	for _, m := range r.ShapeMismatch {
		fmt.Fprintf(w, "other shape\t%s\t%v\t%v in the source\n", m.Name, m.Network, m.Source)
	}
	for _, p := range r.New {
		fmt.Fprintf(w, "new\t%s\t%v\n", p.Name, p.Shape)
	}
	for _, p := range r.LeftOver {
		fmt.Fprintf(w, "left over\t%s\t%v\n", p.Name, p.Shape)
	}
	return w.Flush()
}
