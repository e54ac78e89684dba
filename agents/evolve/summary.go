package evolve

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Summary is what came of a search; the JSON keys are stable.
type Summary struct {
	Dir        string `json:"dir"`
	Strategy   string `json:"strategy"`
	Population int    `json:"population"`
	Metric     string `json:"metric"`
	Direction  string `json:"direction"`
	// Generations are those that are finished, of Of.
	Generations int   `json:"generations"`
	Of          int   `json:"of"`
	EnvSteps    int64 `json:"env_steps"`
	// Clones, Migrants, Restarts and RolledBack count members over all generations.
	Clones     int `json:"clones"`
	Migrants   int `json:"migrants"`
	Restarts   int `json:"restarts"`
	RolledBack int `json:"rolled_back"`
	// SinceRestart are the generations after the last in which a member restarted, or after the
	// first.
	SinceRestart int `json:"generations_since_restart"`
	// Members are those of the newest generation, the best first.
	Members []MemberSummary `json:"members"`
	// MAPD has the mean action pairwise distance after each generation, and Best the best score.
	MAPD []performance.Number `json:"mapd"`
	Best []performance.Number `json:"best"`
}

// MemberSummary is a member after the newest generation. Path is the run directory with its policy.
type MemberSummary struct {
	Record
	Path string `json:"path"`
}

// Summarize returns what has come of the search so far.
func (s *Search) Summarize() Summary { return summarize(s.ledger.Dir, s.c, s.records) }

func summarize(dir string, c Config, records [][]Record) Summary {
	sum := Summary{Dir: dir, Strategy: c.Strategy.Kind, Population: c.Population, Metric: c.Metric, Direction: c.Direction, Generations: len(records), Of: c.Generations, Members: []MemberSummary{}, MAPD: []performance.Number{}, Best: []performance.Number{}}
	for g, list := range records {
		if sum.SinceRestart++; g == 0 || slices.ContainsFunc(list, func(r Record) bool { return r.Action == Restart }) {
			sum.SinceRestart = 0
		}
		for _, r := range list {
			sum.EnvSteps += r.EnvSteps
			if g > 0 && r.Parent >= 0 {
				sum.EnvSteps -= records[g-1][r.Parent].EnvSteps
			}
			switch {
			case r.RolledBack != "":
				sum.RolledBack++
			case r.Action == Clone:
				sum.Clones++
			case r.Action == Migrate:
				sum.Migrants++
			case r.Action == Restart:
				sum.Restarts++
			}
		}
		sum.MAPD = append(sum.MAPD, performance.Number(mapdOf(list)))
		best := list[order(c, list)[0]].Score
		if !best.Defined() {
			best = performance.Number(math.NaN())
		}
		sum.Best = append(sum.Best, best)
	}
	if g := len(records) - 1; g >= 0 {
		for _, i := range order(c, records[g]) {
			r := records[g][i]
			sum.Members = append(sum.Members, MemberSummary{r, filepath.Join(dir, filepath.FromSlash(r.Dir))})
		}
	}
	return sum
}

// mapdOf is the mean action pairwise distance of a generation, NaN where it was not measured.
func mapdOf(list []Record) float64 {
	sum, n := 0.0, 0.0
	for _, r := range list {
		if r.Distance.Defined() {
			sum += float64(r.Distance)
			n++
		}
	}
	return sum / n
}

// order lists the members of a generation, the best first.
func order(c Config, list []Record) []int {
	members := make([]Member, len(list))
	for i, r := range list {
		members[i].Score = float64(r.Score)
		if c.Direction == tune.Minimize {
			members[i].Score = -members[i].Score
		}
	}
	return ranked(members)
}

// Best is the best member of a generation, which has no directory where all have diverged from the
// beginning.
func (s *Search) Best(list []Record) Record {
	order := order(s.c, list)
	for _, i := range order {
		if list[i].Dir != "" {
			return list[i]
		}
	}
	return list[order[0]]
}

// Table returns the members of the newest generation, the best first.
func (s *Summary) Table(dash string) (head []string, rows [][]string) {
	head = []string{"member", s.Metric, "action", "parent", "distance"}
	var paths []string
	if len(s.Members) > 0 {
		paths = sortedPaths(s.Members[0].Values)
	}
	head = append(head, paths...)
	for _, m := range s.Members {
		row := []string{fmt.Sprint(m.Member), study.Number(m.Score, dash), m.Action, number(m.Parent, dash), study.Number(m.Distance, dash)}
		for _, p := range paths {
			row = append(row, fmt.Sprintf("%.4g", m.Values[p]))
		}
		rows = append(rows, row)
	}
	return head, rows
}

func number(i int, dash string) string {
	if i < 0 {
		return dash
	}
	return fmt.Sprint(i)
}

// Text says in a few lines what the table does not.
func (s *Summary) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d generations, %d env steps; %d clones, %d migrants, %d restarts, %d rolled back\n", s.Generations, s.Of, s.EnvSteps, s.Clones, s.Migrants, s.Restarts, s.RolledBack)
	if n := len(s.MAPD); n > 0 && s.MAPD[n-1].Defined() {
		fmt.Fprintf(&b, "mean action pairwise distance %.3f\n", s.MAPD[n-1])
	}
	if len(s.Members) > 0 && s.Members[0].Dir != "" {
		fmt.Fprintf(&b, "best member %s\n", s.Members[0].Path)
	}
	return b.String()
}
