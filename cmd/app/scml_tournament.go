package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// scmlTournament is what scml tournament prints and keeps; the JSON keys are stable.
type scmlTournament struct {
	Spec league.Spec `json:"spec"`
	// Worlds is how many there are to play, Played how many were.
	Worlds    int               `json:"worlds"`
	Played    int               `json:"played"`
	Standings []league.Standing `json:"standings"`
	Rows      []league.Row      `json:"rows"`
}

// Print writes the standings.
func (r *scmlTournament) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d of %d worlds\n\n", r.Played, r.Worlds)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tcompetitor\tscore\tmean\t± s.e.\tworlds\tbankrupt\t")
	places := r.places()
	for _, p := range places {
		fmt.Fprintf(w, "%d of %d\t", p.Level+1, p.Levels)
	}
	fmt.Fprintln(w)
	for i, s := range r.Standings {
		fmt.Fprintf(w, "%d\t%s\t%.3f\t%.3f\t%.3f\t%d\t%d\t", i+1, s.Name, s.Score, s.Mean, s.Error, s.Worlds, s.Bankrupt)
		for _, at := range places {
			text := ""
			for _, p := range s.Places {
				if p.Levels == at.Levels && p.Level == at.Level {
					text = fmt.Sprintf("%.3f", p.Score)
				}
			}
			fmt.Fprint(w, text, "\t")
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// places are the levels that any competitor has had.
func (r *scmlTournament) places() []league.Place {
	var all []league.Place
	for _, s := range r.Standings {
		for _, p := range s.Places {
			all = append(all, league.Place{Levels: p.Levels, Level: p.Level})
		}
	}
	slices.SortFunc(all, func(a, b league.Place) int { return cmp.Or(a.Levels-b.Levels, a.Level-b.Level) })
	return slices.Compact(all)
}

// scmlKeepEvery is how often a tournament is saved.
const scmlKeepEvery = 10 * time.Second

func (a *app) scmlTournamentCommand() *cobra.Command {
	s := league.Defaults()
	s.Find = scml.Find
	var rules []string
	var out string
	workers := runtime.GOMAXPROCS(0)
	levels, days := []int{s.Levels[0], s.Levels[1]}, []int{s.Days[0], s.Days[1]}
	cmd := &cobra.Command{
		Use:   "tournament COMPETITOR COMPETITOR...",
		Short: "Rank agents as the league does",
		Long: `Plays worlds in which competitors sit in places drawn for them among the league's own agents, and ranks them by the truncated mean of their scores: the final balance relative to the initial one, without
those far above the others. Each configuration is played as often as competitors meet in it, so that each has every place once.

The columns at the right have the scores at each level: "2 of 3" is the second level of three. With -o every score is kept; a tournament that was stopped, or failed, goes on with the same command.

The competitors are ` + agentNames() + `.`,
		Example: `  onnxrl scml tournament penguin as0 syncrandom --configs 20 --levels 2,3 -o tournament.json`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Competitors = args
			if len(levels) != 2 || len(days) != 2 {
				return fmt.Errorf("scml tournament: --levels %v, --days %v: expected two numbers, the least and the most", levels, days)
			}
			s.Levels, s.Days = [2]int(levels), [2]int(days)
			err := setRules(&s.Rules, rules)
			if err == nil {
				err = s.Validate()
			}
			if err != nil {
				return fmt.Errorf("scml tournament: %w", err)
			}
			r, err := a.scmlTournament(cmd.Context(), s, out, workers)
			if err != nil {
				return fmt.Errorf("scml tournament: %w", err)
			}
			return a.printTable(r, nil)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&s.Configs, "configs", s.Configs, "configurations drawn for each choice of competitors")
	fl.IntVar(&s.Runs, "runs", s.Runs, "how often each is played with each order of competitors")
	fl.IntVar(&s.PerWorld, "per-world", 0, "competitors that meet in a world (default: all)")
	fl.IntSliceVar(&levels, "levels", levels, "least and most levels")
	fl.IntSliceVar(&days, "days", days, "least and most days")
	fl.Uint64Var(&s.Seed, "seed", 1, "seed of everything")
	fl.StringArrayVar(&rules, "rule", nil, ruleUsage)
	fl.IntVar(&workers, "workers", workers, "processors to play on; the scores do not depend on it")
	fl.StringVarP(&out, "out", "o", "", "keep the scores in this file, and go on from it")
	return cmd
}

func (a *app) scmlTournament(ctx context.Context, s league.Spec, path string, workers int) (*scmlTournament, error) {
	r := &scmlTournament{Spec: s, Worlds: s.Worlds(), Rows: []league.Row{}}
	if path != "" {
		if err := r.load(path); err != nil {
			return nil, err
		}
	}
	bar := progress.Start(a.err, progress.Options{Label: "tournament", Unit: "worlds", Total: int64(r.Worlds), Quiet: a.quiet})
	defer bar.Finish()
	bar.Set(int64(r.Played))
	kept := time.Now()
	save := func() error {
		r.Standings = league.Standings(r.Rows)
		if path == "" {
			return nil
		}
		kept = time.Now()
		return atomicfile.WriteFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
	}
	err := s.Run(ctx, r.Played, workers, func(rows []league.Row) error {
		r.Rows = append(r.Rows, rows...)
		r.Played++
		bar.Add(1)
		if time.Since(kept) > scmlKeepEvery {
			return save()
		}
		return nil
	})
	if err = errors.Join(err, save()); err != nil && path != "" && r.Played > 0 {
		a.say("%d of %d worlds are kept in %s; the same command goes on", r.Played, r.Worlds, path)
	}
	return r, err
}

// load goes on from a file, if there is one, of the same tournament.
func (r *scmlTournament) load(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept scmlTournament
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want := r.Spec
	want.Find = nil // It is not kept, and no function equals another.
	if !reflect.DeepEqual(kept.Spec, want) {
		return fmt.Errorf("%s is of another tournament: name another file, or delete it", path)
	}
	last := -1
	for i, row := range kept.Rows {
		if row.World != last && row.World != last+1 {
			return fmt.Errorf("%s: rows[%d] is of world %d, expected %d", path, i, row.World, last+1)
		}
		last = row.World
	}
	if last+1 != kept.Played {
		return fmt.Errorf("%s: %d worlds were played, and the rows are of %d", path, kept.Played, last+1)
	}
	r.Rows, r.Played = kept.Rows, kept.Played
	return nil
}
