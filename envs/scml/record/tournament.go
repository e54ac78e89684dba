package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// scoresFile has what competitors scored, in the folder of a tournament.
const scoresFile = "scores.csv"

// Tournament is what the folder of a tournament says of its worlds.
type Tournament struct {
	Worlds int `json:"worlds"`
	// Types are the competitors, the best first.
	Types []TypeScores `json:"competitors"`
	// Trackers are the logs that agents themselves have written, if any.
	Trackers []Tracker `json:"trackers,omitempty"`
}

// TypeScores are the scores of a type: the truncated mean that it is ranked by, and the statistics
// that score_stats.csv has.
type TypeScores struct {
	Type   string  `json:"type"`
	Score  float64 `json:"score"`
	Worlds int     `json:"worlds"`
	Mean   float64 `json:"mean"`
	Least  float64 `json:"min"`
	Most   float64 `json:"max"`
}

// OpenTournament reads the folder of a tournament, as scml 0.7.6 and package logs write it: one
// with scores.csv, or with one such folder in it. The error is os.ErrNotExist where there is none.
// A score_stats.csv beside it must be of these scores.
func OpenTournament(dir string) (*Tournament, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", scoresFile))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, scoresFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && len(paths) == 1 {
		path = paths[0]
	}
	s, err := readSheet(path)
	if err != nil {
		return nil, err
	}
	t := &Tournament{Types: []TypeScores{}}
	scores, worlds := map[string][]float64{}, map[string]bool{}
	for row := range s.rows {
		c := &cells{sheet: s, row: row}
		typ, score := c.name("agent_type"), c.number("score")
		worlds[c.name("run_id")] = true
		if c.err != nil {
			return nil, c.err
		}
		typ = typ[strings.LastIndexAny(typ, ".:")+1:]
		scores[typ] = append(scores[typ], score)
	}
	if err := checkScoreStats(filepath.Join(filepath.Dir(path), scoreStatsFile), scores); err != nil {
		return nil, err
	}
	t.Worlds = len(worlds)
	for typ, list := range scores {
		t.Types = append(t.Types, TypeScores{Type: typ, Score: league.TruncatedMean(list), Worlds: len(list), Mean: mean(list), Least: slices.Min(list), Most: slices.Max(list)})
	}
	slices.SortFunc(t.Types, func(a, b TypeScores) int {
		if a.Score != b.Score && a.Score > b.Score {
			return -1
		}
		if a.Score != b.Score {
			return 1
		}
		return strings.Compare(a.Type, b.Type)
	})
	t.Trackers, err = ReadTrackers(dir)
	return t, err
}

// Print writes it as tables.
func (t *Tournament) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d worlds\n\n", t.Worlds)
	w := printable.NewNumbers(out)
	fmt.Fprintln(w, "\tcompetitor\tscore\tmean\tleast\tmost\tworlds\t")
	for i, s := range t.Types {
		fmt.Fprintf(w, "%d\t%s\t%.3f\t%.3f\t%.3f\t%.3f\t%d\t\n", i+1, s.Type, s.Score, s.Mean, s.Least, s.Most, s.Worlds)
	}
	if err := w.Flush(); err != nil || len(t.Trackers) == 0 {
		return err
	}
	fmt.Fprintln(out)
	w = printable.NewNumbers(out)
	fmt.Fprintln(w, "tracked\ttype\tnegotiations\tagreed\tfailed\toffers\taccepted\trejected\tsigned\tbreached\tentries\t")
	for _, k := range t.Trackers {
		s := k.Stats
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", k.Agent, k.Type, s.Started, s.Success, s.Failed, s.Made, s.Accepted, s.Rejected, s.Signed, s.Breached, k.Entries)
	}
	return w.Flush()
}
