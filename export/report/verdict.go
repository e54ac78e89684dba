package report

import (
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Skill is the deflated Sharpe probability from which on a record counts as evidence.
const Skill = 0.95

// Verdict is the first line of a report and what it rests on.
type Verdict struct {
	Line       string `json:"line"`
	Beats      bool   `json:"beats_benchmark"` // a higher total return and a higher Sharpe ratio, both strictly, and nothing that knows the future
	Evidence   bool   `json:"evidence"`        // Beats, out of sample and not lag-fragile, the deflated Sharpe probability reaches Skill, and the interval of the difference of Sharpe ratios lies above 0
	LookAhead  bool   `json:"look_ahead"`
	InSample   bool   `json:"in_sample"`   // the agent was trained on some of these data, or chosen by them
	LagFragile bool   `json:"lag_fragile"` // filling decisions one bar later destroys the result by more than chance; the rule is at fragile
}

// newVerdict writes the first line. It claims no more than the numbers carry, and a number that
// does not exist carries nothing.
func newVerdict(s *Summary, benchmark int) Verdict {
	agent, bench := s.Strategies[0].Metrics, s.Strategies[benchmark].Metrics
	own, other := agent.Get("total_return"), bench.Get("total_return")
	ownSharpe, otherSharpe := agent.Get("sharpe"), bench.Get("sharpe")
	difference := s.Bootstrap.Rows[0].SharpeDifference
	probability := float64(s.Deflated.Probability) // NaN where there is no Sharpe ratio

	v := Verdict{LookAhead: len(s.LookAhead) > 0, InSample: len(s.Seen) > 0}
	ahead := own > other && ownSharpe > otherSharpe // false where one is NaN
	likely := probability >= Skill
	apart := difference.Low > 0
	v.Beats = ahead && !v.LookAhead
	v.Evidence = v.Beats && likely && apart && !v.InSample
	v.LagFragile = s.fragile(benchmark, ahead, v.Evidence)
	v.Evidence = v.Evidence && !v.LagFragile

	var line strings.Builder
	if v.LookAhead {
		fmt.Fprintf(&line, "These results cannot be earned, because this run knows the future: %s. ", strings.Join(trimmed(s.LookAhead), "; "))
	}
	if v.InSample {
		fmt.Fprintf(&line, "These are not results on new data: %s. ", strings.Join(trimmed(s.Seen), "; "))
	}
	name, against := upper(s.Strategies[0].Name), s.Strategies[benchmark].Name
	numbers := fmt.Sprintf("total return %s against %s, Sharpe ratio %s against %s", percent(own), percent(other), number(ownSharpe), number(otherSharpe))
	span := fmt.Sprintf("from %s to %s", s.First, s.Last)
	if s.Split != "" {
		span = fmt.Sprintf("on %s, %s", s.Split, span)
	}
	trials := fmt.Sprintf("%d trials", s.Deflated.Trials)
	if s.Deflated.Trials == 1 {
		trials = "one trial"
	}
	switch {
	case !ahead:
		fmt.Fprintf(&line, "%s does not beat %s %s: %s.", name, against, span, numbers)
		if math.IsNaN(probability) {
			line.WriteString(" It has no Sharpe ratio, because its returns do not vary: no evidence of skill.")
		} else if !likely {
			fmt.Fprintf(&line, " Its deflated Sharpe probability is %s after %s, below %s: no evidence of skill.", Chance(probability), trials, percent0(Skill))
		}
	case !v.Evidence:
		fmt.Fprintf(&line, "%s is ahead of %s %s: %s. This is no evidence of skill: ", name, against, span, numbers)
		var why []string
		if v.LookAhead {
			why = append(why, "the run knows the future")
		}
		if v.InSample {
			why = append(why, "the agent has seen these data")
		}
		if v.LagFragile {
			why = append(why, "the result is lag-fragile")
		}
		if !likely {
			why = append(why, fmt.Sprintf("the deflated Sharpe probability is %s after %s, below %s", Chance(probability), trials, percent0(Skill)))
		}
		if !apart {
			why = append(why, fmt.Sprintf("the %s bootstrap interval of the difference of Sharpe ratios, %s, includes 0", percent0(float64(s.Bootstrap.Level)), interval(difference, number)))
		}
		fmt.Fprintf(&line, "%s.", strings.Join(why, ", and "))
	default:
		fmt.Fprintf(&line, "%s beats %s %s: %s. Its deflated Sharpe probability is %s after %s, and the %s bootstrap interval of the difference of Sharpe ratios is %s: luck alone rarely does this.",
			name, against, span, numbers, Chance(probability), trials, percent0(float64(s.Bootstrap.Level)), interval(difference, number))
	}
	if v.LagFragile {
		l := s.delayed()
		fmt.Fprintf(&line, " It is LAG-FRAGILE: with decisions filled %s later the total return is %s and the Sharpe ratio %s, so what it trades on may be known too early, or is gone at once.", l.late(), percent(float64(l.TotalReturn)), number(float64(l.Sharpe)))
	}
	v.Line = line.String()
	return v
}

// warn lists what weakens the numbers, computed from them.
func warn(s *Summary) []string {
	warnings := []string{}
	if s.Deflated.Assumed {
		warnings = append(warnings, "The variance of the trials' Sharpe ratios was not recorded; the deflated Sharpe ratio assumes that of trials that differ only by luck.")
	}
	if s.years < 0.99 {
		warnings = append(warnings, fmt.Sprintf("The record has %d returns, less than a year: annual numbers are extrapolated, and intervals are wide.", s.Returns))
	}
	if float64(s.Returns) < 100*s.years {
		warnings = append(warnings, "Bars are longer than a day: what the tables call daily, such as a value at risk, is of one bar.")
	}
	own := s.Strategies[0].Metrics.Get("sharpe")
	switch l := s.delayed(); {
	case l == nil:
		warnings = append(warnings, "No delay of decisions was tried: whether the result depends on filling orders at once is not known.")
	case !s.Verdict.LagFragile && own > 0 && !(float64(l.Sharpe) >= own/2):
		warnings = append(warnings, fmt.Sprintf("With decisions filled %s later the Sharpe ratio is %s instead of %s. That may be chance: the interval of the difference, %s, includes 0.", l.late(), number(float64(l.Sharpe)), number(own), interval(*l.SharpeLoss, number)))
	}
	if s.Seeds == nil {
		warnings = append(warnings, "This is one training run. Another seed may give another result.")
	}
	return warnings
}

func trimmed(sentences []string) []string {
	out := make([]string, len(sentences))
	for i, s := range sentences {
		out[i] = strings.TrimRight(strings.TrimSpace(s), ".")
	}
	return out
}

// upper begins a sentence.
func upper(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	if n == 0 || first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[n:]
}
