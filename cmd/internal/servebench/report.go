package servebench

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Report is the outcome of a run. The JSON keys are stable.
type Report struct {
	Machine benchmark.Machine `json:"machine"`
	// Loads are the closed loops on the 2×64 policy by transport and number of callers.
	Loads []*Load `json:"loads"`
	// Rows are what has a target.
	Rows []benchmark.Row `json:"rows"`
	// Missed counts the rows that miss their target.
	Missed int `json:"missed"`
}

// Print writes both tables.
func (r *Report) Print(w io.Writer) error {
	if len(r.Loads) > 0 {
		t := printable.NewNumbers(w)
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
	return (&benchmark.Report{Machine: r.Machine, Rows: r.Rows, Missed: r.Missed}).Print(w)
}

// side is one of the two loads of a row; it runs for a given time.
type side func(d time.Duration) (*Load, error)

// duel is the outcome of two loads that took turns: all of a and b, and each round by itself.
type duel struct {
	a, b   *Load
	rounds [][2]Load
	turns  int
}

// turns is how often two loads that need no time to begin take turns within a round: what else the
// machine does is then the same for both.
const turns = 4

// contest is two loads that are compared.
type contest struct {
	a, b         side
	doneA, doneB func() error
	// whole says that a side runs a round at a stretch, because it takes time to begin.
	whole bool
}

// attempts is how many times the rounds of a contest are run at most: as long as a target is
// missed, more are, and all of them count. On a machine that others use as well a few rounds say
// little.
const attempts = 3

// contest lets two loads take turns, closes both, and returns the rows that judge makes of it.
func (l *lab) contest(c contest, judge func(*duel) []benchmark.Row) (rows []benchmark.Row, err error) {
	defer func() { err = errors.Join(err, c.doneA(), c.doneB()) }()
	d := &duel{}
	for range attempts {
		if err := l.duel(d, c); err != nil {
			return nil, err
		}
		rows = judge(d)
		if !slices.ContainsFunc(rows, func(r benchmark.Row) bool { return !r.Pass }) {
			break
		}
	}
	return rows, nil
}

// duel adds a number of rounds. Who begins changes from turn to turn.
func (l *lab) duel(d *duel, c contest) error {
	n := turns
	if c.whole {
		n = 1
	}
	for range l.Rounds {
		var x, y *Load
		for range n {
			first, second := c.a, c.b
			if d.turns%2 == 1 {
				first, second = second, first
			}
			one, err := first(l.Round / time.Duration(n))
			if err != nil {
				return err
			}
			two, err := second(l.Round / time.Duration(n))
			if err != nil {
				return err
			}
			if d.turns%2 == 1 {
				one, two = two, one
			}
			x, y = x.join(one), y.join(two)
			d.turns++
		}
		d.rounds = append(d.rounds, [2]Load{*x, *y})
		d.a, d.b = d.a.join(x), d.b.join(y)
	}
	return nil
}

func p50(l *Load) float64    { return l.P50 }
func p99(l *Load) float64    { return l.P99 }
func perSec(l *Load) float64 { return l.PerSec }

// row is a duel with its target; the ratio is the median of the rounds'.
func (d *duel) row(name, measures, against, unit string, figure func(*Load) float64, t benchmark.Target) benchmark.Row {
	return d.rowBeyond(name, measures, against, unit, figure, 0, t)
}

// rowBeyond is row with something added to every figure of the reference.
func (d *duel) rowBeyond(name, measures, against, unit string, figure func(*Load) float64, more float64, t benchmark.Target) benchmark.Row {
	ratios := make([]float64, len(d.rounds))
	for i := range d.rounds {
		ratios[i] = figure(&d.rounds[i][0]) / (figure(&d.rounds[i][1]) + more)
	}
	s := benchmark.Summarize(ratios)
	row := benchmark.Row{
		Name: name, Measures: measures, Value: figure(d.a), Against: against, Reference: figure(d.b) + more, Unit: unit, Ratio: s.P50, Target: &t, Ratios: s,
		Samples: benchmark.Summarize(d.a.ns), ReferenceSamples: benchmark.Summarize(d.b.ns),
	}
	row.Pass = met(t, row.Ratio)
	return row
}

func met(t benchmark.Target, ratio float64) bool {
	return (t.AtMost == 0 || ratio <= t.AtMost) && (t.AtLeast == 0 || ratio >= t.AtLeast)
}
