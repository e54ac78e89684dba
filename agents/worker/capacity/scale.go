package capacity

import (
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Row is a simulated run; the JSON keys are stable.
type Row struct {
	// Change says in what it is not as by default.
	Change   string   `json:"change,omitempty"`
	Scenario Scenario `json:"scenario"`
	Result   Result   `json:"result"`
}

// Limit is how many workers use a station up; the JSON keys are stable.
type Limit struct {
	Station string `json:"station"`
	// Train is the length of an interval in seconds.
	Train float64 `json:"train_s"`
	// Workers follows from how much of the station a few workers use.
	Workers float64 `json:"workers"`
}

// Report is how far it goes; the JSON keys are stable.
type Report struct {
	Costs Costs `json:"costs"`
	// Rows are by the length of intervals and the number of workers, Limits the stations that are
	// used up first, and Changes what other settings do to the most workers with the length in the
	// middle.
	Rows    []Row   `json:"rows"`
	Limits  []Limit `json:"limits"`
	Changes []Row   `json:"changes"`
	Target  float64 `json:"target_efficiency"`
	// Missed is 1 where the most workers train for less than the target's share of their time with
	// the longest intervals.
	Missed int `json:"missed"`
}

// Target is the share of their time that workers are to train.
const Target = 0.9

// few is the number of workers that limits follow from.
const few = 8

// Scale simulates each length of intervals, in seconds, with each number of workers.
func Scale(c Costs, lengths []float64, workers []int, began func(name string)) (*Report, error) {
	if len(lengths) == 0 || len(workers) == 0 {
		return nil, fmt.Errorf("%d lengths and %d numbers of workers, expected some", len(lengths), len(workers))
	}
	r := &Report{Costs: c, Target: Target}
	add := func(to *[]Row, change string, s Scenario) error {
		if began != nil {
			began(fmt.Sprintf("%d workers, intervals of %g s", s.Workers, s.Train))
		}
		x, err := Simulate(c, s)
		if err == nil {
			*to = append(*to, Row{change, s, x})
		}
		return err
	}
	for _, length := range lengths {
		for _, n := range workers {
			if err := add(&r.Rows, "", Defaults(n, length)); err != nil {
				return nil, err
			}
		}
	}
	most, last := workers[len(workers)-1], r.Rows[len(r.Rows)-1].Result.Efficiency
	if last < Target {
		r.Missed = 1
	}
	for _, length := range lengths {
		s := Defaults(few, length)
		// They beat as the most do.
		many := Defaults(most, length)
		s.Beat, s.Poll = many.Beat, many.Poll
		x, err := Simulate(c, s)
		if err != nil {
			return nil, err
		}
		l := Limit{Station: x.First.Station, Train: length}
		if x.First.Utilisation > 0 {
			l.Workers = few / x.First.Utilisation
		}
		r.Limits = append(r.Limits, l)
	}
	for _, change := range changes {
		s := Defaults(most, lengths[len(lengths)/2])
		change.do(&s)
		if err := add(&r.Changes, change.name, s); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// changes are what else one might do.
var changes = []struct {
	name string
	do   func(s *Scenario)
}{
	{"a beat and a question a second for each task", func(s *Scenario) { s.Beat, s.Poll = 1, 1 }},
	{"four objects at once in the program", func(s *Scenario) { s.Transfers = 4 }},
	{"a server that writes four at once", func(s *Scenario) { s.Writers = 4 }},
	{"a server that writes sixteen at once", func(s *Scenario) { s.Writers = 16 }},
	{"1 Gbit/s to the storage in the program", func(s *Scenario) { s.ProgramBandwidth = 125e6 }},
}

// Print writes the report as tables.
func (r *Report) Print(w io.Writer) error {
	t := printable.NewNumbers(w)
	line := func(x Row) {
		fmt.Fprintf(t, "%g\t%d\t%.1f\t%.0f %%\t%.2f\t%s\t%.0f %%\t%.0f\t", x.Scenario.Train, x.Scenario.Workers, x.Scenario.Beat, 100*x.Result.Efficiency, x.Result.Overhead,
			x.Result.First.Station, 100*x.Result.First.Utilisation, x.Result.First.Queue)
		if x.Change != "" {
			fmt.Fprintf(t, "%s\t", x.Change)
		}
		fmt.Fprintln(t)
	}
	const head = "interval, s\tworkers\tbeat, s\ttraining\tother s/interval\tused most\tused\tqueue\t"
	fmt.Fprintln(t, head)
	for _, x := range r.Rows {
		line(x)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nUsed up first:\n")
	for _, l := range r.Limits {
		fmt.Fprintf(w, "  intervals of %g s: %s, by %.0f workers\n", l.Train, l.Station, l.Workers)
	}
	fmt.Fprintf(w, "\nWith other settings:\n")
	fmt.Fprintln(t, head+"change\t")
	for _, x := range r.Changes {
		line(x)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "costs: %s, by %s\n", r.Costs.Machine, r.Costs.Command)
	return err
}
