package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/offlinebench"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

func (a *app) benchOfflineCommand() *cobra.Command {
	var seeds, dir string
	var check, small bool
	cmd := &cobra.Command{
		Use:   "offline [TASK…]",
		Short: "Measure learning from data sets, and what choosing by them costs",
		Long: `Trains an agent in each task, and records three data sets of its policies that differ in how they behaved: half random and half medium episodes, medium, expert with noise. Every offline method learns from each, once for each seed. Of the policies of a seed one is chosen by the data alone: that with the highest value of fitted Q evaluation.
A data set is passed when the interquartile mean of the chosen ones' returns reaches the mean return of the data, and 0.9 of the way from there to that of bc. Tasks are selected by patterns; without any, all are run but those whose environments are of a Python package. On one core, pendulum takes about a quarter of an hour, and halfcheetah about half an hour of processor time after its behaviour has learnt.

Everything is kept in --dir. Ctrl-C stops, and the same command goes on.`,
		Example: `  onnxrl bench offline --dir runs/bench-offline
  onnxrl bench offline halfcheetah --dir runs/bench-offline --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.benchOffline(cmd, args, seeds, dir, small)
			if err != nil {
				if cmd.Context().Err() != nil && errors.Is(err, cmd.Context().Err()) {
					a.say("stopped; the same command goes on in %s", dir)
					return quietError{errInterrupted}
				}
				return fmt.Errorf("bench offline: %w", err)
			}
			var failed error
			if check && r.Missed > 0 {
				failed = errors.New("data sets are not passed")
			}
			return a.printTable(r, failed)
		},
	}
	f := cmd.Flags()
	f.StringVar(&seeds, "seeds", "1,2,3,4,5", "each method learns once for each of these seeds")
	f.StringVar(&dir, "dir", "", "folder in which everything is kept")
	f.BoolVar(&check, "check", false, "exit with status 1 when a data set is not passed")
	f.BoolVar(&small, "small", false, "the reduced form: seconds, in which nothing is learnt")
	// The name was given just above.
	_ = cmd.MarkFlagRequired("dir")
	a.addNice(cmd)
	return cmd
}

func (a *app) benchOffline(cmd *cobra.Command, patterns []string, seedList, dir string, small bool) (*offlinebench.Report, error) {
	tasks, err := offlinebench.Select(patterns)
	if err != nil {
		return nil, err
	}
	seeds, err := parseSeeds(seedList)
	if err != nil {
		return nil, err
	}
	c, err := a.compiler(cmd.Context())
	if err != nil {
		return nil, err
	}
	bar := progress.Start(a.err, progress.Options{Label: "offline", Unit: "policies", Total: int64(len(tasks) * len(seeds) * offlinebench.Policies()), Quiet: a.quiet})
	defer bar.Finish()
	b := &offlinebench.Bench{Kinds: a.kinds, Engine: c, Dir: dir, Seeds: seeds, Say: func(text string) { bar.FieldText("now", text) }, Done: func() { bar.Add(1) }}
	r := &offlinebench.Report{Engine: c.Name(), Tasks: []offlinebench.TaskReport{}}
	for _, t := range tasks {
		if small {
			t = offlinebench.Small(t)
		}
		sets, err := b.Run(cmd.Context(), t)
		if err != nil {
			return nil, err
		}
		x := offlinebench.TaskReport{Task: t.Name}
		for _, s := range sets {
			j := offlinebench.Judge(s, seeds)
			if !j.Passed {
				r.Missed++
			}
			x.Sets = append(x.Sets, j)
		}
		r.Tasks = append(r.Tasks, x)
	}
	return r, nil
}
