package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/official"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/progress"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// scmlRun is the command line of scml run.
type scmlRun struct {
	agents       []string
	levels, days int
	seed         uint64
	rules        []string
	out, picture string
	logs, calls  string
	more         logs.Extras
	drawn        bool
	limit        time.Duration
}

// scmlRan is what scml run prints; the JSON keys are stable.
type scmlRan struct {
	*record.Summary
	// Seconds is how long the days took to play.
	Seconds float64 `json:"seconds"`
}

func (a *app) scmlRunCommand() *cobra.Command {
	f := scmlRun{levels: 2, days: 50, limit: league.Limit}
	cmd := &cobra.Command{
		Use:   "run [WORLD.json]",
		Short: "Play a world and show what came of it",
		Long: `Draws a world from the distributions of the league, or reads one from a file, and plays it with rule agents. Without --agents a file's own types play, and in a drawn world those that fill places in
tournaments. --agents seats the named ones in turn, from the first factory on.`,
		Example: `  onnxrl scml run --levels 3 --days 60 --agents penguin,as0,greedy --seed 7
  onnxrl scml run world.json --agents penguin --picture world.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			f.drawn = fl.Changed("levels") || fl.Changed("days")
			r, err := a.scmlRun(cmd.Context(), &f, args)
			if err != nil {
				return fmt.Errorf("scml run: %w", err)
			}
			return a.printTable(r, nil)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.agents, "agents", nil, "agents that play, seated in turn: directories with an agent.json, "+agentNames())
	fl.IntVar(&f.levels, "levels", f.levels, "levels of a world that is drawn")
	fl.IntVar(&f.days, "days", f.days, "days of a world that is drawn")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the world that is drawn, and of the agents")
	fl.StringArrayVar(&f.rules, "rule", nil, ruleUsage)
	fl.DurationVar(&f.limit, "limit", f.limit, limitUsage)
	fl.StringVarP(&f.out, "out", "o", "", "write the world, day by day, to this file")
	fl.StringVar(&f.calls, "calls", "", "write the calls of our own agent to this file")
	fl.StringVar(&f.logs, "logs", "", "write the folder that the league's own program writes for a world")
	extraFlags(fl, &f.more)
	fl.StringVar(&f.picture, "picture", "", pictureUsage)
	rarely(fl, "limit", "rule")
	return cmd
}

// extraFlags are of what --logs writes where it is asked for.
func extraFlags(fl *pflag.FlagSet, x *logs.Extras) {
	fl.BoolVar(&x.Negotiations, "log-negotiations", false, "with --logs: a file for each negotiation, too, with a row for each round")
	fl.BoolVar(&x.Tracked, "track", false, "with --logs: tracker_logs, too, as scml_analyzer's tracker writes of the agents that are scored")
	fl.BoolVar(&x.Utilities, "log-ufuns", false, "with --logs: ufuns.csv, too, a row for each offer that could be made, up to 100 kB for each negotiation")
	rarely(fl, "log-negotiations", "track", "log-ufuns")
}

// checkExtras refuses extras without a folder.
func checkExtras(folder string, x *logs.Extras) error {
	if folder == "" && *x != (logs.Extras{}) {
		return errors.New("--log-negotiations, --log-ufuns and --track add to what --logs writes: give it, too")
	}
	return nil
}

func agentNames() string { return strings.Join(scml.Names(), ", ") }

func (a *app) scmlRun(ctx context.Context, f *scmlRun, args []string) (_ *scmlRan, err error) {
	if err := cmp.Or(checkPicture(f.picture), checkFolder("--out", f.out), checkFolder("--calls", f.calls), checkExtras(f.logs, &f.more)); err != nil {
		return nil, err
	}
	if f.limit < 0 {
		return nil, fmt.Errorf("--limit %v: expected 0 or more", f.limit)
	}
	roster := scml.NewRoster(a.compiler)
	defer func() { err = errors.Join(err, roster.Close()) }()
	c, names, err := f.world(args, roster)
	if err != nil {
		return nil, err
	}
	agents := make([]world.Agent, len(names))
	for i, name := range names {
		kind, err := roster.Find(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Factories[i].ID, err)
		}
		agents[i] = kind.New(opponents.FairDice(rng.New(f.seed).Split("agent", i)))
	}
	keep, err := f.record(names, agents)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, keep(err == nil)) }()
	t, err := world.Sit(c, agents)
	if err != nil {
		return nil, err
	}
	t.Limit = f.limit
	r := record.NewRecorder(t.World, int64(f.seed))
	var folder *logs.Folder
	if f.logs != "" {
		if folder, err = logs.Create(f.logs, t.World, logs.Options{World: fmt.Sprintf("world_%d", f.seed), Extras: f.more}); err != nil {
			return nil, err
		}
		defer func() {
			if folder != nil {
				err = errors.Join(err, folder.Discard())
			}
		}()
	}
	bar := progress.Start(a.err, progress.Options{Label: "world", Unit: "days", Total: int64(c.Days), Quiet: a.quiet})
	defer bar.Finish()
	var played time.Duration
	for {
		start := time.Now()
		more := t.PlayDay()
		if played += time.Since(start); !more {
			break
		}
		r.Day()
		if folder != nil {
			if err := folder.Day(); err != nil {
				return nil, err
			}
		}
		bar.Add(1)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	for i := range c.Factories {
		// Invalid offers are what some of the league's agents do.
		if f := t.Faults(i); f.Panics+f.Stalls > 0 {
			a.say("note: %s (%s): %s", c.Factories[i].ID, names[i], faultText(&f))
		}
	}
	file := r.File()
	if folder != nil {
		done := folder
		folder = nil
		if err := done.Close(); err != nil {
			return nil, err
		}
	}
	if f.out != "" {
		if err := file.Write(f.out); err != nil {
			return nil, err
		}
	}
	if f.picture != "" {
		if err := drawWorld(file, f.picture); err != nil {
			return nil, err
		}
	}
	return &scmlRan{file.Summarise(), played.Seconds()}, nil
}

// world returns what is played, and the names of the agents.
func (f *scmlRun) world(args []string, roster *scml.Roster) (*world.Config, []string, error) {
	if len(args) == 1 {
		if f.drawn {
			return nil, nil, errors.New("--levels and --days are of a world that is drawn, and a file was named")
		}
		file, err := record.Read(args[0])
		if err != nil {
			return nil, nil, err
		}
		c, err := file.Config()
		if err == nil {
			err = setRules(&c.Rules, f.rules)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", args[0], err)
		}
		names := make([]string, len(c.Factories))
		for i := range c.Factories {
			if names[i] = c.Factories[i].Type; len(f.agents) > 0 {
				names[i] = f.agents[i%len(f.agents)]
				if kind, err := roster.Find(names[i]); err == nil {
					c.Factories[i].Type = kind.Type
				}
			}
		}
		return c, names, nil
	}
	g := world.StandardLeague()
	if f.levels < 2 || f.days < 1 {
		return nil, nil, fmt.Errorf("--levels %d and --days %d: expected 2 or more, and 1 or more", f.levels, f.days)
	}
	g.Days = world.Range{Low: float64(f.days), High: float64(f.days)}
	if err := setRules(&g.Rules, f.rules); err != nil {
		return nil, nil, err
	}
	key := rng.New(f.seed)
	field := league.DrawField(key, f.levels, 0)
	names := field.Defaults
	types := make([]string, len(names))
	for i := range names {
		if len(f.agents) > 0 {
			names[i] = f.agents[i%len(f.agents)]
		}
		kind, err := roster.Find(names[i])
		if err != nil {
			return nil, nil, err
		}
		types[i] = kind.Type
	}
	c, err := g.Draw(key, field.Sizes, types)
	return c, names, err
}

// record lets our own agents write down their calls, where that is asked for. What it returns
// writes the file.
func (f *scmlRun) record(names []string, agents []world.Agent) (func(keep bool) error, error) {
	if f.calls == "" {
		return func(bool) error { return nil }, nil
	}
	own := ""
	for i, name := range names {
		if _, ok := agents[i].(*scml.Agent); !ok {
			continue
		}
		if own != "" && own != name {
			return nil, fmt.Errorf("--calls %s: %s and %s play, and the calls of one of them can be written", f.calls, own, name)
		}
		own = name
	}
	if own == "" {
		return nil, fmt.Errorf("--calls %s: it is for our own agent, %s or a directory, and none plays", f.calls, scml.Baseline.Name)
	}
	var out bytes.Buffer
	calls := official.NewCalls(&out)
	for i := range agents {
		if a, ok := agents[i].(*scml.Agent); ok {
			agents[i] = calls.Of(a)
		}
	}
	return func(keep bool) error {
		if err := calls.Err(); err != nil || !keep {
			return err
		}
		return atomicfile.WriteBytes(f.calls, out.Bytes())
	}, nil
}
