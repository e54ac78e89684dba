package evolve

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
)

// Tree is the genealogy of a search; the JSON keys are stable.
type Tree struct {
	Summary
	// Records are all generations of all members.
	Records [][]Record `json:"records"`
}

// ReadTree reads what the directory of a search has recorded, of which it may still go on.
func ReadTree(dir string) (*Tree, error) {
	c, e, err := readStored(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if c.Metric == "" {
		c.Metric = e.Train.Validation.Metric
	}
	_, records, err := load(dir, c.Population)
	if err != nil {
		return nil, err
	}
	return &Tree{summarize(dir, c, records), records}, nil
}

func sortedPaths(v tune.Values) []string { return slices.Sorted(maps.Keys(v)) }

// Print writes the genealogy as text, a tree of the lines in which members descend from themselves,
// and the best score, the distance of policies and the least, median and greatest value of every
// hyper-parameter by generation.
func (t *Tree) Print(w io.Writer) error {
	if len(t.Records) == 0 {
		_, err := fmt.Fprintln(w, "no generation is finished")
		return err
	}
	if err := study.Print(w, t.generations); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for g, list := range t.Records {
		for _, r := range list {
			if r.Parent < 0 {
				t.draw(w, g, r.Member, "")
			}
		}
	}
	_, err := fmt.Fprint(w, "\n", t.Text())
	return err
}

// draw writes the line of a member from a generation on for as long as it descends from itself, and
// below it those of the others that descend from it.
func (t *Tree) draw(w io.Writer, from, m int, indent string) {
	g, rolled, others := from, "", [][2]int(nil)
	for alive := true; alive; {
		if t.Records[g][m].RolledBack != "" {
			rolled += fmt.Sprintf("  rolled back in %d", g)
		}
		alive = false
		if g+1 < len(t.Records) {
			for _, r := range t.Records[g+1] {
				switch {
				case r.Parent == m && r.Member == m:
					alive = true
				case r.Parent == m:
					others = append(others, [2]int{g + 1, r.Member})
				}
			}
		}
		if alive {
			g++
		}
	}
	r, span := t.Records[g][m], fmt.Sprint(from)
	if g > from {
		span = fmt.Sprintf("%d-%d", from, g)
	}
	text := fmt.Sprintf("%s%s %d  generation %s  %s %s", indent, t.Records[from][m].Action, m, span, t.Metric, study.Number(r.Score, "-"))
	for _, p := range sortedPaths(r.Values) {
		text += fmt.Sprintf("  %s %.4g", p, r.Values[p])
	}
	text += rolled
	if g < len(t.Records)-1 {
		text += "  ends"
	}
	fmt.Fprintln(w, text)
	for _, o := range others {
		t.draw(w, o[0], o[1], indent+"  ")
	}
}

// generations is the table of scores, distances and hyper-parameters over time.
func (t *Tree) generations(dash string) (head []string, rows [][]string) {
	paths := sortedPaths(t.Records[0][0].Values)
	head = append([]string{"generation", "best " + t.Metric, "MAPD", "clones", "migrants", "restarts"}, paths...)
	for g, list := range t.Records {
		clones, migrants, restarts := 0, 0, 0
		for _, r := range list {
			switch r.Action {
			case Clone:
				clones++
			case Migrate:
				migrants++
			case Restart:
				restarts++
			}
		}
		row := []string{fmt.Sprint(g), study.Number(t.Best[g], dash), study.Number(t.MAPD[g], dash), fmt.Sprint(clones), fmt.Sprint(migrants), fmt.Sprint(restarts)}
		for _, p := range paths {
			var all []float64
			for _, r := range list {
				all = append(all, r.Values[p])
			}
			slices.Sort(all)
			row = append(row, strings.Join([]string{fmt.Sprintf("%.3g", all[0]), fmt.Sprintf("%.3g", all[len(all)/2]), fmt.Sprintf("%.3g", all[len(all)-1])}, " "))
		}
		rows = append(rows, row)
	}
	for i, p := range paths {
		head[6+i] = p + " (least, median, most)"
	}
	return head, rows
}
