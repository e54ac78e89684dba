package benchmark

import (
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Report is the outcome of a run. The JSON keys are stable.
type Report struct {
	Machine Machine `json:"machine"`
	Rows    []Row   `json:"rows"`
	// Missed counts the rows that have a target and miss it.
	Missed int `json:"missed"`
}

// Row is one comparison.
type Row struct {
	// Name is unique in the report, for instance "step/critic-2x256-b256".
	Name string `json:"name"`
	// Value and Reference are in Unit; what they measure is said by Measures and Against.
	Measures  string  `json:"measures"`
	Value     float64 `json:"value"`
	Against   string  `json:"against,omitempty"`
	Reference float64 `json:"reference,omitempty"`
	Unit      string  `json:"unit"`
	// Ratio is what the target is about: Value/Reference, or Reference/Value for a speed-up, as a
	// median over rounds where there were any.
	Ratio  float64 `json:"ratio,omitempty"`
	Target *Target `json:"target,omitempty"`
	Pass   bool    `json:"pass"`
	// Note adds what the row's numbers do not say, such as allocations.
	Note string `json:"note,omitempty"`
	// Raw figures: the durations of single calls on both sides in nanoseconds, and the ratios of
	// the rounds.
	Samples          *Summary `json:"samples_ns,omitempty"`
	ReferenceSamples *Summary `json:"reference_samples_ns,omitempty"`
	Ratios           *Summary `json:"round_ratios,omitempty"`
	// Allocs is the number of Go allocations per call, where it was counted.
	Allocs *float64 `json:"allocs_per_call,omitempty"`
}

// Target bounds a ratio from above or from below.
type Target struct {
	AtMost  float64 `json:"at_most,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
}

// AtMost is a target that bounds a ratio from above.
func AtMost(x float64) *Target { return &Target{AtMost: x} }

// AtLeast is a target that bounds a ratio from below.
func AtLeast(x float64) *Target { return &Target{AtLeast: x} }

// String prints for instance "≤ 1.15".
func (t *Target) String() string {
	switch {
	case t == nil:
		return ""
	case t.AtLeast > 0:
		return fmt.Sprintf("≥ %g", t.AtLeast)
	}
	return fmt.Sprintf("≤ %g", t.AtMost)
}

func (t *Target) met(ratio float64) bool {
	return t == nil || (t.AtMost == 0 || ratio <= t.AtMost) && (t.AtLeast == 0 || ratio >= t.AtLeast)
}

// Judge sets Pass. A row whose calls must not allocate fails when they do.
func (r *Row) Judge() {
	r.Pass = r.Target.met(r.Ratio) && (r.Allocs == nil || *r.Allocs == 0)
}

// outcome is the last column of the table.
func (r *Row) outcome() string {
	switch {
	case !r.Pass:
		return "MISS"
	case r.Target == nil:
		return ""
	}
	return "pass"
}

// Print writes the machine and the rows as a table.
func (r *Report) Print(w io.Writer) error {
	if _, err := fmt.Fprintln(w, r.Machine); err != nil {
		return err
	}
	t := printable.NewTable(w)
	fmt.Fprintln(t, "row\tmeasured\tvalue\treference\t\tratio\ttarget\t\t")
	for i := range r.Rows {
		row := &r.Rows[i]
		ref, ratio := "", ""
		if row.Against != "" {
			ref = figure(row.Reference, row.Unit)
			ratio = fmt.Sprintf("%.2f", row.Ratio)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Measures, figure(row.Value, row.Unit), ref, row.Against, ratio, row.Target, row.outcome(), row.Note)
	}
	return t.Flush()
}

// figure prints a number with three or more significant digits.
func figure(x float64, unit string) string {
	switch {
	case x >= 1000:
		return fmt.Sprintf("%.0f %s", x, unit)
	case x >= 100:
		return fmt.Sprintf("%.1f %s", x, unit)
	}
	return fmt.Sprintf("%.2f %s", x, unit)
}
