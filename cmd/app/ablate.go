package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// ablateFlags are the command line of ablate.
type ablateFlags struct {
	sets         []string
	out, seeds   string
	parallel     int
	full, dryRun bool
	configs      int
	calibrate    time.Duration
}

func (a *app) ablateCommand() *cobra.Command {
	var f ablateFlags
	cmd := &cobra.Command{
		Use:   "ablate {STUDY.yaml | AGENT}",
		Short: "Find out what matters: vary an experiment one factor at a time",
		Long: `Trains a base experiment and what it becomes when one of its factors is set otherwise, each over several seeds. Evaluates all of them on the validation range next to equal-weight buy-and-hold, and writes tables and plots. A study file names the base, the seeds and the factors; --full trains every combination of their levels.

The time that it will take is measured first, by training each network for a moment, and --dry-run stops there. Ctrl-C saves and stops; the same command goes on
where it was stopped and trains only what is missing. A run that fails does not stop the others. --set edits every cell.

The study is read from standard input where STUDY.yaml is -, and its folder is then runs/stdin unless --out names another. Every run has train.threads cores, one where the base does not say: results do not depend on --parallel.`,
		Example: `  onnxrl ablate qtmrl_ablation --dry-run
  onnxrl ablate qtmrl_ablation --set train.total_env_steps=50000 --set env.data.source.path=bars.parquet
  onnxrl ablate study.yaml --full --parallel 8 --out runs/grid
  onnxrl ablate runs/scml/agent`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if isAgent(args[0]) {
				r, err := a.ablateAgent(cmd.Context(), args[0], &f)
				if err != nil {
					return fmt.Errorf("ablate: %w", err)
				}
				return a.printTable(r, nil)
			}
			if err := a.ablate(cmd.Context(), args[0], &f); err != nil {
				return fmt.Errorf("ablate: %w", err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration of every cell, for instance --set train.total_env_steps=50000")
	fl.StringVarP(&f.out, "out", "o", "", "folder of the study (default: runs/ and its name)")
	fl.StringVar(&f.seeds, "seeds", "", "use these seeds instead of the study's, for instance 42,43,44")
	fl.IntVar(&f.parallel, "parallel", 0, "runs that go on at once (0: as many as there are cores for)")
	fl.BoolVar(&f.full, "full", false, "train every combination of levels")
	fl.IntVar(&f.configs, "configs", 30, "configurations that an AGENT plays")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the plan and the estimated time, and stop")
	fl.DurationVar(&f.calibrate, "calibrate", 3*time.Second, "training time of each measurement for the estimate (0: no estimate)")
	a.addWorkers(cmd, "the runs", "; results do not depend on it")
	a.addNice(cmd)
	a.addMetrics(cmd)
	return cmd
}

func (a *app) ablate(ctx context.Context, path string, f *ablateFlags) (err error) {
	if f.parallel < 0 || f.calibrate < 0 {
		return errors.New("--parallel and --calibrate must not be negative")
	}
	s, err := a.openStudy(ctx, path, f)
	if err != nil {
		return err
	}
	var e *ablate.Estimate
	if f.calibrate > 0 {
		if !a.quiet {
			a.say("measuring what a run of each network costs")
		}
		if e, err = s.Estimate(ctx, ablate.Calibration{Budget: f.calibrate, Now: time.Now}); err != nil {
			return err
		}
	}
	if f.dryRun && a.json {
		r := s.Report()
		r.Estimate = e
		return a.printJSON(r)
	}
	// The plan comes first, and with --json beside the document.
	to := a.out
	if a.json {
		to = a.err
	}
	if !a.json || !a.quiet {
		if err := printAblationPlan(to, s, e); err != nil {
			return err
		}
	}
	if f.dryRun {
		return nil
	}
	if err := s.Rehearse(ctx); err != nil {
		return err
	}
	if err := s.Begin(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	first := s.Plan.Study.Metrics[0]
	failed := executeStudy(ctx, a, "ablate", &s.Study, func(r *ablate.Run) int64 { return s.Plan.Cells[r.CellIndex].Config.Train.TotalEnvSteps }, func(r *ablate.Run) string {
		return fmt.Sprintf("%s: %s %.4g", r.Name(), first, float64(r.Outcome.Metrics[first]))
	})
	r := s.Report()
	r.Estimate = e
	if err := s.Write(r); err != nil {
		return err
	}
	r.Dir = s.Dir
	if a.json {
		err = a.printJSON(r)
	} else if r.Summary.Done > 0 {
		if err = r.Summary.Print(a.out); err == nil {
			_, err = fmt.Fprintf(a.out, "tables and plots in %s\n", s.Dir)
		}
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		a.say("stopped with %d of %d runs finished; the same command goes on", r.Summary.Done, len(s.Runs()))
		return quietError{errInterrupted}
	case failed > 0:
		return fmt.Errorf("%s failed; the same command tries again", plural(failed, "run"))
	}
	return nil
}

// openStudy decodes a study and every document that comes of it, and reads what its folder holds.
func (a *app) openStudy(ctx context.Context, path string, f *ablateFlags) (*ablate.Study, error) {
	doc, err := a.document(path)
	if err != nil {
		return nil, err
	}
	c, base, err := ablate.Decode(doc, path)
	if err != nil {
		return nil, err
	}
	if f.seeds != "" {
		if c.Seeds, err = parseSeeds(f.seeds); err != nil {
			return nil, err
		}
		if err := configs.Validate(c); err != nil {
			return nil, fmt.Errorf("--seeds: %w", err)
		}
	}
	p, err := ablate.NewPlan(ctx, c, base, ablate.Options{Sets: f.sets, Full: f.full, Edit: experiment.Absolute, Read: a.kinds.Read, Decode: a.kinds.Decode, Effective: ablate.Opened(a.kinds)})
	if err != nil {
		return nil, err
	}
	eng, err := a.compiler(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := a.studyRuns(ctx, eng)
	if err != nil {
		return nil, err
	}
	s := &ablate.Study{Plan: p, Runner: ablate.Experiments{Trainer: study.Trainer{Kinds: a.kinds, Options: runs}}, Now: time.Now}
	s.Dir, s.Parallel = cmp.Or(f.out, filepath.Join("runs", experiment.Name(path))), a.atOnce(f.parallel, p.Cells[0].Config)
	return s, s.Open()
}

// studyRuns is how the runs of a study are trained.
func (a *app) studyRuns(ctx context.Context, eng engine.Compiler) (o run.Options, err error) {
	var told sync.Once
	o = run.Options{
		Engine: eng, Program: a.program(), Digest: a.digest, Watch: a.watch,
		Hooks: run.Hooks{Log: a.logTo(a.err), Begin: func(r *run.Run) { told.Do(func() { a.tellData(a.err, r.Plan().Factory()) }) }},
	}
	o.Executor, err = a.executor(ctx, eng)
	return o, err
}

// atOnce is how many runs of a study go on at once: what is asked for, what an executor has room for,
// or as many as there are cores for.
func (a *app) atOnce(asked int, c experiment.Config) int {
	return cmp.Or(asked, a.slots(), max(1, runtime.GOMAXPROCS(0)/max(1, c.Train.Threads)))
}

// executeStudy carries out what is left of a study, shows how far all runs have come together, and
// returns how many jobs failed. steps are the env steps of a run, and came says what has come of a
// job, empty for nothing.
func executeStudy[O any](ctx context.Context, a *app, label string, s *study.Study[O], steps func(r *study.Job[O]) int64, came func(j *study.Job[O]) string) (failed int) {
	var total, taken int64
	done, runs := 0, s.Runs()
	for _, r := range runs {
		total += steps(r)
		if r.State == study.Done {
			done++
			taken += steps(r)
		}
	}
	bar := progress.Start(a.err, progress.Options{Label: label, Unit: "env steps", Total: total, Initial: taken, Quiet: a.quiet})
	logs := bar.Lines(a.err)
	s.OnSteps = bar.Add
	s.OnJob = func(j *study.Job[O]) {
		switch j.State {
		case study.Done:
			if j.SeedIndex >= 0 {
				done++
			}
			if text := came(j); text != "" && !a.json && !a.quiet {
				fmt.Fprintln(logs, text)
			}
		case study.Failed:
			failed++
			fmt.Fprintf(logs, "%s: %s: %v\n", a.name, j.Name(), j.Err)
		}
		bar.FieldText("runs", fmt.Sprintf("%d/%d", done, len(runs)))
	}
	// Runs save where they stop.
	defer a.stop.hold(saveGrace)()
	// The context's error is looked at by the caller, when what is finished has been written.
	_ = s.Execute(ctx)
	bar.Finish()
	return failed
}

// printAblationPlan shows the cells, and what they will cost where that is known.
func printAblationPlan(out io.Writer, s *ablate.Study, e *ablate.Estimate) error {
	p := s.Plan
	finished := map[string]int{}
	remaining := 0
	for _, r := range s.Runs() {
		if r.Outcome != nil {
			finished[r.Cell]++
		} else {
			remaining++
		}
	}
	w := printable.NewTable(out)
	fmt.Fprint(w, "cell\tassigns\tenv steps\tseeds\tfinished")
	if e != nil {
		fmt.Fprint(w, "\tenv steps/s\ta run")
	}
	fmt.Fprintln(w)
	for i := range p.Cells {
		c := &p.Cells[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d", c.Name, p.Assigns(c), c.Config.Train.TotalEnvSteps, len(p.Seeds), finished[c.Name])
		if e != nil {
			fmt.Fprintf(w, "\t%.0f\t%s", e.Costs[i].StepsPerSecond, roughly(e.Costs[i].Seconds))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	line := fmt.Sprintf("%s of %s to train, %d at a time", plural(remaining, "run"), plural(len(p.Cells), "cell"), s.Parallel)
	switch {
	case e != nil && remaining > 0:
		line += fmt.Sprintf(": about %s on this machine, if nothing else keeps it busy", roughly(e.Seconds))
	case remaining > 0:
		line += "; the time was not estimated"
	}
	_, err := fmt.Fprintf(out, "\n%s\n", line)
	return err
}

// roughly writes seconds with two parts at most: 2h10m, 3m05s, 12s.
func roughly(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
