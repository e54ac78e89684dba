package tune

import (
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Summary is what came of a search; the JSON keys are stable.
type Summary struct {
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
	Trials []TrialSummary `json:"trials"`
	// LookAhead says what in the trials knows the future, one sentence each.
	LookAhead []string `json:"look_ahead,omitempty"`
	// BestConfig is the tuned configuration; empty without a complete trial.
	BestConfig string `json:"best_config,omitempty"`
}

// TrialSummary is a trial with its values as text.
type TrialSummary struct {
	Number int               `json:"number"`
	State  string            `json:"state"`
	Value  *float64          `json:"value"`
	Values map[string]string `json:"values"`
	// Evaluations is how many the trial had.
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"`
	Error       string  `json:"error,omitempty"`
}

func (s *Search) summarize() Summary {
	sum := Summary{
		Dir: s.dir, Metric: s.tune.Metric, Direction: s.tune.Direction, Sampler: s.tune.Sampler, Pruner: s.tune.Pruner, StepsPerTrial: s.tune.StepsPerTrial, Trials: []TrialSummary{}, LookAhead: s.kinds.LookAhead(s.factory),
	}
	all := s.study.Trials()
	for _, t := range ranked(all, s.tune.Direction) {
		row := TrialSummary{Number: t.Number, State: t.State, Value: defined(t.Value), Values: map[string]string{}, Evaluations: len(t.Intermediate), Seconds: t.Seconds, Error: t.Error}
		for _, path := range s.tune.Space.Paths() {
			row.Values[path] = s.tune.Space.Text(path, t.Values[path])
		}
		sum.Trials = append(sum.Trials, row)
		switch t.State {
		case Complete:
			sum.Complete++
		case Pruned:
			sum.Pruned++
		case Failed:
			sum.Failed++
		}
	}
	sum.Unfinished = s.tune.Trials - sum.Complete - sum.Pruned - sum.Failed
	return sum
}

// defined is nil for a value that JSON has no number for.
func defined(v performance.Number) *float64 {
	if !v.Defined() {
		return nil
	}
	x := float64(v)
	return &x
}
