package prepared

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
)

// notes says in words what a user should know: first how prices are adjusted, then what was found
// in the rows, one sentence for each kind of finding over all symbols.
func (s *Set) notes(c Config, data *bars.Data, p *placed) []string {
	notes := []string{}
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	add("%s", data.Adjustment)
	if c.Synthetic.Kind != "" {
		add("the bars are synthetic: %s", data.Files[0].Name)
	}
	notes = append(notes, data.Notes...)
	notes = append(notes, Findings(p.reports, c.Quality)...)
	if p.limits != nil {
		notes = append(notes, limitNotes(c.Rules, p.limits)...)
	}
	if u := s.Manifest.Universe; u != nil && len(u.Absent) > 0 {
		add("members of %s that have no rows: %d of %d, such as %s: results are those of the others, who may have been chosen with hindsight", u.Name, len(u.Absent), u.Symbols, few(u.Absent))
	}
	if !data.HasVolume {
		add("there is no volume column; no feature uses volume")
	}
	if left := p.features.LeftOut(); len(left) > 0 {
		add("factors that are left out: %d: %s; a column of source.extra with that name brings them", len(left), few(left))
	}
	for _, sentence := range s.Manifest.LookAhead {
		add("%s%s", LookAheadNote, sentence)
	}
	for i, f := range s.Manifest.Features {
		if f.Constant {
			add("feature %s is constant, %v, on the rows it is scaled by and becomes 0 there", s.Manifest.Features[i].Name, f.Min)
		}
	}
	for _, r := range p.split.Named() {
		if r.Len() == 1 {
			add("%s is a single bar: no decision can be filled in it", r.Name)
		}
		var never []string
		for n, sym := range s.Manifest.Symbols {
			if !slices.ContainsFunc(positions(r.Span), func(t int) bool { return s.Tradable(t, n) }) {
				never = append(never, sym)
			}
		}
		if len(never) > 0 {
			add("never tradable in %s: %v", r.Name, never)
		}
	}
	return notes
}

// shown is how many findings of a kind are written out.
const shown = 5

// Findings sums up the reports of all symbols in words, one sentence for each kind of finding.
func Findings(reports []bars.SymbolReport, rules bars.Rules) []string {
	var notes []string
	var jumps, faults []string
	var opens []string
	symbols, faulty, off, unknown, blank := 0, 0, 0, 0, 0
	beyond, limited := 0, 0
	var actions []string
	offActions := 0
	for _, r := range reports {
		if n := r.Faults(); n > 0 {
			faulty += n
			faults = append(faults, r.Symbol+": "+r.Examples[0])
		}
		if n := r.MissingVolume; n > 0 && n < r.Rows {
			unknown += n
			blank++
		}
		if r.OpenOffRange > 0 {
			off += r.OpenOffRange
			opens = append(opens, r.Symbol+": "+r.FirstOpenOff)
		}
		if r.OffLimits > 0 {
			beyond += r.OffLimits
			limited++
		}
		if r.OffActions > 0 {
			offActions += r.OffActions
			actions = append(actions, r.Symbol+": "+r.FirstOffAction)
		}
		if r.SplitLike() > 0 {
			symbols++
		}
		for _, j := range r.Jumps {
			if j.Like != "" {
				jumps = append(jumps, fmt.Sprintf("%s on %s, open %.3f of the close before (%s)", r.Symbol, j.Date, j.Ratio, j.Like))
			}
		}
	}
	if len(faults) > 0 {
		notes = append(notes, fmt.Sprintf("faulty rows: %d, in %d of %d symbols, for instance %s", faulty, len(faults), len(reports), faults[0]))
	}
	if unknown > 0 {
		as := "count as 0"
		if rules.ZeroVolume == "suspended" {
			as = "count as bars without trading, after the first volume of a symbol"
		}
		notes = append(notes, fmt.Sprintf("volumes that are blank: %d, in %d of %d symbols, which %s", unknown, blank, len(reports), as))
	}
	if len(opens) > 0 {
		then := "the range is widened, and orders are filled at these prices (quality.inconsistent: widen)"
		if rules.Inconsistent == "missing" {
			then = "these rows are left out"
		}
		notes = append(notes, fmt.Sprintf("IMPOSSIBLE opens, off the day's range: %d, in %d of %d symbols, for instance %s; %s", off, len(opens), len(reports), opens[0], then))
	}
	if beyond > 0 {
		notes = append(notes, fmt.Sprintf("prices BEYOND their limits: %d rows, in %d of %d symbols: limits must be of prices as quoted, and what they forbid is wrong otherwise", beyond, limited, len(reports)))
	}
	if len(actions) > 0 {
		notes = append(notes, fmt.Sprintf("dividends and bonus shares that do NOT agree with the factor of adjustment: %d, in %d of %d symbols: %s; accounts book what there is, and a change of the factor without any as reinvested", offActions, len(actions), len(reports), few(actions)))
	}
	if len(jumps) > 0 {
		notes = append(notes, fmt.Sprintf("jumps like those of splits or bonus shares that are NOT adjusted for: %d, in %d of %d symbols: %s", len(jumps), symbols, len(reports), few(jumps)))
	}
	return notes
}

// few lists some findings and says where the others are.
func few(list []string) string {
	text := strings.Join(list[:min(len(list), shown)], "; ")
	if more := len(list) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more, which onnxrl data inspect lists", more)
	}
	return text
}

func positions(s split.Span) []int {
	list := make([]int, 0, s.Len())
	for i := s.Lo; i < s.Hi; i++ {
		list = append(list, i)
	}
	return list
}
