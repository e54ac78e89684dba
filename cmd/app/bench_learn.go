package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/cmd/internal/learning"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// learnReport is what onnxrl bench learn prints; the JSON keys are stable.
type learnReport struct {
	Engine string       `json:"engine"`
	Tasks  []taskReport `json:"tasks"`
	// Missed counts the tasks that are not passed.
	Missed int `json:"missed"`
}

// taskReport is one task with all of its seeds.
type taskReport struct {
	Task   string            `json:"task"`
	Target float64           `json:"target"`
	Source string            `json:"target_source"`
	Runs   []learning.Result `json:"runs"`
	learning.Summary
	// Phases are the seconds that all runs together spent in each part of the work, by name; absent
	// unless --profile asks for them.
	Phases map[string]float64 `json:"phases,omitempty"`
}

// learnFlags are the command line of bench learn.
type learnFlags struct {
	sets        []string
	seeds       string
	parallel    int
	check, list bool
	profile     bool
}

func (a *app) benchLearnCommand() *cobra.Command {
	var f learnFlags
	cmd := &cobra.Command{
		Use:   "learn [TASK…]",
		Short: "Whether agents reach published results, or a known optimum",
		Long: `Trains an agent in each task, once for each seed, and lets it act through 100 episodes that neither training nor validation has seen. A task is passed when the interquartile mean over the seeds reaches the target, and so do the
scores of all seeds but one in five. Every seed is shown. Tasks are selected by patterns ('cartpole*'); without any, all are run but those whose environments are of a Python package, and those that take hours. A league is scored by the exploitability of its average policy, negative, or by its points against a scripted player. The score is that of the policy that was best in validation; final is that of the policy at the end of training.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list && len(args) == 0 {
				args = []string{"*"}
			}
			tasks, err := learning.Select(args)
			if err != nil {
				return fmt.Errorf("bench learn: %w", err)
			}
			if f.list {
				return a.listTasks(tasks)
			}
			r, err := a.benchLearn(cmd.Context(), tasks, f)
			if err != nil {
				return fmt.Errorf("bench learn: %w", err)
			}
			if a.json {
				err = a.printJSON(r)
			} else {
				err = a.printLearn(r)
			}
			if err == nil && f.check && r.Missed > 0 {
				return quietError{errors.New("targets are missed")}
			}
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the documents, for instance --set agent.gamma=0.9")
	fl.StringVar(&f.seeds, "seeds", "1,2,3,4,5", "one run for each of these seeds")
	fl.IntVar(&f.parallel, "parallel", 1, "runs that go on at once, of one thread each when there are several")
	fl.BoolVar(&f.check, "check", false, "exit with status 1 when a task is not passed")
	fl.BoolVar(&f.profile, "profile", false, "also show where the time goes")
	fl.BoolVar(&f.list, "list", false, "only show the tasks")
	a.addNice(cmd)
	return cmd
}

// listTasks shows tasks and targets.
func (a *app) listTasks(tasks []learning.Task) error {
	if a.json {
		list := []taskReport{}
		for _, t := range tasks {
			list = append(list, taskReport{Task: t.Name, Target: t.Target, Source: t.Source})
		}
		return a.printJSON(list)
	}
	w := printable.NewTable(a.out)
	fmt.Fprintln(w, "task\ttarget\t")
	for _, t := range tasks {
		fmt.Fprintf(w, "%s\t%g\t%s\n", t.Name, t.Target, t.Source)
	}
	return w.Flush()
}

func (a *app) benchLearn(ctx context.Context, tasks []learning.Task, f learnFlags) (*learnReport, error) {
	seeds, err := parseSeeds(f.seeds)
	if err != nil {
		return nil, err
	}
	if len(slices.Compact(slices.Sorted(slices.Values(seeds)))) < len(seeds) {
		return nil, fmt.Errorf("--seeds %s: one is given twice, and would count twice", f.seeds)
	}
	if f.parallel < 1 {
		return nil, fmt.Errorf("--parallel %d: expected at least 1", f.parallel)
	}
	c, err := a.compiler(ctx)
	if err != nil {
		return nil, err
	}
	o := learning.Options{Engine: c, Sets: f.sets}
	if f.parallel > 1 {
		o.Threads = 1
	}
	var total int64
	for _, t := range tasks {
		n, err := t.EnvSteps(o)
		if err != nil {
			return nil, err
		}
		total += n * int64(len(seeds))
	}
	bar := progress.Start(a.err, progress.Options{Label: "learn", Unit: "env steps", Total: total, Quiet: a.quiet})
	defer bar.Finish()
	report := &learnReport{Engine: c.Name(), Tasks: []taskReport{}}
	for _, t := range tasks {
		bar.FieldText("task", t.Name)
		profiles := make([]*agents.Profile, len(seeds))
		if f.profile {
			for i := range profiles {
				profiles[i] = agents.NewProfile(time.Now)
			}
		}
		runs, err := runSeeds(ctx, t, seeds, f.parallel, o, profiles, bar)
		if err != nil {
			return nil, err
		}
		scores := make([]float64, len(runs))
		for i, r := range runs {
			scores[i] = r.Score
		}
		r := taskReport{Task: t.Name, Target: t.Target, Source: t.Source, Runs: runs, Summary: learning.Summarize(scores, t.Target)}
		if f.profile {
			r.Phases = map[string]float64{}
			for _, p := range profiles {
				for name, d := range p.ByName() {
					r.Phases[name] += d.Seconds()
				}
			}
		}
		if !r.Passed {
			report.Missed++
		}
		report.Tasks = append(report.Tasks, r)
	}
	return report, nil
}

// runSeeds trains the seeds of a task, some at once, each with the profile at its place. The first
// error ends all.
func runSeeds(ctx context.Context, t learning.Task, seeds []uint64, parallel int, o learning.Options, profiles []*agents.Profile, bar *progress.Progress) ([]learning.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runs := make([]learning.Result, len(seeds))
	slots := make(chan struct{}, parallel)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, seed := range seeds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			at := int64(0)
			o := o
			o.Profile = profiles[i]
			o.Each = func(p train.Progress) {
				mu.Lock()
				defer mu.Unlock()
				bar.Add(p.EnvSteps - at)
				at = p.EnvSteps
			}
			var err error
			if runs[i], err = learning.Run(ctx, t, seed, o); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return runs, context.Cause(ctx)
}

func (a *app) printLearn(r *learnReport) error {
	w := printable.NewNumbers(a.out)
	fmt.Fprintln(w, "task\tenv steps\ttarget\tIQM\t95 % interval\treached\tpassed\tscores (final)\t")
	for _, t := range r.Tasks {
		verdict, scores := "yes", ""
		if !t.Passed {
			verdict = "NO"
		}
		for i, s := range t.Runs {
			if i > 0 {
				scores += ", "
			}
			scores += fmt.Sprintf("%s (%s)", figure(s.Score), figure(s.Final))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d of %d\t%s\t%s\t\n", t.Task, t.Runs[0].EnvSteps, figure(t.Target), figure(t.IQM), learning.Interval(t.Low, t.High, figure), t.Reached, len(t.Runs), verdict, scores)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Tasks) > 0 && r.Tasks[0].Phases != nil {
		if err := a.printPhases(r.Tasks); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "%d of %d tasks are passed\n", len(r.Tasks)-r.Missed, len(r.Tasks))
	return err
}

// printPhases shows which share of the time of all of a task's runs went where.
func (a *app) printPhases(tasks []taskReport) error {
	w := printable.NewNumbers(a.out)
	fmt.Fprint(w, "task\tseconds\t")
	headPhases(w)
	fmt.Fprintln(w)
	for _, t := range tasks {
		seconds := 0.0
		for _, r := range t.Runs {
			seconds += r.Seconds
		}
		fmt.Fprintf(w, "%s\t%.1f\t", t.Task, seconds)
		sharePhases(w, t.Phases, seconds)
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// figure shows three digits that matter: returns of hundreds and shares of an optimum stand in one
// table.
func figure(x float64) string {
	if x > -10 && x < 10 {
		return fmt.Sprintf("%.3g", x)
	}
	return fmt.Sprintf("%.1f", x)
}
