package prepared

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
)

// Leak is a feature whose value at some time changes when later rows are taken away.
type Leak struct {
	Feature string `json:"feature"`
	// Cause is value, or normalisation where only the statistics depend on later rows.
	Cause string `json:"cause"`
	// Symbol, Time, Full and Prefix are the first difference: the value with all rows and the one
	// with the rows up to Cut. For normalisation they are the means.
	Symbol string  `json:"symbol,omitempty"`
	Time   string  `json:"time,omitempty"`
	Cut    string  `json:"cut"`
	Full   float64 `json:"full"`
	Prefix float64 `json:"prefix"`
	// Values is how many values differed, over all cuts.
	Values int `json:"values"`
}

// LookaheadReport says what was compared and what leaks.
type LookaheadReport struct {
	Cuts     []string `json:"cuts"`
	Features int      `json:"features"`
	Values   int64    `json:"values"`
	Leaks    []Leak   `json:"leaks"`
}

// Lookahead prepares the data up to each of several times as if nothing later existed and compares
// every feature, mask and price up to then, to the bit, with the preparation of all rows. cuts is
// the number of times, spread evenly; the ends of the ranges are added. Series are joined for each
// cut, from what was published up to it. The statistics of the normalisation are compared for cuts
// after the end of training, from which on they must not change any more.
func Lookahead(ctx context.Context, c Config, data *bars.Data, cuts int) (*LookaheadReport, error) {
	a, err := align(c, data)
	if err != nil {
		return nil, fmt.Errorf("lookahead: %w", err)
	}
	p, err := place(c, a)
	if err != nil {
		return nil, fmt.Errorf("lookahead: %w", err)
	}
	stats, err := p.fit(c.Normalization)
	if err != nil {
		return nil, fmt.Errorf("lookahead: %w", err)
	}
	published, err := bars.ReadPublished(c.Series, cmp.Or(c.Source.Timezone, data.Zone))
	if err != nil {
		return nil, fmt.Errorf("lookahead: %w", err)
	}
	build := func(t time.Time) (*aligned, error) {
		prefix := until(data, t)
		if len(c.Series) > 0 {
			published.Until(t).Join(prefix, len(data.Extra)-len(published.Names))
		}
		return align(c, prefix)
	}
	r := &LookaheadReport{Features: len(stats), Leaks: []Leak{}}
	l := leaks{report: r, full: snapshot(a), names: columnNames(a.features)}
	for _, at := range p.cutPoints(cuts) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t := a.panel.Times[at]
		prefix, err := build(t)
		if err != nil {
			return nil, fmt.Errorf("lookahead: prepare the data up to %s: %w", label(t), err)
		}
		r.Cuts = append(r.Cuts, label(t))
		l.compare(prefix, label(t))
		if c.Normalization.Method == "none" || at < p.first+p.split.Train.Hi-1 {
			continue
		}
		lo, hi := p.first+p.split.Train.Lo, p.first+p.split.Train.Hi
		if c.Normalization.FitOn == "all" {
			lo, hi = p.first, len(prefix.panel.Times)
		}
		cutStats, err := feature.Fit(prefix.features, prefix.panel, c.Normalization, lo, min(hi, len(prefix.panel.Times)))
		if err != nil {
			return nil, fmt.Errorf("lookahead: prepare the data up to %s: %w", label(t), err)
		}
		for i := range stats {
			if stats[i].Mean != cutStats[i].Mean || stats[i].Std != cutStats[i].Std {
				l.add(Leak{Feature: l.names[i], Cause: "normalisation", Cut: label(t), Full: stats[i].Mean, Prefix: cutStats[i].Mean})
			}
		}
	}
	return r, nil
}

// until keeps the rows up to t of every series.
func until(data *bars.Data, t time.Time) *bars.Data {
	cut := *data
	cut.Series = make([]bars.Series, len(data.Series))
	for i, s := range data.Series {
		cut.Series[i].Symbol = s.Symbol
		for _, r := range s.Records {
			if !r.Time.After(t) {
				cut.Series[i].Records = append(cut.Series[i].Records, r)
			}
		}
	}
	return &cut
}

// cutPoints are positions of the panel: evenly spread ones, the last of every range, and the one
// before the last of all.
func (p *placed) cutPoints(n int) []int {
	last := len(p.panel.Times) - 1
	var list []int
	for i := 1; i <= n; i++ {
		list = append(list, i*last/(n+1))
	}
	for _, r := range p.split.Named() {
		list = append(list, p.first+r.Hi-1)
	}
	list = append(list, last-1)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(at int) bool { return at < 0 || at >= last })
}

func columnNames(f *feature.Features) []string {
	var names []string
	for _, c := range f.Columns() {
		names = append(names, c.Name)
	}
	return names
}

// snap holds every value of an aligned panel that an agent or an environment could see: per time
// and symbol the features before scaling, then defined, status and the bar.
type snap struct {
	a      *aligned
	width  int
	values []float64
}

// masks are the values after the features.
var masks = []string{"defined", "status", "open price", "high price", "low price", "close price", "traded volume"}

func snapshot(a *aligned) *snap {
	f, n := len(a.features.Columns()), len(a.panel.Symbols)
	s := &snap{a: a, width: f + len(masks)}
	s.values = make([]float64, len(a.panel.Times)*n*s.width)
	for i, b := range a.panel.Bars {
		copy(s.values[i*s.width+f+1:], []float64{float64(a.panel.Status[i]), b.Open, b.High, b.Low, b.Close, b.Volume})
	}
	for sym := range n {
		a.features.Rows(a.panel, sym, func(t int, row []float64, defined bool) {
			at := s.values[(t*n+sym)*s.width:]
			copy(at, row)
			if defined {
				at[f] = 1
			}
		})
	}
	return s
}

// leaks collects differences, one entry for each feature and cause.
type leaks struct {
	report *LookaheadReport
	full   *snap
	names  []string
}

func (l *leaks) add(k Leak) {
	for i := range l.report.Leaks {
		if o := &l.report.Leaks[i]; o.Feature == k.Feature && o.Cause == k.Cause {
			o.Values++
			return
		}
	}
	k.Values = 1
	l.report.Leaks = append(l.report.Leaks, k)
}

func (l *leaks) compare(prefix *aligned, cut string) {
	s := snapshot(prefix)
	names := append(slices.Clone(l.names), masks...)
	n := len(prefix.panel.Symbols)
	for i, v := range s.values {
		w := l.full.values[i]
		l.report.Values++
		if math.Float64bits(v) != math.Float64bits(w) && !(math.IsNaN(v) && math.IsNaN(w)) {
			row := i / s.width
			l.add(Leak{
				Feature: names[i%s.width], Cause: "value", Symbol: prefix.panel.Symbols[row%n], Time: label(prefix.panel.Times[row/n]), Cut: cut, Full: w, Prefix: v,
			})
		}
	}
}
