package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// tuneFlags are the command line of tune.
type tuneFlags struct {
	sets             []string
	out, resume      string
	trials, parallel int
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune CONFIG.yaml",
		Short: "Search for hyper-parameters",
		Long: `Trains the agent that a configuration describes again and again, each time with other values of the keys that its section tune names. Writes the configuration with the best of them.

CONFIG.yaml is a file, the name of a shipped experiment, or -, which reads the configuration from standard input. A trial counts by the last evaluation of its policy, on the validation split; evaluations before it, every train.validation.every_steps, are what it is pruned by. All trials have the seed of the configuration. One trial at a time gives the same trials every time. Several at once do not, because what a trial
learns from the others depends on who finishes first.

The directory has trials.jsonl (the log), trials.csv, best.yaml (the tuned configuration, ready for onnxrl train; its key chosen_from says out of how many it was chosen, which the deflated Sharpe ratio of its runs counts) and config.yaml. Ctrl-C stops; --resume goes on, also after a crash: finished trials are kept, and those that were running begin again with the same values. When it is resumed, --trials may be raised and
--parallel may change.`,
		Example: `  onnxrl tune cartpole_tune --out runs/tuned
  onnxrl tune config.yaml --trials 100 --parallel 2
  onnxrl tune --resume runs/tuned
  onnxrl train runs/tuned/best.yaml --seeds 1,2,3`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("tune", a.tune(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration, for instance --set agent.gamma=0.99")
	fl.StringVarP(&f.out, "out", "o", "", "directory of the search (default: runs/ and the name of the configuration with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "go on with the search in this directory")
	fl.IntVar(&f.trials, "trials", 0, "trials in all (default: tune.trials)")
	fl.IntVar(&f.parallel, "parallel", 0, "trials at once (default: tune.parallel)")
	a.addWorkers(cmd, "trials", "; --parallel of as many")
	a.addNice(cmd)
	a.addMetrics(cmd)
	return cmd
}

// check refuses flags that contradict each other.
func (f *tuneFlags) check(args []string) error {
	switch {
	case f.resume == "" && len(args) == 0:
		return errors.New("a configuration is needed, or --resume with the directory of a search")
	case f.resume != "" && len(args) > 0:
		return errors.New("--resume takes the configuration of its directory; give no file")
	case f.resume != "" && f.out != "":
		return errors.New("--resume goes on in its directory; leave --out out")
	case f.trials < 0 || f.parallel < 0:
		return errors.New("--trials and --parallel: expected at least 1")
	}
	return nil
}

func (a *app) tune(ctx context.Context, args []string, f *tuneFlags) (err error) {
	if err := f.check(args); err != nil {
		return err
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	var bar *progress.Progress
	metric := ""
	s, err := a.openSearch(ctx, path, f, func(t tune.Trial, best *tune.Trial) {
		bar.FieldText("trial", fmt.Sprintf("%d %s", t.Number, t.State))
		if best != nil {
			bar.Field("best "+metric, float64(best.Value))
		}
		if t.State != tune.Running {
			bar.Add(1)
		}
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Rehearse(ctx); err != nil {
		return err
	}
	finished, err := s.Begin()
	if err != nil {
		return err
	}
	metric = s.Config().Metric
	bar = progress.Start(a.err, progress.Options{Label: "tune", Unit: "trials", Total: int64(s.Config().Trials), Initial: int64(finished), Quiet: a.quiet})
	ended := s.Run(ctx)
	bar.Finish()
	if ended != nil && !errors.Is(ended, context.Canceled) && !errors.Is(ended, context.DeadlineExceeded) {
		return ended
	}
	sum, err := s.Finish()
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(sum)
	} else {
		err = printTuned(a.out, &sum, s.Config().Space)
	}
	if err == nil && ended != nil {
		a.say("stopped; continue with: onnxrl tune --resume %s", s.Dir())
		return quietError{errInterrupted}
	}
	return err
}

// openSearch opens the search that the flags describe.
func (a *app) openSearch(ctx context.Context, path string, f *tuneFlags, changed func(t tune.Trial, best *tune.Trial)) (*tune.Search, error) {
	o := tune.SearchOptions{Dir: f.out, Resume: f.resume, Sets: slices.Clone(f.sets), Digest: a.digest, Changed: changed, Watch: a.watch}
	if f.trials > 0 {
		o.Sets = append(o.Sets, fmt.Sprintf("tune.trials=%d", f.trials))
	}
	if n := cmp.Or(f.parallel, max(0, a.workers)); n > 0 {
		o.Sets = append(o.Sets, fmt.Sprintf("tune.parallel=%d", n))
	}
	if f.resume == "" {
		// Its problems are reported before an engine is installed.
		if _, _, _, err := tune.Load(a.kinds, path, o.Sets); err != nil {
			return nil, err
		}
	}
	var err error
	if o.Engine, err = a.compiler(ctx); err != nil {
		return nil, err
	}
	if o.Executor, err = a.executor(ctx, o.Engine); err != nil {
		return nil, err
	}
	s, err := tune.OpenSearch(ctx, a.kinds, path, o)
	if err != nil {
		return nil, advise(err, "tune", "--out", f.out)
	}
	a.tellData(a.err, s.Factory())
	return s, nil
}

// refuseSearch returns an error for a directory that holds a search and no run.
func refuseSearch(dir string) error {
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(dir, run.LineageFile), &l); err != nil || l.Command != "tune" {
		return nil
	}
	return fmt.Errorf("%s holds a search for hyper-parameters, which goes on with onnxrl tune --resume %s; to train what it has found: onnxrl train %s", dir, dir, filepath.Join(dir, tune.BestFile))
}
