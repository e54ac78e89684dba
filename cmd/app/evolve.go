package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// evolveFlags are the command line of evolve.
type evolveFlags struct {
	sets                 []string
	out, resume          string
	population, parallel int
}

func (a *app) evolveCommand() *cobra.Command {
	var f evolveFlags
	cmd := &cobra.Command{
		Use:   "evolve SEARCH.yaml",
		Short: "Train a population whose members take over from better ones",
		Long: `Trains the members of a population, each with hyper-parameters of its own, generation by generation. In between a strategy ranks them by their evaluation on the validation split, and lets the worse ones go on from the weights and with the hyper-parameters of better ones.

SEARCH.yaml is a file, the name of a shipped search, or -, which reads it from standard input. Optimiser, normaliser and replay travel with the weights. A member that diverges is rolled back to its parent, and a damaged checkpoint is made again from that of the parent; both are said.`,
		Example: `  onnxrl evolve cartpole_evolve --out runs/population
  onnxrl evolve search.yaml --population 32 --set train.num_envs=4
  onnxrl evolve --resume runs/population
  onnxrl evolve tree runs/population`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("evolve", a.evolve(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the experiment of all members, for instance --set train.num_envs=4")
	fl.StringVarP(&f.out, "out", "o", "", "directory of the search (default: runs/ and the name of the document with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "go on with the search in this directory")
	fl.IntVar(&f.population, "population", 0, "members (default: population of the document)")
	fl.IntVar(&f.parallel, "parallel", 0, "members that train at once (0: as many as there are cores for, or a few more, where they end together then)")
	a.addWorkers(cmd, "members", "; results do not depend on it")
	a.addNice(cmd)
	a.addMetrics(cmd)
	cmd.AddCommand(append(a.evolveControlCommands(), a.evolveTreeCommand())...)
	return cmd
}

func (a *app) evolveTreeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tree DIR",
		Short: "Show who descends from whom, and hyper-parameters over time",
		Long:  `Prints, of the search in a directory, the best score, the mean action pairwise distance (MAPD) of the policies and the range of every hyper-parameter by generation, and the genealogy. That is a line for each stretch in which a member is the only one to descend from itself, below the one that it descends from. The search may still go on. --json prints every record.`,
		Example: `  onnxrl evolve tree runs/population
  onnxrl evolve tree runs/population --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := evolve.ReadTree(args[0])
			if err != nil {
				return fmt.Errorf("evolve tree: %w", err)
			}
			return a.printTable(t, nil)
		},
	}
}

// check refuses flags that contradict each other.
func (f *evolveFlags) check(args []string) error {
	switch {
	case f.resume == "" && len(args) == 0:
		return errors.New("the document of a search is needed, or --resume with the directory of one")
	case f.resume != "" && (len(args) > 0 || f.out != "" || f.population > 0 || len(f.sets) > 0):
		return errors.New("--resume goes on in its directory as it was begun; give no file, and leave --out, --population and --set out")
	case f.population < 0 || f.parallel < 0:
		return errors.New("--population and --parallel must not be negative")
	}
	return nil
}

func (a *app) evolve(ctx context.Context, args []string, f *evolveFlags) (err error) {
	if err := f.check(args); err != nil {
		return err
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
	var s *evolve.Search
	s, err = evolve.Open(ctx, path, evolve.Options{
		Kinds: a.kinds, Run: runs, Dir: f.out, Resume: f.resume, Sets: f.sets, Population: f.population, Parallel: f.parallel,
		Steps: func(n int64) { bar.Add(n) },
		Recorded: func([]evolve.Record) {
			sum := s.Summarize()
			bar.FieldText("generation", fmt.Sprintf("%d/%d", sum.Generations, sum.Of))
			bar.Field("best "+sum.Metric, float64(sum.Members[0].Score))
		},
		Note: func(text string) { fmt.Fprintf(bar.Lines(a.err), "%s: %s\n", a.name, text) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Rehearse(ctx, nil, ""); err != nil {
		return err
	}
	finished, err := s.Begin()
	if err != nil {
		return err
	}
	if text := s.Together(); text != "" {
		a.say("%s", text)
	}
	c := s.Config()
	each := int64(c.Population) * c.IntervalSteps
	bar = progress.Start(a.err, progress.Options{Label: "evolve", Unit: "env steps", Total: each * int64(c.Generations), Initial: each * int64(finished), Quiet: a.quiet})
	// Members save where they stop.
	release := a.stop.hold(saveGrace)
	ended := s.Run(ctx)
	release()
	bar.Finish()
	if ended != nil && ctx.Err() == nil {
		return ended
	}
	sum := s.Summarize()
	if a.json {
		err = a.printJSON(sum)
	} else if sum.Generations > 0 {
		if err = study.Print(a.out, sum.Table); err == nil {
			_, err = fmt.Fprintf(a.out, "\n%sdirectory %s\n", sum.Text(), sum.Dir)
		}
	}
	if err == nil && ended != nil {
		a.say("stopped; continue with: onnxrl evolve --resume %s", s.Dir())
		return quietError{errInterrupted}
	}
	return err
}
