package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/ope"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/run/recorded"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// offlineFlags are those of evaluate that belong to --offline.
type offlineFlags struct {
	dataset    string
	stochastic bool
	c          ope.Config
	// gamma is the policies' unless it was given.
	gamma float64
}

// offlineOnly are the flags that mean nothing without --offline.
var offlineOnly = []string{"stochastic", "estimators", "gamma", "bootstrap", "level", "fqe-updates", "fqe-hidden", "fqe-learning-rate", "seed"}

// onlineOnly are those that mean nothing with it.
var onlineOnly = []string{"out", "no-report", "episodes"}

func (f *offlineFlags) add(fl *pflag.FlagSet) {
	f.c = ope.Defaults()
	fl.StringVar(&f.dataset, "offline", "", "estimate from this data set, such as onnxrl record writes, and do not act")
	fl.BoolVar(&f.stochastic, "stochastic", false, "offline: the policy that draws from its distribution: --set eval.deterministic=false")
	fl.StringSliceVar(&f.c.Estimators, "estimators", nil, "offline: of pdis, wpdis, dr, wdr, fqe (default: all that can be computed)")
	fl.Float64Var(&f.gamma, "gamma", 0, "offline: discount factor (default: agent.gamma, or else the data's)")
	fl.IntVar(&f.c.Samples, "bootstrap", f.c.Samples, "offline: bootstrap samples of the episodes; 0 gives no intervals")
	fl.Float64Var(&f.c.Level, "level", f.c.Level, "offline: level of the intervals")
	fl.IntVar(&f.c.FQE.Updates, "fqe-updates", f.c.FQE.Updates, "offline: updates of fitted Q evaluation")
	fl.IntSliceVar(&f.c.FQE.Hidden, "fqe-hidden", f.c.FQE.Hidden, "offline: hidden layers of fitted Q evaluation")
	fl.Float64Var(&f.c.FQE.LearningRate, "fqe-learning-rate", f.c.FQE.LearningRate, "offline: learning rate of fitted Q evaluation")
	fl.Uint64Var(&f.c.Seed, "seed", 0, "offline: where all randomness descends from")
	rarely(fl, offlineOnly...)
}

// check refuses flags that do not belong together.
func (f *offlineFlags) check(fl *pflag.FlagSet) error {
	wrong, text := offlineOnly, "is for --offline"
	if f.dataset != "" {
		wrong, text = onlineOnly, "is not for --offline, which does not act and writes no report"
	}
	for _, name := range wrong {
		if fl.Changed(name) {
			return fmt.Errorf("evaluate: --%s %s", name, text)
		}
	}
	return nil
}

// offlineEvaluation is what onnxrl evaluate --offline prints; the JSON keys are stable.
type offlineEvaluation struct {
	Dataset     string `json:"dataset"`
	Environment string `json:"environment"`
	Episodes    int    `json:"episodes"`
	Transitions int    `json:"transitions"`
	// Truncated counts the episodes that were cut off.
	Truncated  int                   `json:"truncated"`
	Gamma      float64               `json:"gamma"`
	Stochastic bool                  `json:"stochastic"`
	Bootstrap  int                   `json:"bootstrap"`
	Level      float64               `json:"level"`
	Seed       uint64                `json:"seed"`
	Policies   []run.EvaluatedPolicy `json:"policies"`
	// Rows begin with the behaviour's own return.
	Rows  []offlineRow `json:"rows"`
	Notes []string     `json:"notes"`
}

// offlineRow is a policy's value by an estimator; what is not known is null.
type offlineRow struct {
	Name      string   `json:"name"`
	Estimator string   `json:"estimator"`
	Value     *float64 `json:"value"`
	Low       *float64 `json:"low"`
	High      *float64 `json:"high"`
	// EffectiveSampleSize counts episodes.
	EffectiveSampleSize *float64 `json:"effective_sample_size"`
	Note                string   `json:"note,omitempty"`
}

// evaluateByData estimates the policies of a target from a data set. Without --split the
// environment is that of training, as in record.
func (a *app) evaluateByData(cmd *cobra.Command, target string, f *evaluateFlags) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("evaluate %s: %w", target, err)
		}
	}()
	if !cmd.Flags().Changed("split") {
		f.split = string(envs.Train)
	}
	if f.offline.stochastic {
		f.sets = append(f.sets, "eval.deterministic=false")
	}
	p, err := a.openEvaluation(cmd.Context(), target, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	x, err := recorded.Open(cmd.Context(), p, f.offline.dataset)
	if err != nil {
		return err
	}
	c := f.offline.c
	if c.Gamma = x.Gamma; cmd.Flags().Changed("gamma") {
		c.Gamma = f.offline.gamma
	}
	e, err := a.estimate(cmd.Context(), p, x, c)
	if err != nil {
		return err
	}
	e.Dataset = f.offline.dataset
	return a.printTable(e, nil)
}

// estimate makes the table.
func (a *app) estimate(ctx context.Context, p *run.Evaluation, x *recorded.Estimation, c ope.Config) (*offlineEvaluation, error) {
	var bar *progress.Progress
	list, err := x.Estimate(ctx, c, func(p run.EvaluatedPolicy) func(done int, loss float64) {
		return func(done int, loss float64) {
			if done == 1 {
				bar.Finish()
				bar = progress.Start(a.err, progress.Options{Label: "fqe " + p.Name, Unit: "updates", Total: int64(c.FQE.Updates), Quiet: a.quiet})
			}
			bar.Field("loss", loss)
			bar.Set(int64(done))
		}
	})
	bar.Finish()
	if err != nil {
		return nil, err
	}
	e := &offlineEvaluation{
		Environment: x.Manifest.Environment.Name, Episodes: x.Data.Episodes(), Transitions: x.Data.Transitions(), Truncated: x.Data.Truncated,
		Gamma: c.Gamma, Stochastic: x.Stochastic, Bootstrap: c.Samples, Level: c.Level, Seed: c.Seed, Policies: p.Policies(), Notes: append([]string{}, x.Notes...),
	}
	for i, policy := range e.Policies {
		for _, r := range list[i] {
			name := policy.Name
			if r.Estimator == ope.Behaviour {
				if name = "data"; i > 0 {
					continue
				}
			}
			e.Rows = append(e.Rows, offlineRow{name, r.Estimator, finite(r.Value), finite(r.Low), finite(r.High), finite(r.EffectiveSampleSize), r.Note})
		}
	}
	return e, nil
}

// Print writes the table.
func (e *offlineEvaluation) Print(out io.Writer) error {
	act := "best actions"
	if e.Stochastic {
		act = "drawn actions"
	}
	fmt.Fprintf(out, "%s of %s: %d episodes (%d cut off), %d transitions; discounted returns, γ %g, %s\n\n", e.Dataset, e.Environment, e.Episodes, e.Truncated, e.Transitions, e.Gamma, act)
	w := printable.NewTable(out)
	fmt.Fprintf(w, "policy\testimator\tvalue\t%g %% interval\teffective episodes\n", 100*e.Level)
	var notes []string
	for _, r := range e.Rows {
		interval := "-"
		if r.Low != nil && r.High != nil {
			interval = short4(*r.Low) + " to " + short4(*r.High)
		}
		mark := ""
		if r.Note != "" {
			at := 0
			for at < len(notes) && notes[at] != r.Note {
				at++
			}
			if at == len(notes) {
				notes = append(notes, r.Note)
			}
			mark = " [" + strconv.Itoa(at+1) + "]"
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\t%s\t%s\n", r.Name, r.Estimator, orDash(r.Value), mark, interval, orDash(r.EffectiveSampleSize))
	}
	err := w.Flush()
	for i, n := range notes {
		_, e := fmt.Fprintf(out, "[%d] %s\n", i+1, n)
		err = errors.Join(err, e)
	}
	for _, n := range e.Notes {
		_, e := fmt.Fprintln(out, n)
		err = errors.Join(err, e)
	}
	return err
}
