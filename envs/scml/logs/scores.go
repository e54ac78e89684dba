package logs

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The columns of the tables of a tournament.
var (
	scoreColumns      = []string{"index", "agent_id", "agent_name", "agent_type", "base_stats_folder", "log_file", "run_id", "score", "stats_folders", "world"}
	typeScoreColumns  = []string{"type", "score", "world", "run_id"}
	totalColumns      = []string{"index", "agent_type", "score"}
	scoreStatsColumns = []string{"agent_type", "count", "mean", "std", "min", "25%", "median", "75%", "max"}
	countColumns      = []string{
		"neg_requests_sent", "negs_initiated", "contracts_dropped", "times", "neg_requests_rejected", "contracts_signed", "negotiator_exceptions", "negs_succeeded", "contracts_concluded", "contracts_erred", "exceptions", "negs_registered",
		"neg_requests_received", "negs_timedout", "negs_failed", "breaches_committed", "breaches_received", "contracts_executed", "contracts_nullified", "contracts_breached",
	}
	worldStatsColumns = []string{
		"name", "planned_n_steps", "executed_n_steps", "execution_time", "simulation_exceptions", "contract_exceptions", "mechanism_exceptions", "other_exceptions", "n_agent_exceptions", "n_negotiator_exceptions", "mean_agent_time",
		"n_neg_requests_sent", "n_neg_requests_received", "n_neg_requests_rejected", "n_negs_registered", "n_negs_succeeded", "n_negs_failed", "n_negs_timedout", "n_negs_initiated", "n_contracts_concluded", "n_contracts_signed",
		"n_contracts_dropped", "n_breaches_received", "n_breaches_committed", "n_contracts_erred", "n_contracts_nullified", "n_contracts_breached", "n_contracts_executed",
	}
)

// Finish writes the tables of the tournament, of the results in the folders of all worlds.
func (t *Tournament) Finish() error {
	results, err := t.results()
	if err != nil {
		return err
	}
	write := func(name string, columns []string, rows func(w *table)) {
		if err != nil {
			return
		}
		var w *table
		if w, err = newTable(t.dir, name, columns...); err != nil {
			return
		}
		rows(w)
		if err = w.close(); err != nil {
			err = fmt.Errorf("%s: %w", filepath.Join(t.dir, name), err)
		}
	}
	scores := map[string][]float64{}
	write("scores.csv", scoreColumns, func(w *table) {
		n := 0
		for _, r := range results {
			for _, s := range r.Scores {
				scores[s.Type] = append(scores[s.Type], s.Score)
				w.whole(n)
				for _, x := range []string{s.ID, s.Name, s.Type, s.Base, s.LogFile, s.RunID} {
					w.text(x)
				}
				w.number(s.Score)
				w.text(s.Folders)
				w.text(s.World)
				w.end()
				n++
			}
		}
	})
	for _, x := range []struct {
		name string
		of   func(r *result) []typeScore
	}{{"combined_scores.csv", func(r *result) []typeScore { return r.Extra.Combined }}, {"consolidated_scores.csv", func(r *result) []typeScore { return r.Extra.Consolidated }}} {
		write(x.name, typeScoreColumns, func(w *table) {
			for _, r := range results {
				for _, s := range x.of(r) {
					w.text(s.Type)
					w.number(s.Score)
					w.text(s.World)
					w.text(s.RunID)
					w.end()
				}
			}
		})
	}
	var types []string
	for name := range sorted.All(scores) {
		types = append(types, name)
	}
	slices.SortStableFunc(types, func(a, b string) int {
		return cmp.Compare(league.TruncatedMean(scores[b]), league.TruncatedMean(scores[a]))
	})
	for i, name := range []string{"total_scores.csv", "winners.csv"} {
		write(name, totalColumns, func(w *table) {
			for k, typ := range types {
				if i == 1 && league.TruncatedMean(scores[typ]) < league.TruncatedMean(scores[types[0]]) {
					break
				}
				w.whole(k)
				w.text(typ)
				w.number(league.TruncatedMean(scores[typ]))
				w.end()
			}
		})
	}
	write("score_stats.csv", scoreStatsColumns, func(w *table) {
		for typ, list := range sorted.All(scores) {
			w.text(typ)
			for _, x := range league.Describe(list) {
				w.number(x)
			}
			w.end()
		}
	})
	write("agent_stats.csv", append([]string{"world", "agent"}, countColumns...), func(w *table) {
		for _, r := range results {
			for _, a := range r.Agents {
				w.text(a.World)
				w.text(a.Agent)
				w.counted(&a.counted)
			}
		}
	})
	write("type_stats.csv", append([]string{"world", "type"}, countColumns...), func(w *table) {
		for _, r := range results {
			for _, a := range r.Types {
				w.text(a.World)
				w.text(a.Type)
				w.counted(&a.counted)
			}
		}
	})
	write("world_stats.csv", worldStatsColumns, func(w *table) {
		for _, r := range results {
			for _, x := range r.Worlds {
				s := &x.Sum
				w.text(x.Name)
				w.whole(x.Planned)
				w.whole(x.Executed)
				w.raw("0.0,[],[],[],[],0,0,0.0")
				for _, n := range []int{s.Sent, s.Received, s.Rejected, s.Registered, s.Succeeded, s.Failed, s.TimedOut, s.Initiated, s.Concluded, s.Signed, s.Dropped, 0, 0, s.Erred, 0, 0, s.Executed} {
					w.whole(n)
				}
				w.end()
			}
		}
	})
	if err != nil {
		return err
	}
	if err := t.compare(scores); err != nil {
		return err
	}
	if err := errors.Join(t.assigned(results), t.summariseTrackers()); err != nil {
		return err
	}
	return t.dailyStats(results)
}

// counted ends a row with counters.
func (t *table) counted(c *counted) {
	t.whole(c.Sent)
	t.whole(c.Initiated)
	t.whole(c.Dropped)
	t.number(0)
	t.whole(c.Rejected)
	t.whole(c.Signed)
	t.raw("[]")
	t.whole(c.Succeeded)
	t.whole(c.Concluded)
	t.whole(c.Erred)
	t.raw("[]")
	for _, n := range []int{c.Registered, c.Received, c.TimedOut, c.Failed, 0, 0, c.Executed, 0, 0} {
		t.whole(n)
	}
	t.end()
}

// results reads what all worlds came to, in their order.
func (t *Tournament) results() ([]*result, error) {
	list, err := os.ReadDir(filepath.Join(t.dir, worldsDir))
	if err != nil {
		return nil, err
	}
	of := make([]*result, t.spec.Worlds())
	for _, entry := range list {
		path := filepath.Join(t.dir, worldsDir, entry.Name(), resultsFile)
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r := &result{World: -1}
		if err := json.Unmarshal(text, r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if r.World < 0 || r.World >= len(of) || of[r.World] != nil {
			return nil, fmt.Errorf("%s: onnxrl_world is %d, expected another one of 0 … %d in each folder", path, r.World, len(of)-1)
		}
		of[r.World] = r
	}
	for i, r := range of {
		if r == nil {
			return nil, fmt.Errorf("%s: there is no folder of world %d of %d; remove %s to play all of them again", filepath.Join(t.dir, worldsDir), i, len(of), t.dir)
		}
	}
	return of, nil
}
