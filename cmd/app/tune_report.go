package app

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/tune"
)

// tuneRows is the number of trials in the table, the best first; the log has all.
const tuneRows = 10

// tuneSummary is what onnxrl tune prints; the JSON keys are stable.
type tuneSummary struct {
	Dir       string `json:"dir"`
	Metric    string `json:"metric"`
	Direction string `json:"direction"`
	Sampler   string `json:"sampler"`
	Pruner    string `json:"pruner"`
	// StepsPerTrial are env steps.
	StepsPerTrial int64 `json:"steps_per_trial"`
	Complete      int   `json:"complete"`
	Pruned        int   `json:"pruned"`
	Failed        int   `json:"failed"`
	Unfinished    int   `json:"unfinished"`
	// Trials are all of them, the best first.
	Trials []tunedTrial `json:"trials"`
	// LookAhead says what in the trials knows the future, one sentence each.
	LookAhead []string `json:"look_ahead,omitempty"`
	// BestConfig is the tuned configuration; empty without a complete trial.
	BestConfig string `json:"best_config,omitempty"`

	paths []string
}

// tunedTrial is a trial with its values as text.
type tunedTrial struct {
	Number int               `json:"number"`
	State  string            `json:"state"`
	Value  *float64          `json:"value"`
	Values map[string]string `json:"values"`
	// Evaluations is how many the trial had.
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"`
	Error       string  `json:"error,omitempty"`

	// cells are the values in the order of the paths, short enough for a table.
	cells []string
}

func (s *search) summarize() tuneSummary {
	sum := tuneSummary{
		Dir: s.dir, Metric: s.tune.Metric, Direction: s.tune.Direction, Sampler: s.tune.Sampler, Pruner: s.tune.Pruner, StepsPerTrial: s.tune.StepsPerTrial, Trials: []tunedTrial{}, LookAhead: assess.LookAhead(s.factory), paths: s.tune.Space.Paths(),
	}
	all := s.study.Trials()
	for _, t := range tune.Ranked(all, s.tune.Direction) {
		row := tunedTrial{Number: t.Number, State: t.State, Value: finite(float64(t.Value)), Values: map[string]string{}, Evaluations: len(t.Intermediate), Seconds: t.Seconds, Error: t.Error}
		for _, path := range sum.paths {
			text := s.tune.Space.Text(path, t.Values[path])
			row.Values[path] = text
			if kind := s.tune.Space[path].Kind; kind == tune.Uniform || kind == tune.LogUniform {
				text = short4(t.Values[path])
			}
			row.cells = append(row.cells, text)
		}
		sum.Trials = append(sum.Trials, row)
		switch t.State {
		case tune.Complete:
			sum.Complete++
		case tune.Pruned:
			sum.Pruned++
		case tune.Failed:
			sum.Failed++
		}
	}
	sum.Unfinished = s.tune.Trials - sum.Complete - sum.Pruned - sum.Failed
	return sum
}

// table writes the best trials, and what came of the others.
func (s *tuneSummary) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "trial\t%s\tstate\t%s\n", s.Metric, strings.Join(s.paths, "\t"))
	for _, t := range s.Trials[:min(tuneRows, len(s.Trials))] {
		fmt.Fprintln(w, strings.Join(append([]string{fmt.Sprint(t.Number), orDash(t.Value), t.State}, t.cells...), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d complete, %d pruned, %d failed, %d left\n", s.Complete, s.Pruned, s.Failed, s.Unfinished)
	for _, t := range s.Trials {
		if t.Error != "" {
			fmt.Fprintf(out, "trial %d failed: %s\n", t.Number, t.Error)
			break
		}
	}
	printLookAhead(out, s.LookAhead)
	if s.BestConfig != "" {
		fmt.Fprintf(out, "tuned configuration %s\n", s.BestConfig)
	}
	_, err := fmt.Fprintf(out, "directory %s\n", s.Dir)
	return err
}
