package app

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// tuneRows is the number of trials in the table, the best first; the log has all.
const tuneRows = 10

// printTuned writes the best trials, and what came of the others.
func printTuned(out io.Writer, s *tune.Summary, space tune.Space) error {
	w := printable.NewTable(out)
	fmt.Fprintf(w, "trial\t%s\tstate\t%s\n", s.Metric, strings.Join(space.Paths(), "\t"))
	for _, t := range s.Trials[:min(tuneRows, len(s.Trials))] {
		cells := []string{fmt.Sprint(t.Number), orDash(t.Value), t.State}
		for _, path := range space.Paths() {
			text := t.Values[path]
			if x, err := strconv.ParseFloat(text, 64); err == nil && (space[path].Kind == tune.Uniform || space[path].Kind == tune.LogUniform) {
				text = short4(x)
			}
			cells = append(cells, text)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d complete, %d pruned, %d failed, %d left\n", s.Complete, s.Pruned, s.Failed, s.Unfinished)
	for _, t := range s.Trials {
		if t.Error != "" {
			fmt.Fprintf(out, "trial %d failed: %s\n", t.Number, t.Error)
			break
		}
	}
	printLookAhead(out, s.LookAhead)
	if s.BestConfig != "" {
		fmt.Fprintf(out, "tuned configuration %s\n", s.BestConfig)
	}
	_, err := fmt.Fprintf(out, "directory %s\n", s.Dir)
	return err
}
