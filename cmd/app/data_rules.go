package app

import (
	"fmt"
	"io"
	"strconv"

	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// inspectRules shows how bars compare with the rules of the Chinese exchanges.
func (a *app) inspectRules(report *ashare.Report) error {
	if a.json {
		return a.printJSON(report)
	}
	return printRules(a.out, report)
}

// printRules shows one line per symbol, the sums, and below the days to look at.
func printRules(out io.Writer, r *ashare.Report) error {
	for _, n := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	w := printable.NewNumbers(out)
	fmt.Fprintln(w, "symbol\tboard\tlisted\tdays\tsuspended\tST\tnot judged\tfree\tannounced\toutside\tup\tdown\tlocked up\tlocked down\tdisagree\toff tick\t")
	line := func(symbol, board, listed string, c ashare.Counts) {
		fmt.Fprintf(w, "%s\t%s\t%s\t", symbol, board, listed)
		for _, n := range []int{c.Days, c.Suspended, c.ST, c.NotJudged, c.Free, c.Announced, c.Outside, c.ClosedUp, c.ClosedDown, c.LockedUp, c.LockedDown, c.Disagreements, c.OffTick} {
			fmt.Fprint(w, strconv.Itoa(n), "\t")
		}
		fmt.Fprintln(w)
	}
	for _, s := range r.Symbols {
		line(s.Symbol, s.Board, s.Listed, s.Counts)
	}
	line("all", "", "", r.Total)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.Symbols {
		if s.Problem != "" {
			fmt.Fprintf(out, "%s: %s\n", s.Symbol, s.Problem)
		}
		for i, f := range s.Findings {
			if i == 20 {
				fmt.Fprintf(out, "%s: and %d more; --json lists all\n", s.Symbol, len(s.Findings)-i)
				break
			}
			fmt.Fprintf(out, "%s: %s\n", s.Symbol, f)
		}
	}
	return nil
}
