package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// leagueFlags are the command line of league.
type leagueFlags struct {
	sets        []string
	out, resume string
	parallel    int
}

func (a *app) leagueCommand() *cobra.Command {
	var f leagueFlags
	cmd := &cobra.Command{
		Use:   "league CONFIG.yaml",
		Short: "Train an agent by self-play against earlier selves and players",
		Long: `Trains an agent of a game generation by generation. What it is after each of them becomes a member of a league, plays all others, and is from then on one of those that the agent is trained against. matchmaking says how often it meets whom.

The directory has league.yaml, members.jsonl, matches.jsonl and the agent's runs; after the last generation its policy is published. Ctrl-C saves and stops; --resume goes on, also after a crash, with the same results.`,
		Example: `  onnxrl league rps_league --out runs/rps
  onnxrl league --resume runs/rps
  onnxrl league table runs/rps
  onnxrl league play runs/rps generation-3 random --games 100`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("league", a.league(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the document, for instance --set generations=10")
	fl.StringVarP(&f.out, "out", "o", "", "directory of the league (default: runs/ and the name of the document with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "go on with the league in this directory")
	fl.IntVar(&f.parallel, "parallel", 1, "matches that are played at once")
	a.addNice(cmd)
	a.addMetrics(cmd)
	cmd.AddCommand(a.leagueTableCommand(), a.leaguePlayCommand())
	return cmd
}

func (a *app) league(ctx context.Context, args []string, f *leagueFlags) (err error) {
	switch {
	case f.resume == "" && len(args) == 0:
		return errors.New("the document of a league is needed, or --resume with the directory of one")
	case f.parallel < 1:
		return fmt.Errorf("--parallel %d: expected at least 1", f.parallel)
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	eng, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	runs, err := a.studyRuns(ctx, eng)
	if err != nil {
		return err
	}
	var bar *progress.Progress
	l, err := league.Open(ctx, path, league.Options{
		Kinds: a.kinds, Run: runs, Dir: f.out, Resume: f.resume, Sets: f.sets, Parallel: f.parallel, Store: new(storeFlag).path(),
		Steps: func(n int64) { bar.Add(n) },
		Recorded: func(s league.Summary) {
			bar.FieldText("generation", fmt.Sprintf("%d/%d", s.Generations, s.Of))
			for _, r := range s.Ratings {
				if r.Name == league.Name(s.Generations-1) {
					bar.Field("Elo", math.Round(r.Elo))
				}
			}
		},
		Note: func(text string) { fmt.Fprintf(bar.Lines(a.err), "%s: %s\n", a.name, text) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := l.Rehearse(ctx); err != nil {
		return err
	}
	finished, err := l.Begin()
	if err != nil {
		return err
	}
	c := l.Config()
	bar = progress.Start(a.err, progress.Options{Label: "league", Unit: "env steps", Total: c.IntervalSteps * int64(c.Generations), Initial: c.IntervalSteps * int64(finished), Quiet: a.quiet})
	// The learner saves where it stops.
	release := a.stop.hold(saveGrace)
	ended := l.Train(ctx)
	release()
	bar.Finish()
	if ended != nil && ctx.Err() == nil {
		return ended
	}
	s := l.Summarize()
	if ended == nil {
		if s.Exploitability, err = l.Exploit(ctx); err != nil {
			return err
		}
	}
	if a.json {
		err = a.printJSON(s)
	} else if s.Generations > 0 {
		if err = s.Print(a.out); err == nil {
			_, err = fmt.Fprintf(a.out, "directory %s\n", s.Dir)
		}
	}
	if err == nil && ended != nil {
		a.say("stopped; continue with: onnxrl league --resume %s", l.Dir())
		return quietError{errInterrupted}
	}
	return err
}

func (a *app) leagueTableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "table DIR",
		Short: "Show members of a league, their ratings and the payoff matrix",
		Long:  `Prints, of the league in a directory, every member with its Elo rating, the best first. That is the rating of greatest likelihood by all games of the record, with a mean of 0 over the league and an interval of 95 %. Beside it is the share of the points that the member has of the first of the others. In a matrix game the exploitability of the average policy and of the newest is computed from the probabilities of the models. The league may still go on. --json prints all members and matches.`,
		Example: `  onnxrl league table runs/rps
  onnxrl league table runs/rps --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.leagueTable(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("league table: %w", err)
			}
			return a.printTable(s, nil)
		},
	}
}

func (a *app) leagueTable(ctx context.Context, dir string) (*league.Summary, error) {
	s, err := league.Read(dir)
	if err != nil || s.Generations == 0 {
		return s, err
	}
	f, err := league.OpenField(ctx, dir, a.kinds)
	if err != nil {
		return nil, err
	}
	if f.Matrix() {
		eng, err := a.compiler(ctx)
		if err == nil {
			s.Exploitability, err = f.Exploit(ctx, eng)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		return s, nil
	}
	return s, f.Close()
}

// playFlags are the command line of league play.
type playFlags struct {
	games  int
	greedy bool
	seed   uint64
	least  float64
	sets   []string
}

func (a *app) leaguePlayCommand() *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use:   "play DIR A B",
		Short: "Let two players play games in the world of a league",
		Long:  `Lets A and B play games in the world of a league, in every seat of the world equally often, and prints what came of them for A. A player is a member of the league by name, an ONNX file, or a scripted player of the world as the document of a league has it, such as random or '{kind: alpha_beta, depth: 4}'. --at-least exits with status 1 where A has a smaller share of the points, of which a draw is half a win.`,
		Example: `  onnxrl league play runs/connect_four generation-9 random
  onnxrl league play runs/connect_four best.onnx '{kind: alpha_beta, depth: 4}' --games 1000 --greedy --at-least 0.9 --set experiment.env.world.opening=0`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.leaguePlay(cmd.Context(), args, &f)
			if err != nil {
				return fmt.Errorf("league play: %w", err)
			}
			var missed error
			if r.Score < f.least {
				missed = fmt.Errorf("%s has %.3f of the points, less than %g", r.A, r.Score, f.least)
			}
			return a.printTable(r, missed)
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&f.games, "games", 100, "games to play, rounded up to as many in each seat")
	fl.BoolVar(&f.greedy, "greedy", false, "models take their best action and draw none")
	fl.Uint64Var(&f.seed, "seed", 1, "what all randomness descends from")
	fl.StringArrayVar(&f.sets, "set", nil, "edit the document of the league, for instance --set experiment.env.world.opening=0")
	fl.Float64Var(&f.least, "at-least", 0, "exit with status 1 where A has a smaller share of the points")
	return cmd
}

// playReport is what league play prints; the JSON keys are stable.
type playReport struct {
	A string `json:"a"`
	B string `json:"b"`
	// Seats has what came of the games by the seat of A, and Total all of them.
	Seats []league.Tally `json:"seats"`
	Total league.Tally   `json:"total"`
	// Score is the share of the points of A, of which a draw is half a win, with an interval of
	// 95 %, which a single game lacks. WinRate is the share of the games that it has won.
	Score   float64  `json:"score"`
	Low     *float64 `json:"low"`
	High    *float64 `json:"high"`
	WinRate float64  `json:"win_rate"`
}

// Print writes the report.
func (r *playReport) Print(w io.Writer) error {
	err := study.Print(w, func(string) (head []string, rows [][]string) {
		head = []string{"seat of " + r.A, "games", "wins", "draws", "losses", "score", "mean return"}
		for _, t := range append(r.Seats[:len(r.Seats):len(r.Seats)], r.Total) {
			rows = append(rows, []string{t.Seat, fmt.Sprint(t.Games()), fmt.Sprint(t.Wins), fmt.Sprint(t.Draws), fmt.Sprint(t.Losses), fmt.Sprintf("%.3f", t.Score()), fmt.Sprintf("%.3f", t.Return/float64(t.Games()))})
		}
		return head, rows
	})
	if err != nil {
		return err
	}
	interval := "no interval of one game"
	if r.Low != nil && r.High != nil {
		interval = fmt.Sprintf("95 %% interval %.1f to %.1f", 100**r.Low, 100**r.High)
	}
	_, err = fmt.Fprintf(w, "\n%s has %.1f %% of the points of %s, %s\n", r.A, 100*r.Score, r.B, interval)
	return err
}

func (a *app) leaguePlay(ctx context.Context, args []string, f *playFlags) (_ *playReport, err error) {
	if f.games < 1 {
		return nil, fmt.Errorf("--games %d: expected at least 1", f.games)
	}
	field, err := league.OpenField(ctx, args[0], a.kinds, f.sets...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	eng, err := a.compiler(ctx)
	if err != nil {
		return nil, err
	}
	m, err := field.Play(ctx, eng, strings.TrimSpace(args[1]), strings.TrimSpace(args[2]), f.games, f.greedy, f.seed)
	if err != nil {
		return nil, err
	}
	r := &playReport{A: m.A, B: m.B, Seats: m.Seats, Total: m.Total()}
	if filepath.IsAbs(r.A) {
		r.A = filepath.Base(r.A)
	}
	t := r.Total
	n := float64(t.Games())
	r.Score, r.WinRate = t.Score(), float64(t.Wins)/n
	if n > 1 {
		low, high := wilson(r.Score, n)
		r.Low, r.High = &low, &high
	}
	return r, nil
}

// wilson is the interval of 95 % of a share of n (Wilson 1927); of points with draws it is too wide
// rather than too narrow.
func wilson(p, n float64) (low, high float64) {
	const z = 1.96
	middle, half := (p+z*z/(2*n))/(1+z*z/n), z/(1+z*z/n)*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return middle - half, middle + half
}
