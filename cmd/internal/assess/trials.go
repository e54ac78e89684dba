package assess

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"onnxrl/export/report"
	"onnxrl/runtime/metrics"
)

// evalPrefix is what a run's metrics put before the names of validation metrics.
const evalPrefix = "eval/"

// Selection is what the files of metrics of a run, one for each seed, say about the choice of its policy.
type Selection struct {
	// Evaluations is the number of validations that a policy was chosen from: every record with the metric at an env step above 0, over all seeds. The policy before training is never chosen.
	Evaluations int
	// Best is the highest finite value of the metric, by seed; NaN where there was none.
	Best []float64
	// sharpes are their annual Sharpe ratios on the validation split, where these were recorded.
	sharpes []float64
	seeds   int
}

// Selected reads what policies were chosen from: files are the JSON lines of each seed, metric is the name of the validation metric.
func Selected(files []string, metric string) (*Selection, error) {
	s := &Selection{seeds: len(files)}
	for _, f := range files {
		records, err := metrics.ReadJSONLines(f)
		if err != nil {
			return nil, fmt.Errorf("count the trials: %w", err)
		}
		best := math.NaN()
		for _, r := range records {
			v, ok := r.Values[evalPrefix+metric]
			if !ok || r.Step <= 0 {
				continue
			}
			s.Evaluations++
			if v-v == 0 && !(v <= best) {
				best = v
			}
			if x, ok := r.Values[evalPrefix+"sharpe"]; ok && !math.IsNaN(x) && !math.IsInf(x, 0) {
				s.sharpes = append(s.sharpes, x)
			}
		}
		s.Best = append(s.Best, best)
	}
	return s, nil
}

// Trials returns what the deflated Sharpe ratio needs: the number of evaluations and the variance of their Sharpe ratios per period, from annual ones. The evaluations of one run resemble each other, so this many trials is more than what independent ones would count: it
// errs against the agent. It knows nothing of runs in other directories.
func (s *Selection) Trials(periodsPerYear float64) report.Trials {
	t := report.Trials{Count: max(s.Evaluations, 1)}
	if len(s.sharpes) > 1 {
		t.SharpeVariance = stat.Variance(s.sharpes, nil) / periodsPerYear
	}
	switch {
	case s.Evaluations == 0:
		t.Counted = "The policy was not chosen by validation; runs elsewhere are not counted."
	case s.Evaluations == 1:
		t.Counted = "The one evaluation on the validation split that the policy was chosen from; runs elsewhere are not counted."
	case s.seeds == 1:
		t.Counted = fmt.Sprintf("Every one of the %d evaluations on the validation split that the policy was chosen from; runs elsewhere are not counted.", s.Evaluations)
	default:
		t.Counted = fmt.Sprintf("Every one of the %d evaluations on the validation split, over %d seeds, that the policy was chosen from; runs elsewhere are not counted.", s.Evaluations, s.seeds)
	}
	return t
}
