package assess

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

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
// correlation ρ. The correlation of returns is not recorded, so it is taken as 0: more trials than
// there were, which errs against the agent.
func Trials(s *evaluate.Selection, evaluated []float64, here bool, periodsPerYear float64) report.Trials {
	t := report.Trials{Count: max(s.Runs, 1) + s.Searched}
	ratios, where := evaluated, "on these data"
	if len(evaluated) != s.Runs || s.Runs < 2 {
		ratios, where = nil, "on the validation split"
		for _, x := range s.Sharpe {
			ratios = append(ratios, x/math.Sqrt(periodsPerYear))
		}
	}
	if here {
		t.Count, ratios = max(s.Evaluations, s.Runs, 1)+s.Searched, nil
		for _, x := range s.Curve {
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
func (a *Assessment) Trials(s *evaluate.Selection) report.Trials {
	return Trials(s, a.ratios(), a.ChosenHere, a.Config.PeriodsPerYear)
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
