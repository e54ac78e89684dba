package evaluate

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// evalPrefix is what a run's metrics put before the names of validation metrics.
const evalPrefix = "eval/"

// Selection is what a policy was chosen from.
type Selection struct {
	// Runs is the number of runs: the seeds of a configuration, or all runs of a study.
	Runs int
	// Searched is the number of configurations that a search for hyper-parameters chose this one
	// from, and SearchVariance the variance between their annual Sharpe ratios; 0 where unknown.
	Searched       int
	SearchVariance float64
	// Evaluations is the number of validations along the learning curves of the runs: every record
	// with the metric at an env step above 0, in runs in which it was defined at least once. The
	// policy before training is never chosen.
	Evaluations int
	// Source says where this is known from.
	Source string
	// Others are those of Runs that were made besides, below the directory Below, on the same data.
	Others int
	Below  string
	// Best is the highest finite value of the metric, by run; NaN where there was none.
	Best []float64
	// Sharpe are the annual Sharpe ratios on the validation split of the policies with the best
	// value, one for each run that has one; Curve those of all evaluations.
	Sharpe, Curve []float64
}

// Selected reads what policies were chosen from: files are the JSON lines of each run, metric is
// the name of the validation metric, and source says where they are.
func Selected(files []string, metric, source string) (*Selection, error) {
	s := &Selection{Runs: len(files), Source: source}
	for _, f := range files {
		records, err := metrics.ReadJSONLines(f)
		if err != nil {
			return nil, fmt.Errorf("count the trials: %w", err)
		}
		best, chosen, evaluations := math.NaN(), math.NaN(), 0
		for _, r := range records {
			v, ok := r.Values[evalPrefix+metric]
			if !ok || r.Step <= 0 {
				continue
			}
			evaluations++
			ratio, ok := r.Values[evalPrefix+"sharpe"]
			if !ok {
				ratio = math.NaN()
			}
			if v-v == 0 && !(v <= best) {
				best, chosen = v, ratio
			}
			if ratio-ratio == 0 {
				s.Curve = append(s.Curve, ratio)
			}
		}
		if !math.IsNaN(best) {
			s.Evaluations += evaluations
		}
		if chosen-chosen == 0 {
			s.Sharpe = append(s.Sharpe, chosen)
		}
		s.Best = append(s.Best, best)
	}
	return s, nil
}

// Join counts other runs on the same data, which lie below a directory, as trials too.
func (s *Selection) Join(others *Selection, below string) {
	s.Runs, s.Evaluations = max(s.Runs, 1)+others.Runs, s.Evaluations+others.Evaluations
	s.Others, s.Below = s.Others+others.Runs, below
	s.Sharpe, s.Curve = append(s.Sharpe, others.Sharpe...), append(s.Curve, others.Curve...)
}
