package servebench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"onnxrl/cmd/internal/corebench"
)

// Report is the outcome of a run. The JSON keys are stable.
type Report struct {
	Machine corebench.Machine `json:"machine"`
	// Loads are the closed loops on the 2×64 policy by transport and number of callers.
	Loads []*Load `json:"loads"`
	// Rows are what has a target.
	Rows []corebench.Row `json:"rows"`
	// Missed counts the rows that miss their target.
	Missed int `json:"missed"`
}

// Print writes both tables.
func (r *Report) Print(w io.Writer) error {
	if len(r.Loads) > 0 {
		t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "transport\tcallers\trequests\trequests/s\tp50 µs\tp99 µs\tp99.9 µs\tallocations/request\t")
		for _, l := range r.Loads {
			allocs := "–"
			if l.Allocs != nil {
				allocs = fmt.Sprintf("%.1f", *l.Allocs)
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%s\t\n", l.Transport, l.Concurrency, l.Requests, l.PerSec, l.P50, l.P99, l.P999, allocs)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return (&corebench.Report{Machine: r.Machine, Rows: r.Rows, Missed: r.Missed}).Print(w)
}

// side is one of the two loads of a row.
type side func() (*Load, error)

// duel is the outcome of two loads that took turns: all of a and b, and each round by itself.
type duel struct {
	a, b   *Load
	rounds [][2]Load
}

// duel lets two loads take turns; who begins changes from round to round.
func (l *lab) duel(a, b side) (*duel, error) {
	d := &duel{}
	for r := range l.Rounds {
		var x, y *Load
		var err error
		if r%2 == 0 {
			if x, err = a(); err == nil {
				y, err = b()
			}
		} else {
			if y, err = b(); err == nil {
				x, err = a()
			}
		}
		if err != nil {
			return nil, err
		}
		d.rounds = append(d.rounds, [2]Load{*x, *y})
		d.a, d.b = d.a.join(x), d.b.join(y)
	}
	return d, nil
}

func p50(l *Load) float64    { return l.P50 }
func p99(l *Load) float64    { return l.P99 }
func perSec(l *Load) float64 { return l.PerSec }

// row is a duel with its target; the ratio is the median of the rounds'.
func (d *duel) row(name, measures, against, unit string, figure func(*Load) float64, t corebench.Target) corebench.Row {
	ratios := make([]float64, len(d.rounds))
	for i := range d.rounds {
		ratios[i] = figure(&d.rounds[i][0]) / figure(&d.rounds[i][1])
	}
	s := summarize(ratios)
	row := corebench.Row{
		Name: name, Measures: measures, Value: figure(d.a), Against: against, Reference: figure(d.b), Unit: unit, Ratio: s.P50, Target: &t, Ratios: s,
		Samples: summarize(d.a.ns), ReferenceSamples: summarize(d.b.ns),
	}
	row.Pass = met(t, row.Ratio)
	return row
}

func met(t corebench.Target, ratio float64) bool {
	return (t.AtMost == 0 || ratio <= t.AtMost) && (t.AtLeast == 0 || ratio >= t.AtLeast)
}
