package offlinebench

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/cmd/internal/learning"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Report is what the benchmark finds; the JSON keys are stable.
type Report struct {
	Engine string       `json:"engine"`
	Tasks  []TaskReport `json:"tasks"`
	// Missed counts the data sets that are not passed.
	Missed int `json:"missed"`
}

// TaskReport is a task with its data sets.
type TaskReport struct {
	Task string      `json:"task"`
	Sets []SetReport `json:"sets"`
}

// SetReport is a data set with its rows.
type SetReport struct {
	Set
	Rows []Row `json:"rows"`
	// Target is what the row of FQE must reach, by the rule of the package comment.
	Target float64 `json:"target"`
	Passed bool    `json:"passed"`
}

// Row sums up the seeds of a method, or of a way to choose one; the JSON keys are stable.
type Row struct {
	Name string `json:"name"`
	// IQM, Low and High are those of learning.Summary, and Scores those of the seeds.
	IQM    float64   `json:"iqm"`
	Low    *float64  `json:"ci95_low"`
	High   *float64  `json:"ci95_high"`
	Scores []float64 `json:"scores"`
	// Value is the mean of fitted Q evaluation, and ActionScore that of nearness.
	Value       float64 `json:"fqe"`
	ActionScore float64 `json:"action_score"`
	// Chosen are the methods, where the row chooses.
	Chosen []string `json:"chosen,omitempty"`
}

// Choices are the rows that choose a method for each seed.
const (
	ByFQE       = "chosen by fqe"
	ByAction    = "chosen by action_score"
	InHindsight = "best in hindsight"
)

// Judge sums up a data set, and applies the rule. seeds are those of every method.
func Judge(s Set, seeds []uint64) SetReport {
	r := SetReport{Set: s}
	var names []string
	for _, x := range s.Results {
		if !slices.Contains(names, x.Method) {
			names = append(names, x.Method)
		}
	}
	for _, name := range names {
		r.Rows = append(r.Rows, row(name, slices.DeleteFunc(slices.Clone(s.Results), func(x Result) bool { return x.Method != name })))
	}
	cloned := r.row(BC).IQM
	for _, choice := range []struct {
		name string
		by   func(x Result) float64
	}{
		{ByFQE, func(x Result) float64 { return x.FQE }},
		{ByAction, func(x Result) float64 { return x.ActionScore }},
		{InHindsight, func(x Result) float64 { return x.Score }},
	} {
		var list []Result
		for _, seed := range seeds {
			of := slices.DeleteFunc(slices.Clone(s.Results), func(x Result) bool { return x.Seed != seed })
			list = append(list, slices.MaxFunc(of, func(a, b Result) int { return compare(choice.by(a), choice.by(b)) }))
		}
		x := row(choice.name, list)
		for _, one := range list {
			x.Chosen = append(x.Chosen, one.Method)
		}
		r.Rows = append(r.Rows, x)
	}
	r.Target = s.Behaviour + 0.9*max(cloned-s.Behaviour, 0)
	r.Passed = r.row(ByFQE).IQM >= r.Target
	return r
}

// compare orders numbers; those that are missing come first.
func compare(a, b float64) int {
	switch {
	case a < b || a != a && b == b:
		return -1
	case a > b || b != b && a == a:
		return 1
	}
	return 0
}

// row finds a row by its name.
func (r *SetReport) row(name string) Row {
	return r.Rows[slices.IndexFunc(r.Rows, func(x Row) bool { return x.Name == name })]
}

func row(name string, list []Result) Row {
	r := Row{Name: name}
	var values, near []float64
	for _, x := range list {
		r.Scores, values, near = append(r.Scores, x.Score), append(values, x.FQE), append(near, x.ActionScore)
	}
	s := learning.Summarize(r.Scores, 0)
	r.IQM, r.Low, r.High, r.Value, r.ActionScore = s.IQM, s.Low, s.High, stat.Mean(values, nil), stat.Mean(near, nil)
	return r
}

// Print writes the table.
func (r *Report) Print(out io.Writer) error {
	sets := 0
	for _, t := range r.Tasks {
		for _, s := range t.Sets {
			sets++
			fmt.Fprintf(out, "%s, %s: %d episodes, %d transitions, mean return %.1f\n", t.Task, s.Data, s.Episodes, s.Transitions, s.Behaviour)
			w := printable.NewNumbers(out)
			fmt.Fprintln(w, "method\tIQM\t95 % interval\tfqe\taction_score\tscores\t")
			for _, x := range s.Rows {
				interval := learning.Interval(x.Low, x.High, func(x float64) string { return fmt.Sprintf("%.1f", x) })
				fmt.Fprintf(w, "%s\t%.1f\t%s\t%.4g\t%.3g\t%s\t\n", x.Name, x.IQM, interval, x.Value, x.ActionScore, scores(x))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			verdict := "passed"
			if !s.Passed {
				verdict = "NOT passed"
			}
			fmt.Fprintf(out, "%s by the rule: %s has to reach %.1f\n\n", verdict, ByFQE, s.Target)
		}
	}
	_, err := fmt.Fprintf(out, "%d of %d data sets are passed\n", sets-r.Missed, sets)
	return err
}

// scores shows those of the seeds, with what was chosen.
func scores(x Row) (text string) {
	for i, s := range x.Scores {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%.1f", s)
		if x.Chosen != nil {
			text += " " + x.Chosen[i]
		}
	}
	return text
}
