package assess

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
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
	// chosen are the annual Sharpe ratios on the validation split of the policies with the best
	// value, one for each run that has one; curve those of all evaluations.
	chosen, curve []float64
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
				s.curve = append(s.curve, ratio)
			}
		}
		if !math.IsNaN(best) {
			s.Evaluations += evaluations
		}
		if chosen-chosen == 0 {
			s.chosen = append(s.chosen, chosen)
		}
		s.Best = append(s.Best, best)
	}
	return s, nil
}

// Join counts other runs on the same data, which lie below a directory, as trials too.
func (s *Selection) Join(others *Selection, below string) {
	s.Runs, s.Evaluations = max(s.Runs, 1)+others.Runs, s.Evaluations+others.Evaluations
	s.Others, s.Below = s.Others+others.Runs, below
	s.chosen, s.curve = append(s.chosen, others.chosen...), append(s.curve, others.curve...)
}

// SelectedBy is the record of a published model.
func SelectedBy(t publish.Trials) *Selection {
	return &Selection{
		Runs: t.Runs, Evaluations: int(t.Evaluations), Searched: t.Searched, SearchVariance: t.SharpeVariance,
		Source: "the model's own record, in its metadata",
	}
}

// Trials returns what the deflated Sharpe ratio needs: the number of trials and the variance
// between their Sharpe ratios per period (Bailey & López de Prado 2014, "The Deflated Sharpe
// Ratio": N independent trials, and the variance across them).
//
// Trials are runs, and the configurations of a search. Judged are the Sharpe ratios per period of
// the runs on the evaluated data, where all of them were evaluated; their variance is the one that
// is asked for. Otherwise it is that of the runs' chosen policies on the validation split. Where a
// search has varied more, its variance is taken.
//
// The checkpoints of one learning curve are no trials on data that they were not chosen by: they
// resemble one another, and choosing the best of them on other data cannot flatter it here. Where
// the policy was chosen by the evaluated data themselves, it does, and every validation counts.
// They are dependent, for which the paper's appendix has N = ρ + (1−ρ)M of M trials with the mean
// correlation ρ; the correlation of returns is not recorded, so it is taken as 0: more trials than
// there were, which errs against the agent.
func (s *Selection) Trials(evaluated []float64, here bool, periodsPerYear float64) report.Trials {
	t := report.Trials{Count: max(s.Runs, 1) + s.Searched}
	ratios, where := evaluated, "on these data"
	if len(evaluated) != s.Runs || s.Runs < 2 {
		ratios, where = nil, "on the validation split"
		for _, x := range s.chosen {
			ratios = append(ratios, x/math.Sqrt(periodsPerYear))
		}
	}
	if here {
		t.Count, ratios = max(s.Evaluations, s.Runs, 1)+s.Searched, nil
		for _, x := range s.curve {
			ratios = append(ratios, x/math.Sqrt(periodsPerYear))
		}
	}
	if len(ratios) > 1 {
		t.SharpeVariance = stat.Variance(ratios, nil)
	}
	search := s.SearchVariance / periodsPerYear
	if search > t.SharpeVariance {
		t.SharpeVariance, where = search, "between the configurations of the search on the validation split"
	}
	var text strings.Builder
	if n := s.Runs - s.Others; n > 1 {
		fmt.Fprintf(&text, "%d runs of this configuration", n)
	} else {
		text.WriteString("One run of this configuration")
	}
	if s.Others > 0 {
		fmt.Fprintf(&text, ", %s on the same data below %s", plural(s.Others, "other run"), s.Below)
	}
	if s.Searched > 0 {
		fmt.Fprintf(&text, " and %s of the search that found it", plural(s.Searched, "configuration"))
	}
	switch {
	case s.Evaluations == 1:
		text.WriteString("; one policy was validated, so that there was nothing to choose")
	case here && s.Evaluations > 0:
		fmt.Fprintf(&text, "; the policy was chosen by these data, so that every one of the %s of the learning curves counts, as if they were independent", plural(s.Evaluations, "validation"))
	case s.Evaluations > 0:
		fmt.Fprintf(&text, "; the choice among the %s of the learning curves was made on other data and counts no trials", plural(s.Evaluations, "validation"))
	default:
		text.WriteString("; no policy was chosen by validation")
	}
	if t.SharpeVariance > 0 && t.Count > 1 {
		fmt.Fprintf(&text, "; the variance is that of Sharpe ratios %s", where)
	}
	fmt.Fprintf(&text, " (Bailey & López de Prado 2014). Source: %s; other runs are not counted.", s.Source)
	t.Counted = text.String()
	return t
}

// ratios are the Sharpe ratios per period of the agents, nil where one of them has none.
func (a *Assessment) ratios() (out []float64) {
	rate := performance.PerPeriod(a.Config.RiskFree, a.Config.PeriodsPerYear)
	for _, r := range a.Agents {
		x := performance.Sharpe(performance.Excess(performance.Returns(r.Value), rate))
		if math.IsNaN(x) {
			return nil
		}
		out = append(out, x)
	}
	return out
}

// Trials is that of a selection of the assessed agents.
func (a *Assessment) Trials(s *Selection) report.Trials {
	return s.Trials(a.ratios(), a.ChosenHere, a.Config.PeriodsPerYear)
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
