package ablate

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/study"
)

// WriteRuns writes a CSV row for each run that is finished, cell by cell, with all digits. It holds
// no times: equal studies give equal bytes.
func (s *Study) WriteRuns(w io.Writer) error {
	p := s.Plan
	out := csv.NewWriter(w)
	head := []string{"cell"}
	for _, f := range p.Factors {
		head = append(head, f.Name)
	}
	head = append(head, "seed", "env_steps", "from", "to", "bars")
	if err := out.Write(append(head, p.Study.Metrics...)); err != nil {
		return err
	}
	for i := range p.Cells {
		c := &p.Cells[i]
		for _, r := range s.Runs() {
			if r.CellIndex != i || r.Outcome == nil {
				continue
			}
			row := []string{c.Name}
			for f, l := range c.Levels {
				row = append(row, p.Factors[f].Levels[l])
			}
			o := r.Outcome
			row = append(row, strconv.FormatUint(r.Seed, 10), strconv.FormatInt(o.EnvSteps, 10), o.From, o.To, strconv.Itoa(o.Bars))
			for _, m := range p.Study.Metrics {
				row = append(row, study.Digits(o.Metrics[m]))
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// WriteCSV writes a row for each cell, and the reference as the last one.
func (s *Summary) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := append(append([]string{"cell"}, s.Factors...), "seeds", "failed")
	if err := out.Write(append(head, s.statColumns()...)); err != nil {
		return err
	}
	for _, r := range s.Rows {
		row := append(append([]string{r.Cell}, r.Levels...), strconv.Itoa(r.Done), strconv.Itoa(r.Failed))
		if err := out.Write(append(row, statCells(r.Stats)...)); err != nil {
			return err
		}
	}
	if s.Reference != nil {
		row := append([]string{s.ReferenceName}, make([]string, len(s.Factors)+2)...)
		for _, v := range s.Reference {
			row = append(row, study.Digits(v), "", "", "", "")
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteEffects writes a CSV row for each level of each factor.
func (s *Summary) WriteEffects(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{"factor", "level", "base", "cells"}, s.statColumns()...)); err != nil {
		return err
	}
	for _, e := range s.Effects {
		row := []string{e.Factor, e.Level, strconv.FormatBool(e.Base), strconv.Itoa(e.Cells)}
		if err := out.Write(append(row, statCells(e.Stats)...)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (s *Summary) statColumns() []string {
	var list []string
	for _, m := range s.Metrics {
		list = append(list, m+"_mean", m+"_std", m+"_diff", m+"_diff_low", m+"_diff_high")
	}
	return list
}

func statCells(stats []Stat) []string {
	var list []string
	for _, v := range stats {
		list = append(list, study.Digits(v.Mean), study.Digits(v.Std), study.Digits(v.Diff), study.Digits(v.Low), study.Digits(v.High))
	}
	return list
}

// table is the summary as people read it: first what differs, then the seeds, the first metric with
// its difference to the base, and the other metrics.
func (s *Summary) table(dash string) (head []string, rows [][]string) {
	head = []string{"factor", "level", "seeds", s.Metrics[0], "Δ to base", fmt.Sprintf("%.0f %% interval", 100*Confidence)}
	head = append(head, s.Metrics[1:]...)
	cells := func(stats []Stat) []string {
		first := stats[0]
		interval := dash
		if first.Low.Defined() {
			interval = fmt.Sprintf("[%s, %s]", study.Signed(first.Low), study.Signed(first.High))
			if first.Clear() {
				interval += " *"
			}
		}
		diff := dash
		if first.Diff.Defined() {
			diff = study.Signed(first.Diff)
		}
		list := []string{spread(first, dash), diff, interval}
		for _, v := range stats[1:] {
			list = append(list, spread(v, dash))
		}
		return list
	}
	for i, r := range s.Rows {
		factor, level := strings.Join(r.Differs, ", "), ""
		switch {
		case i == 0:
			factor, level = Base, strings.Join(r.Levels, ", ")
		default:
			var levels []string
			for _, name := range r.Differs {
				for f, n := range s.Factors {
					if n == name {
						levels = append(levels, r.Levels[f])
					}
				}
			}
			level = strings.Join(levels, ", ")
		}
		if len(r.LookAhead) > 0 {
			level += " (looks ahead)"
		}
		seeds := strconv.Itoa(r.Done)
		if r.Done < len(s.Seeds) {
			seeds = fmt.Sprintf("%d of %d", r.Done, len(s.Seeds))
		}
		if r.Failed > 0 {
			seeds += fmt.Sprintf(" (%d failed)", r.Failed)
		}
		rows = append(rows, append([]string{factor, level, seeds}, cells(r.Stats)...))
	}
	if s.Reference != nil {
		row := []string{s.ReferenceName, "", dash, study.Number(s.Reference[0], dash), dash, dash}
		for _, v := range s.Reference[1:] {
			row = append(row, study.Number(v, dash))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// effectTable has a row for each level, over all cells that have it.
func (s *Summary) effectTable(dash string) (head []string, rows [][]string) {
	head = []string{"factor", "level", "cells", s.Metrics[0], "Δ to base level", fmt.Sprintf("%.0f %% interval", 100*Confidence)}
	for _, e := range s.Effects {
		first := e.Stats[0]
		row := []string{e.Factor, e.Level, strconv.Itoa(e.Cells), spread(first, dash), dash, dash}
		if first.Diff.Defined() {
			row[4] = study.Signed(first.Diff)
		}
		if first.Low.Defined() {
			row[5] = fmt.Sprintf("[%s, %s]", study.Signed(first.Low), study.Signed(first.High))
			if first.Clear() {
				row[5] += " *"
			}
		}
		rows = append(rows, row)
	}
	return head, rows
}

// spread writes mean ± std.
func spread(v Stat, dash string) string {
	if !v.Std.Defined() {
		return study.Number(v.Mean, dash)
	}
	return fmt.Sprintf("%.3f ± %.3f", v.Mean, v.Std)
}

// Notes says how the tables are to be read.
func (s *Summary) Notes() []string {
	runs := "Mean ± sample standard deviation over the seeds"
	if len(s.Seeds) == 1 {
		runs = "One seed, so nothing is known about the spread"
	}
	list := []string{}
	if s.From != "" {
		list = append(list, fmt.Sprintf("Judged on the validation range, %s to %s (%d bars), with the policy at the end of training; the test range was not touched.", s.From, s.To, s.Bars))
	}
	list = append(list, fmt.Sprintf("%s; differences to the base are paired by seed, with Student's t intervals (* leaves zero out) that are not corrected for the number of comparisons.", runs))
	var ahead []string
	for _, r := range s.Rows {
		for _, sentence := range r.LookAhead {
			if !slices.Contains(ahead, sentence) {
				ahead = append(ahead, sentence)
			}
		}
	}
	for _, sentence := range ahead {
		list = append(list, "LOOK-AHEAD: "+sentence+" Results of such cells cannot be earned.")
	}
	for m, name := range s.Metrics {
		runs := 0
		for _, r := range s.Rows {
			runs += r.Stats[m].Undefined
		}
		if runs > 0 {
			list = append(list, fmt.Sprintf("%s is undefined in %d of the %d runs (a portfolio that never changes has no ratio of return to risk); cells with such a run have no mean.", name, runs, s.Done))
		}
	}
	if s.Varies {
		list = append(list, "WARNING: the cells were evaluated on different ranges, so their figures cannot be compared.")
	}
	if !s.Complete {
		list = append(list, "Not all runs are finished.")
	}
	return list
}

// Verdict says in one line how the base does against the reference, and how many cells differ
// clearly.
func (s *Summary) Verdict() string {
	if s.Reference == nil || !s.Reference[0].Defined() || !s.Rows[0].Stats[0].Mean.Defined() {
		return ""
	}
	beat, clear, ahead := 0, 0, 0
	for i, r := range s.Rows {
		if len(r.LookAhead) > 0 {
			ahead++
		}
		if r.Stats[0].Mean > s.Reference[0] && len(r.LookAhead) == 0 {
			beat++
		}
		if i > 0 && r.Stats[0].Clear() && len(r.LookAhead) == 0 {
			clear++
		}
	}
	text := fmt.Sprintf("Cells with a higher mean %s than %s (%.3f): %d of %d. Cells that differ clearly from the base: %d of %d.", s.Metrics[0], s.ReferenceName, s.Reference[0], beat, len(s.Rows), clear, len(s.Rows)-1)
	if ahead > 0 {
		text += fmt.Sprintf(" %d of the cells look ahead, and count in neither.", ahead)
	}
	return text
}

// Print writes the tables for a terminal.
func (s *Summary) Print(w io.Writer) error {
	if err := study.Print(w, s.table); err != nil {
		return err
	}
	if s.Full {
		fmt.Fprintln(w)
		if err := study.Print(w, s.effectTable); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, line := range s.lines() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// lines is what stands below the tables.
func (s *Summary) lines() []string {
	list := s.Notes()
	if v := s.Verdict(); v != "" {
		list = append([]string{v}, list...)
	}
	return list
}

// WriteMarkdown writes the tables as Markdown.
func (s *Summary) WriteMarkdown(w io.Writer) error {
	tables := []func(string) ([]string, [][]string){s.table}
	if s.Full {
		tables = append(tables, s.effectTable)
	}
	for _, table := range tables {
		if err := study.Markdown(w, 2, table); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range s.lines() {
		if _, err := fmt.Fprintf(w, "%s\n\n", line); err != nil {
			return err
		}
	}
	return nil
}
