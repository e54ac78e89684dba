package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"onnxrl/agents/train"
	"onnxrl/cmd/internal/experiment"
	"onnxrl/cmd/internal/learning"
	"onnxrl/runtime/progress"
)

// learnTarget is the part of the optimum that an agent must earn.
const learnTarget = 0.8

// learnReport is what onnxrl bench learn prints; the JSON keys are stable.
type learnReport struct {
	Engine string            `json:"engine"`
	Target float64           `json:"target"`
	Runs   []learning.Result `json:"runs"`
	Missed int               `json:"missed"`
}

func (a *app) benchLearnCommand() *cobra.Command {
	var sets []string
	var seeds string
	var check bool
	cmd := &cobra.Command{
		Use:   "learn [CONFIG.yaml]",
		Short: "The part of a known optimum that an agent learns to earn",
		Long: `Trains an agent in a made-up market of which the best policy is known (without a file, the shipped experiment synthetic_leading), once for each seed, and compares what it earns per bar on the test split with what the best policy
earns on the same bars.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := "synthetic_leading"
			if len(args) > 0 {
				path = args[0]
			}
			list, err := parseSeeds(seeds)
			if err != nil {
				return err
			}
			r, err := a.benchLearn(cmd, path, sets, list)
			if err != nil {
				return fmt.Errorf("bench learn: %w", err)
			}
			if a.json {
				err = a.printJSON(r)
			} else {
				err = a.printLearn(r)
			}
			if err == nil && check && r.Missed > 0 {
				return quietError{errors.New("targets are missed")}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&sets, "set", nil, "edit the configuration, for instance --set agent.gamma=0.9")
	f.StringVar(&seeds, "seeds", "1,2,3", "one run for each of these seeds")
	f.BoolVar(&check, "check", false, "exit with status 1 when a run earns less than the target")
	return cmd
}

func (a *app) benchLearn(cmd *cobra.Command, path string, sets []string, seeds []uint64) (*learnReport, error) {
	cfg, _, err := experiment.Load(path, sets)
	if err != nil {
		return nil, err
	}
	c, err := a.compiler(cmd.Context())
	if err != nil {
		return nil, err
	}
	bar := progress.Start(a.err, progress.Options{Label: "learn", Unit: "env steps", Total: cfg.Train.TotalEnvSteps * int64(len(seeds)), Quiet: a.quiet})
	defer bar.Finish()
	report := &learnReport{Engine: c.Name(), Target: learnTarget, Runs: []learning.Result{}}
	for _, seed := range seeds {
		cfg.Seed = seed
		at := int64(0)
		r, err := learning.Leading(cmd.Context(), cfg, c, func(p train.Progress) {
			bar.Add(p.EnvSteps - at)
			at = p.EnvSteps
		})
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		report.Runs = append(report.Runs, r)
		if r.Share < learnTarget {
			report.Missed++
		}
	}
	return report, nil
}

func (a *app) printLearn(r *learnReport) error {
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "seed\tenv steps\tbars\tagent %/bar\toptimum %/bar\tof the optimum\tseconds\t")
	for _, s := range r.Runs {
		fmt.Fprintf(w, "%d\t%d\t%d\t%.4f\t%.4f\t%.1f %%\t%.1f\t\n", s.Seed, s.EnvSteps, s.Bars, 100*s.Agent, 100*s.Optimum, 100*s.Share, s.Seconds)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "target: %.0f %%, reached by %d of %d\n", 100*r.Target, len(r.Runs)-r.Missed, len(r.Runs))
	return err
}
