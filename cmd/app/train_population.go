package app

import (
	"context"
	"errors"
	"fmt"

	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/progress"
	"github.com/spf13/cobra"
)

// populationFlags are the command line of train population.
type populationFlags struct {
	sets        []string
	out, resume string
	parallel    int
}

func (a *app) trainPopulationCommand() *cobra.Command {
	var f populationFlags
	cmd := &cobra.Command{
		Use:   "population CONFIG.yaml",
		Short: "Train experts that evolve, and a router that chooses among them",
		Long: `Trains a population of experts generation by generation, as onnxrl evolve does, and after every so many generations a router. Its decisions are which expert acts, or how much of each, for a number of steps. The router is frozen while experts train, and experts while the router does.

Before training, a few env steps and updates of an untrained expert and router are measured. How long training takes by them is said on standard error, and with --json as estimate.`,
		Example: `  onnxrl train population population_demo --out runs/population
  onnxrl train population population_demo --set experts.population=3
  onnxrl train population --resume runs/population`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("train population", a.trainPopulation(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the document, for instance --set experts.population=3")
	fl.StringVarP(&f.out, "out", "o", "", "directory of the population (default: runs/ and the name of the document with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "go on with the population in this directory")
	fl.IntVar(&f.parallel, "parallel", 0, "experts that train at once (0: as many as there are cores for, or a few more, where they end together then)")
	a.addWorkers(cmd, "experts that share no replay", "; results do not depend on it")
	a.addNice(cmd)
	a.addMetrics(cmd)
	return cmd
}

func (a *app) trainPopulation(ctx context.Context, args []string, f *populationFlags) (err error) {
	switch {
	case f.resume == "" && len(args) == 0:
		return errors.New("the document of a population is needed, or --resume with the directory of one")
	case f.parallel < 0:
		return errors.New("--parallel must not be negative")
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
	p, err := population.Open(ctx, path, population.Options{
		Kinds: a.kinds, Run: runs, Dir: f.out, Resume: f.resume, Sets: f.sets, Parallel: f.parallel, Measure: true,
		Steps: func(n int64) { bar.Add(n) },
		Turned: func(s population.Summary) {
			bar.FieldText("generation", fmt.Sprintf("%d/%d", s.Experts.Generations, s.Experts.Of))
			bar.Field("best "+s.Experts.Metric, float64(s.Experts.Members[0].Score))
			if k := len(s.Router); k > 0 {
				bar.Field("router", float64(s.Router[k-1].Score))
			}
		},
		Pretraining: func(f fit.Progress) {
			bar.FieldText("pretraining", fmt.Sprintf("%d/%d", f.Step, f.TotalSteps))
			bar.Field("loss", f.Loss)
		},
		Note: func(text string) { fmt.Fprintf(bar.Lines(a.err), "%s: %s\n", a.name, text) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Rehearse(ctx); err != nil {
		return err
	}
	taken, err := p.Begin()
	if err != nil {
		return err
	}
	if text := p.Together(); text != "" {
		a.say("%s", text)
	}
	memory, err := p.Memory()
	if err != nil {
		return err
	}
	if len(memory) > 0 {
		a.say("memory at most, beside the program and its networks: %s", memoryText(memory))
	}
	if e := p.Estimate(); e != nil {
		a.say("%s", e.Text())
	}
	bar = progress.Start(a.err, progress.Options{Label: "population", Unit: "env steps", Total: p.Config().Steps(), Initial: taken, Quiet: a.quiet})
	// Members save where they stop.
	release := a.stop.hold(saveGrace)
	ended := p.Train(ctx)
	release()
	bar.Finish()
	if ended != nil && ctx.Err() == nil {
		return ended
	}
	r := populationReport{Summary: p.Summarize(), Estimate: p.Estimate()}
	if ended == nil {
		if r.Summary, err = p.Publish(ctx); err != nil {
			return err
		}
		if !a.json {
			if err := a.printPopulation(r.Summary); err != nil {
				return err
			}
		}
		if !p.Config().WalkForward.IsZero() {
			r.WalkForward, ended = a.walkPopulation(ctx, p, f.parallel)
		}
	} else if !a.json && r.Experts.Generations > 0 {
		if err := a.printPopulation(r.Summary); err != nil {
			return err
		}
	}
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else if r.WalkForward != nil {
		if err := a.printWalk(r.WalkForward); err != nil {
			return err
		}
	}
	if ended != nil && ctx.Err() != nil {
		a.say("stopped; continue with: onnxrl train population --resume %s", p.Dir())
		return quietError{errInterrupted}
	}
	return ended
}

// memoryText lists parts of memory, and what they are together.
func memoryText(parts []evolve.Memory) string {
	var text []string
	sum := 0
	for _, m := range parts {
		sum += m.Bytes
		text = append(text, fmt.Sprintf("%s %d MiB", m.What, (m.Bytes+1<<20-1)>>20))
	}
	return fmt.Sprintf("%s; together %d MiB", strings.Join(text, ", "), (sum+1<<20-1)>>20)
}

// populationReport is what onnxrl train population prints with --json; the keys are stable.
type populationReport struct {
	population.Summary
	// Estimate is how long training was going to take, as was said before it; a population that is
	// resumed has none.
	Estimate *population.Estimate `json:"estimate,omitempty"`
	// WalkForward is what came of the section walkforward, where the document has one.
	WalkForward *walkforward.Report `json:"walkforward,omitempty"`
}

func (a *app) printPopulation(sum population.Summary) error {
	if err := study.Print(a.out, sum.Table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "\n%sdirectory %s\n", sum.Text(), sum.Dir)
	return err
}

// walkPopulation judges a population that is trained out of sample, as the section walkforward of
// its document says, in the folder walkforward of its directory.
func (a *app) walkPopulation(ctx context.Context, p *population.Population, parallel int) (*walkforward.Report, error) {
	path := filepath.Join(p.Dir(), population.ConfigFile)
	doc, err := configs.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := walkforward.Of(doc, path)
	if err != nil {
		return nil, err
	}
	s, err := a.openWalk(ctx, c, path, filepath.Join(p.Dir(), "walkforward"), nil, parallel)
	if err != nil {
		return nil, fmt.Errorf("walkforward: %w", err)
	}
	if !a.json && !a.quiet {
		if err := a.printWalkPlan(a.out, s); err != nil {
			return nil, err
		}
	}
	return a.carryOutWalk(ctx, s)
}
