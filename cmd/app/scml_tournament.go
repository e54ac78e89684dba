package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// scmlTournament is what scml tournament prints and keeps.
type scmlTournament struct {
	*league.Report

	// compare is the competitor whose differences are shown by group.
	compare string
}

// Print writes the standings and what the differences between competitors are.
func (r *scmlTournament) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d of %d worlds\n\n", r.Played, r.Worlds)
	w := printable.NewNumbers(out)
	fmt.Fprint(w, "\tcompetitor\tscore\tmean\t± s.e.\tworlds\twon\tbankrupt\tshort\toverflow\tunsafe\tfaults\t")
	places := r.places()
	for _, p := range places {
		fmt.Fprintf(w, "%s\t", groupName(p))
	}
	fmt.Fprintln(w)
	for i, s := range r.Standings {
		fmt.Fprintf(w, "%d\t%s\t%.3f\t%.3f\t%s\t%d\t%.0f %%\t%d\t%.0f %%\t%.1f\t%d\t%d\t", i+1, s.Name, s.Score, s.Mean, s.Spread("-"), s.Worlds, 100*s.WinRate, s.Bankrupt, 100*s.Short, s.Overflow, s.Unsafe, s.Faults.Count())
		for _, at := range places {
			text := ""
			if k := slices.IndexFunc(s.Places, func(p league.Place) bool { return p.Group == at }); k >= 0 {
				text = fmt.Sprintf("%.3f", s.Places[k].Score)
			}
			fmt.Fprint(w, text, "\t")
		}
		fmt.Fprintln(w)
	}
	if len(r.Differences) > 0 {
		fmt.Fprint(w, "\n\tcompetitor\tagainst\tdifference\t95 % from\tto\tahead\tconfigurations\tneeded\t\n")
	}
	for _, d := range r.Differences {
		if d.Group == league.Everything {
			low, high, ahead, needed := d.Cells("-")
			fmt.Fprintf(w, "\t%s\t%s\t%+.3f\t%s\t%s\t%s\t%d\t%s\t\n", d.Name, d.Against, d.Difference, low, high, ahead, d.Configs, needed)
		}
	}
	r.printGroups(w, places)
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Differences, func(d league.Difference) bool { return d.Group == league.Everything && d.Low == nil }) {
		fmt.Fprintf(out, "\n%s\n", noInterval)
	}
	for i := range r.Standings {
		if s := &r.Standings[i]; s.Faults.Count() > 0 {
			if _, err := fmt.Fprintf(out, "\nfaults of %s: %s\n", s.Name, faultText(&s.Faults)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noInterval says why a difference has none.
const noInterval = "- no interval: it takes two configurations of each length of chains that a competitor has played"

// printGroups writes the differences of one competitor from the others, a group in each row.
func (r *scmlTournament) printGroups(w io.Writer, places []league.Group) {
	begun := false
	for _, at := range places {
		cells, some := "", false
		for _, s := range r.Standings {
			text := ""
			for _, d := range r.Differences {
				if d.Against == r.compare {
					d = d.Reversed()
				}
				if d.Group == at && d.Name == r.compare && d.Against == s.Name {
					if text = fmt.Sprintf("%+.3f", d.Difference); d.Low != nil {
						text += " (" + d.Interval("-") + ")"
					}
				}
			}
			if some = some || text != ""; s.Name != r.compare {
				cells += text + "\t"
			}
		}
		if !some {
			continue
		}
		if !begun {
			fmt.Fprintf(w, "\n\t%s against\t", r.compare)
			for _, s := range r.Standings {
				if s.Name != r.compare {
					fmt.Fprintf(w, "%s\t", s.Name)
				}
			}
			fmt.Fprintln(w)
		}
		begun = true
		fmt.Fprintf(w, "\t%s\t%s\n", groupName(at), cells)
	}
}

// groupName is "of 3" for chains of three levels and "2 of 3" for the second of them.
func groupName(g league.Group) string {
	if g.Level < 0 {
		return fmt.Sprintf("of %d", g.Levels)
	}
	return fmt.Sprintf("%d of %d", g.Level+1, g.Levels)
}

// places are the groups of worlds that any competitor has been in.
func (r *scmlTournament) places() []league.Group {
	var all []league.Group
	for _, s := range r.Standings {
		for _, p := range s.Places {
			all = append(all, p.Group)
		}
	}
	slices.SortFunc(all, func(a, b league.Group) int { return cmp.Or(a.Levels-b.Levels, a.Level-b.Level) })
	return slices.Compact(all)
}

// scmlTournamentFile is where --logs keeps the scores, in its folder.
const scmlTournamentFile = "tournament.json"

func (a *app) scmlTournamentCommand() *cobra.Command {
	s := league.Defaults()
	s.Watch = shield.Watch
	var rules []string
	var out, compare, folder string
	var more logs.Extras
	workers := runtime.GOMAXPROCS(0)
	days := []int{s.Days[0], s.Days[1]}
	cmd := &cobra.Command{
		Use:   "tournament COMPETITOR COMPETITOR...",
		Short: "Rank agents as the league does",
		Long: `Plays worlds in which competitors sit in places drawn for them among the league's own agents, and ranks them by the truncated mean of their scores. A score is the final balance relative to the initial one, without
those far above the others. Each configuration is played as often as competitors meet in it, so that each has every place once. The columns at the right have the scores in chains of each length, and at
each of their levels: "2 of 3" is the second of three. Won is the share of worlds in which no other competitor scored more, and short that of days on which less was made than owed. overflow is how many input units were in stock beyond what the lines use in a day, in the mean. An action is unsafe if a careful agent would not take it, since what is owed may not be
made or paid for, or what is bought not be used. Faults are panics, calls that took longer than --limit, and invalid answers, such as an offer outside of what may be offered, which agents of the league make, too; lines below the tables tell which.

With -o every score is kept; a tournament that was stopped, or failed, goes on with the same command.

The competitors are ` + agentNames() + `, and directories with an agent.json that names the ONNX files of our agent's layers; "DIR:no-manager" leaves a layer out.`,
		Example: `  onnxrl scml tournament penguin as0 syncrandom --configs 60 --processes 2,3 -o tournament.json`,
		Args:    cobra.MinimumNArgs(2),
		// The layers that are left out of an agent stand behind its directory.
		Annotations: map[string]string{keepsReferences: "true"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			roster := scml.NewRoster(a.compiler)
			defer func() { err = errors.Join(err, roster.Close()) }()
			s.Competitors, s.Find = args, roster.Find
			if len(days) != 2 {
				return fmt.Errorf("scml tournament: --days %v: expected two numbers, the least and the most", days)
			}
			if s.Days = [2]int(days); compare == "" {
				compare = args[0]
			} else if !slices.Contains(args, compare) {
				return fmt.Errorf("scml tournament: --compare %s: it is none of the competitors", compare)
			}
			if err = cmp.Or(checkExtras(folder, &more), setRules(&s.Rules, rules)); err == nil {
				err = s.Validate()
			}
			if err != nil {
				return fmt.Errorf("scml tournament: %w", err)
			}
			r, err := a.scmlTournament(cmd.Context(), s, out, folder, more, workers)
			if err != nil {
				return fmt.Errorf("scml tournament: %w", err)
			}
			return a.printTable(&scmlTournament{r, compare}, nil)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&s.Configs, "configs", s.Configs, "configurations that are drawn")
	fl.IntVar(&s.Runs, "runs", s.Runs, "how often each is played with each order of competitors")
	fl.IntVar(&s.PerWorld, "per-world", 0, "competitors that meet in a world (default: all)")
	fl.IntSliceVar(&s.Processes, "processes", s.Processes, "lengths of the chains, which configurations have in turn")
	fl.IntSliceVar(&days, "days", days, "least and most days")
	fl.Uint64Var(&s.Seed, "seed", 1, "seed of everything")
	fl.StringArrayVar(&rules, "rule", nil, ruleUsage)
	fl.DurationVar(&s.Limit, "limit", s.Limit, limitUsage)
	fl.IntVar(&workers, "workers", workers, "processors to play on; the scores do not depend on it")
	fl.StringVar(&compare, "compare", "", "the competitor whose differences are shown by groups (default: the first)")
	fl.StringVarP(&out, "out", "o", "", "keep the scores in this file, and go on from it")
	rarely(fl, "rule", "limit", "runs")
	fl.StringVar(&folder, "logs", "", "write the folder that the league's own program writes for a tournament, and go on with it")
	extraFlags(fl, &more)
	cmd.MarkFlagsMutuallyExclusive("out", "logs")
	return cmd
}

func (a *app) scmlTournament(ctx context.Context, s league.Spec, path, folder string, more logs.Extras, workers int) (*league.Report, error) {
	var t *logs.Tournament
	if folder != "" {
		var err error
		if t, err = logs.OpenTournament(folder, s, more); err != nil {
			return nil, err
		}
		s.Follow, path = t.Follow, filepath.Join(folder, scmlTournamentFile)
	}
	var bar *progress.Progress
	r, err := s.Report(ctx, path, workers, func(played int) {
		if bar == nil {
			bar = progress.Start(a.err, progress.Options{Label: "tournament", Unit: "worlds", Total: int64(s.Worlds()), Quiet: a.quiet})
		}
		bar.Set(int64(played))
	})
	if bar != nil {
		bar.Finish()
	}
	if err == nil && t != nil {
		err = t.Finish()
	}
	if err != nil && r != nil && path != "" && r.Played > 0 {
		a.say("%d of %d worlds are kept in %s; the same command goes on", r.Played, r.Worlds, path)
	}
	return r, err
}
