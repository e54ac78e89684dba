package nodecases

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Count returns how many results have the outcome.
func Count(rs []Result, o Outcome) int {
	n := 0
	for _, r := range rs {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

// WriteTable prints results as the golden file has them: a heading with the counts, then one line
// per case: outcome, name, reason.
func WriteTable(w io.Writer, engine string, rs []Result) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s: %s\n", engine, Summary(rs))
	for _, r := range rs {
		fmt.Fprintf(b, "%-11s %s", r.Outcome, r.Name)
		if r.Reason != "" {
			fmt.Fprintf(b, "  # %s", r.Reason)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// Summary says the counts in one line.
func Summary(rs []Result) string {
	return fmt.Sprintf("%d of %d cases pass, %d unsupported, %d fail, %d skipped",
		Count(rs, Pass), len(rs), Count(rs, Unsupported), Count(rs, Fail), Count(rs, Skip))
}

// ReadTable reads what WriteTable printed: the outcome of each case.
func ReadTable(r io.Reader) (map[string]Outcome, error) {
	out := map[string]Outcome{}
	s := bufio.NewScanner(r)
	for line := 1; s.Scan(); line++ {
		text, _, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return nil, fmt.Errorf("line %d: %q is not an outcome and a case", line, s.Text())
		}
		out[f[1]] = Outcome(f[0])
	}
	return out, s.Err()
}

// Changes lists the cases whose outcome differs from the recorded one: those that passed and do not
// any more apart from the others.
func Changes(rs []Result, recorded map[string]Outcome) (worse, other []string) {
	for _, r := range rs {
		was, ok := recorded[r.Name]
		if ok && was == r.Outcome {
			continue
		}
		line := fmt.Sprintf("%s: %s, was %s %s", r.Name, r.Outcome, was, r.Reason)
		if was == Pass {
			worse = append(worse, line)
		} else {
			other = append(other, line)
		}
	}
	return worse, other
}
