package app

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// printSummary writes a line for each run, and metrics below with their spread.
func printSummary(out io.Writer, s run.Summary) error {
	w := printable.NewTable(out)
	metric := ""
	for _, r := range s.Runs {
		if r.Metric != "" {
			metric = r.Metric
		}
	}
	lag := slices.ContainsFunc(s.Runs, func(r run.RunSummary) bool { return r.PolicyLag != nil })
	head := ""
	if lag {
		head = "\tpolicy lag (max)"
	}
	fmt.Fprintf(w, "seed\tenv steps\tepisodes\tenv steps/s\tloss\tepisode reward\tbest %s\tat env step\tstopped%s\n", metric, head)
	for _, r := range s.Runs {
		best, at := "-", "-"
		if r.Validation != nil {
			best, at = short4(r.Validation[r.Metric]), fmt.Sprint(r.BestEnvSteps)
		}
		loss := "-"
		if l, ok := r.Train["train/loss"]; ok {
			loss = short4(l)
		}
		stopped := r.Stopped
		if stopped == "" {
			stopped = "-"
		}
		fmt.Fprintf(w, "%d\t%d\t%d\t%.0f\t%s\t%s\t%s\t%s\t%s", r.Seed, r.EnvSteps, r.Episodes, r.StepsPerSec, loss, orDash(r.EpisodeReward), best, at, stopped)
		if l := r.PolicyLag; l != nil {
			fmt.Fprintf(w, "\t%.2f (%d)", l.Mean, l.Max)
		} else if lag {
			fmt.Fprint(w, "\t-")
		}
		fmt.Fprintln(w)
	}
	if len(s.Validation) > 0 {
		fmt.Fprintf(w, "\nvalidation, best policy\tmean\tstd\tseeds\n")
		for _, k := range slices.Sorted(maps.Keys(s.Validation)) {
			v := s.Validation[k]
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", strings.ReplaceAll(k, "_", " "), orDash(v.Mean), orDash(v.Std), v.N)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	printLookAhead(out, s.LookAhead)
	for _, r := range s.Runs {
		if _, ok := r.Train["train/loss"]; !ok && r.Stopped != train.Interrupted {
			fmt.Fprintf(out, "seed %d has learnt nothing: its %d env steps were over before the learner began, see agent.learning_starts\n", r.Seed, r.EnvSteps)
		} else if ok && r.Metric != "" && r.Validation == nil {
			fmt.Fprintf(out, "seed %d has no best policy: no validation had a defined %s (a policy that never trades has no Sharpe ratio); the policy at the end stands for the run\n", r.Seed, r.Metric)
		}
		if r.Published != "" {
			fmt.Fprintf(out, "published %s//%s\n", filepath.Join(r.Dir, publish.StoreDir), r.Published)
		}
		if r.Unpublished != "" {
			fmt.Fprintln(out, unpublished(r))
		}
	}
	_, err := fmt.Fprintf(out, "run directory %s\n", s.Dir)
	return err
}

// printLookAhead says what cannot be earned.
func printLookAhead(out io.Writer, sentences []string) {
	for _, s := range sentences {
		fmt.Fprintln(out, "LOOK-AHEAD:", s)
	}
}

func short4(x float64) string { return fmt.Sprintf("%.4g", x) }

// orDash is a value that may be missing.
func orDash(x *float64) string {
	if x == nil {
		return "-"
	}
	return short4(*x)
}

// unpublished says of a finished run why its best policy is not published, and how to publish it
// all the same.
func unpublished(s run.RunSummary) string {
	return fmt.Sprintf("not published: the best policy of %s: %s\n  %s", s.Dir, s.Unpublished, s.PublishWith)
}
