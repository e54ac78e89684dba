package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/cmd/internal/learning"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// speedReport is what onnxrl bench train prints; the JSON keys are stable.
type speedReport struct {
	Engine string           `json:"engine"`
	Rows   []learning.Speed `json:"rows"`
}

// speedFlags are the command line of bench train.
type speedFlags struct {
	sets          []string
	seed          uint64
	threads       int
	profile, list bool
}

func (a *app) benchTrainCommand() *cobra.Command {
	var f speedFlags
	cmd := &cobra.Command{
		Use:   "train [ROW…]",
		Short: "Env steps per second of trainings, and where their time goes",
		Long: `Trains for a while, without validation and checkpoints, and says how many env steps per second that were: acting, stepping, recording and learning together. Rows are selected by patterns ('*_cartpole').
cmd/peers/sb3.sh runs the same trainings with Stable-Baselines3 in turns with these.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := learning.SelectRows(args)
			if err != nil {
				return fmt.Errorf("bench train: %w", err)
			}
			if f.list {
				return a.listRows(rows)
			}
			r, err := a.benchTrain(cmd.Context(), rows, f)
			if err != nil {
				return fmt.Errorf("bench train: %w", err)
			}
			if a.json {
				return a.printJSON(r)
			}
			return a.printSpeed(r)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the documents, for instance --set train.total_env_steps=20000")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the runs")
	fl.IntVar(&f.threads, "threads", 0, "cores that a run may keep busy; 0 is what its document says")
	fl.BoolVar(&f.profile, "profile", false, "also show where the time goes")
	fl.BoolVar(&f.list, "list", false, "only show the rows")
	return cmd
}

// listRows shows which trainings there are.
func (a *app) listRows(rows []learning.Row) error {
	if a.json {
		return a.printJSON(rows)
	}
	w := printable.NewTable(a.out)
	fmt.Fprintln(w, "training\tsettings")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\n", r.Name, r.Settings)
	}
	return w.Flush()
}

func (a *app) benchTrain(ctx context.Context, rows []learning.Row, f speedFlags) (*speedReport, error) {
	if f.threads < 0 {
		return nil, errors.New("--threads must not be negative")
	}
	c, err := a.compiler(ctx)
	if err != nil {
		return nil, err
	}
	r := &speedReport{Engine: c.Name(), Rows: []learning.Speed{}}
	for _, row := range rows {
		o := learning.Options{Engine: c, Sets: f.sets, Threads: f.threads}
		if f.profile {
			o.Profile = agents.NewProfile(time.Now)
		}
		cfg, err := learning.Load(row.Name, o)
		if err != nil {
			return nil, err
		}
		bar := progress.Start(a.err, progress.Options{Label: row.Name, Unit: "env steps", Total: cfg.Train.TotalEnvSteps, Quiet: a.quiet})
		at, drawn := int64(0), time.Time{}
		o.Each = func(p train.Progress) {
			// Showing a bar must not be part of what is measured.
			if now := time.Now(); now.Sub(drawn) > 200*time.Millisecond {
				bar.Add(p.EnvSteps - at)
				at, drawn = p.EnvSteps, now
			}
		}
		s, err := learning.Throughput(ctx, row, f.seed, o)
		bar.Finish()
		if err != nil {
			return nil, err
		}
		r.Rows = append(r.Rows, s)
	}
	return r, nil
}

func (a *app) printSpeed(r *speedReport) error {
	w := printable.NewNumbers(a.out)
	fmt.Fprint(w, "training\tthreads\tenv steps\tseconds\tenv steps/s\t")
	profiled := len(r.Rows) > 0 && r.Rows[0].Phases != nil
	if profiled {
		headPhases(w)
	}
	fmt.Fprintln(w, "settings\t")
	for _, s := range r.Rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.0f\t", s.Name, s.Threads, s.EnvSteps, s.Seconds, s.EnvStepsPerSecond)
		if profiled {
			sharePhases(w, s.Phases, s.Seconds)
		}
		fmt.Fprintf(w, "%s\t\n", s.Settings)
	}
	return w.Flush()
}

// headPhases writes the columns' names of a profile, and sharePhases one row of it: which share of
// the seconds went where. What no phase has is validation, and what lies between.
func headPhases(w io.Writer) {
	for _, p := range agents.Phases() {
		fmt.Fprintf(w, "%s %%\t", p)
	}
	fmt.Fprint(w, "other %\t")
}

func sharePhases(w io.Writer, phases map[string]float64, seconds float64) {
	rest := seconds
	for _, p := range agents.Phases() {
		rest -= phases[p.String()]
		fmt.Fprintf(w, "%.1f\t", 100*phases[p.String()]/seconds)
	}
	fmt.Fprintf(w, "%.1f\t", 100*max(0, rest)/seconds)
}
