package study

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Table returns the head and the rows of a table, with what stands where there is no number.
type Table func(dash string) (head []string, rows [][]string)

// Print writes a table for a terminal.
func Print(w io.Writer, table Table) error {
	head, rows := table("-")
	t := printable.NewTable(w)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// Markdown writes a table whose first columns, as many as names, are aligned to the left.
func Markdown(w io.Writer, names int, table Table) error {
	head, rows := table("–")
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---:"
		if i < names {
			rule[i] = "---"
		}
	}
	for _, row := range append([][]string{head, rule}, rows...) {
		for i := range row {
			row[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(row[i])
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return err
		}
	}
	return nil
}

// Digits writes all digits of a number, and nothing for what is not one.
func Digits(n performance.Number) string {
	if !n.Defined() {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// Number writes a number for people.
func Number(v performance.Number, dash string) string {
	if !v.Defined() {
		return dash
	}
	return fmt.Sprintf("%.3f", v)
}

// Signed is Number with a sign.
func Signed(v performance.Number) string { return fmt.Sprintf("%+.3f", v) }
