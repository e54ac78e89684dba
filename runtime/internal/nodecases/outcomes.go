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

// Summary says the counts in one line.
func Summary(rs []Result) string {
	return fmt.Sprintf("%d of %d cases pass, %d unsupported, %d fail, %d skipped, %d for which this machine lacks something",
		Count(rs, Pass), len(rs), Count(rs, Unsupported), Count(rs, Fail), Count(rs, Skip), Count(rs, Machine))
}

// Exception is a case that an engine need not pass.
type Exception struct {
	Outcome Outcome
	Reason  string
}

// unexplained begins the reason of a failure that nobody has explained yet.
const unexplained = "TODO: "

// WriteExceptions prints the cases that do not pass, a line each: outcome, name, reason. What the
// machine lacks is not listed. Reasons are
// those of before where the outcome is the same. That a case is skipped or unsupported has the
// engine's reason; that one fails has to be explained by a person, and until then [ReadExceptions]
// refuses the list.
func WriteExceptions(w io.Writer, engine string, rs []Result, before map[string]Exception) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s: the cases of %d that do not pass\n", engine, len(rs))
	for _, r := range rs {
		if r.Outcome == Pass || r.Outcome == Machine {
			continue
		}
		reason := r.Reason
		if was := before[r.Name]; was.Outcome == r.Outcome && was.Reason != "" {
			reason = was.Reason
		} else if r.Outcome == Fail {
			reason = unexplained + reason
		}
		fmt.Fprintf(b, "%-11s %s  # %s\n", r.Outcome, r.Name, reason)
	}
	return b.Flush()
}

// ReadExceptions reads what WriteExceptions printed. Each line has a reason.
func ReadExceptions(r io.Reader) (map[string]Exception, error) {
	out := map[string]Exception{}
	s := bufio.NewScanner(r)
	for line := 1; s.Scan(); line++ {
		text, reason, _ := strings.Cut(s.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		reason = strings.TrimSpace(reason)
		switch {
		case len(f) != 2:
			return nil, fmt.Errorf("line %d: %q is not an outcome and a case", line, s.Text())
		case out[f[1]] != Exception{}:
			return nil, fmt.Errorf("line %d: %s is listed twice", line, f[1])
		case reason == "" || strings.HasPrefix(reason, unexplained):
			return nil, fmt.Errorf("line %d: no reason why %s does not pass", line, f[1])
		}
		out[f[1]] = Exception{Outcome(f[0]), reason}
	}
	return out, s.Err()
}

// Changes lists what differs from the exceptions: cases that should pass apart from those that are
// listed and have another outcome, pass or are not there.
func Changes(rs []Result, listed map[string]Exception) (worse, other []string) {
	found := map[string]bool{}
	for _, r := range rs {
		found[r.Name] = true
		want := listed[r.Name].Outcome
		switch {
		case want == "" && r.Outcome == Pass || want == r.Outcome || r.Outcome == Machine:
		case want == "":
			worse = append(worse, fmt.Sprintf("%s: %s: %s", r.Name, r.Outcome, r.Reason))
		default:
			other = append(other, fmt.Sprintf("%s: listed as %s, outcome %s %s", r.Name, want, r.Outcome, r.Reason))
		}
	}
	for name := range listed {
		if !found[name] {
			other = append(other, fmt.Sprintf("%s: listed, but there is no such case", name))
		}
	}
	return worse, other
}
