package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/league"
)

// scoreStatsFile has statistics of the scores of each type, where it has been written.
const scoreStatsFile = "score_stats.csv"

// scoreStats are its columns, as league.Describe computes them.
var scoreStats = []string{"count", "mean", "std", "min", "25%", "median", "75%", "max"}

// statsTolerance is how far the league's own sums may be from ours, relative to the larger of their
// size and 1.
const statsTolerance = 1e-9

// checkScoreStats compares the file, if there is one, with scores by type; the error names the
// first cell that differs.
func checkScoreStats(path string, scores map[string][]float64) error {
	s, err := readSheet(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for row := range s.rows {
		typ, err := s.text(row, "agent_type")
		if err != nil {
			return err
		}
		list := scores[typ[strings.LastIndexAny(typ, ".:")+1:]]
		if len(list) == 0 {
			return fmt.Errorf("%s: row %d: %s has no scores in %s", path, row+1, typ, scoresFile)
		}
		for i, want := range league.Describe(list) {
			got, err := s.number(row, scoreStats[i])
			if err != nil {
				return err
			}
			// One score has no standard deviation, whatever stands for that.
			if math.IsNaN(want) {
				continue
			}
			if !(math.Abs(got-want) <= statsTolerance*max(1, math.Abs(want))) {
				return fmt.Errorf("%s: row %d, column %s: %v, and the scores in %s come to %v", path, row+1, scoreStats[i], got, scoresFile, want)
			}
		}
	}
	if len(s.rows) != len(scores) {
		return fmt.Errorf("%s: %d rows, expected %d, one for each type in %s", path, len(s.rows), len(scores), scoresFile)
	}
	return nil
}
