package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/configs"
)

// walkFlags are the command line of walkforward.
type walkFlags struct {
	sets       []string
	out, seeds string
	parallel   int
	plan       bool
}

func (a *app) walkforwardCommand() *cobra.Command {
	var f walkFlags
	cmd := &cobra.Command{
		Use:   "walkforward STUDY.yaml",
		Short: "Judge a way of training out of sample, fold by fold",
		Long: `Trains a base experiment of the environment trading fold by fold. It trains on a stretch of the past, with the best policy chosen on the stretch after it and judged once on the stretch
after that. The test ranges together are one record out of sample, compared with the index, equal-weight buy-and-hold and simple rules. There are block-bootstrap intervals over time and a deflated Sharpe ratio that counts every trial. A study file names the base, the scheme (expanding, rolling or combinatorial, purged and embargoed), the seeds, what parameters
begin with, and how seeds act together.

--plan prints the folds and what is trained, and stops there. Ctrl-C saves and stops; the same command goes on where it was stopped and trains only what is missing. What
fails does not stop the rest. --set edits every fold's experiment, and what the study itself says of scheme, warm_start, ensemble and variants. Every run has train.threads cores, one where the base does not say: results do not depend on --parallel.`,
		Example: `  onnxrl walkforward demo_walkforward --plan
  onnxrl walkforward qtmrl_walkforward --set env.data.source.path=bars.parquet --set train.total_env_steps=50000
  onnxrl walkforward study.yaml --parallel 8 --out runs/years`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.walkforward(cmd.Context(), args[0], &f); err != nil {
				return fmt.Errorf("walkforward: %w", err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration of every fold, for instance --set train.total_env_steps=50000, or the study, --set scheme.test=1y")
	fl.StringVarP(&f.out, "out", "o", "", "folder of the study (default: runs/ and its name)")
	fl.StringVar(&f.seeds, "seeds", "", "use these seeds instead of the study's, for instance 42,43,44")
	fl.IntVar(&f.parallel, "parallel", 0, "runs that go on at once (0: as many as there are cores for)")
	fl.BoolVar(&f.plan, "plan", false, "print the folds and what there is to train, and stop")
	a.addWorkers(cmd, "the runs", "; results do not depend on it")
	a.addNice(cmd)
	a.addMetrics(cmd)
	return cmd
}

func (a *app) walkforward(ctx context.Context, path string, f *walkFlags) (err error) {
	if f.parallel < 0 {
		return errors.New("--parallel must not be negative")
	}
	doc, err := a.document(path)
	if err != nil {
		return err
	}
	c, base, sets, err := decodeWalk(doc, path, f.sets)
	if err != nil {
		return err
	}
	if f.seeds != "" {
		if c.Seeds, err = parseSeeds(f.seeds); err != nil {
			return err
		}
		if err := configs.Validate(c); err != nil {
			return fmt.Errorf("--seeds: %w", err)
		}
	}
	dir := f.out
	if dir == "" {
		dir = filepath.Join("runs", experiment.Name(path))
	}
	s, err := a.openWalk(ctx, c, base, dir, sets, f.parallel)
	if err != nil {
		return err
	}
	if f.plan && a.json {
		r, err := s.Report()
		if err != nil {
			return err
		}
		return a.printJSON(r)
	}
	// The plan comes first, and with --json beside the document.
	to := a.out
	if a.json {
		to = a.err
	}
	if !a.json || !a.quiet {
		if err := a.printWalkPlan(to, s); err != nil {
			return err
		}
	}
	if f.plan {
		return nil
	}
	r, ended := a.carryOutWalk(ctx, s)
	if r == nil {
		return ended
	}
	if a.json {
		err = a.printJSON(r)
	} else {
		err = a.printWalk(r)
	}
	if err != nil {
		return err
	}
	return ended
}

// decodeWalk decodes a study, or the section of a population's document that says how that is
// judged, and returns the edits that are left to be made: those of a study are its base's.
func decodeWalk(doc *configs.Document, path string, sets []string) (c walkforward.Config, base string, left []string, err error) {
	if _, ok := doc.Lookup("experts"); !ok {
		if left, err = walkforward.Edit(doc, sets...); err != nil {
			return c, "", nil, err
		}
		c, base, err = walkforward.Decode(doc, path)
		return c, base, left, err
	}
	if err := population.Edit(doc, sets...); err != nil {
		return c, "", nil, err
	}
	c, err = walkforward.Of(doc, path)
	return c, path, nil, err
}

// openWalk divides the data of a study and reads what its folder holds.
func (a *app) openWalk(ctx context.Context, c walkforward.Config, base, dir string, sets []string, parallel int) (*walkforward.Study, error) {
	p, err := walkforward.NewPlan(ctx, a.kinds, c, base, sets)
	if err != nil {
		return nil, err
	}
	eng, err := a.compiler(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := a.studyRuns(ctx, eng)
	if err != nil {
		return nil, err
	}
	s := &walkforward.Study{Plan: p, Trainer: study.Trainer{Kinds: a.kinds, Options: runs}}
	s.Dir, s.Parallel = dir, a.atOnce(parallel, p.Cells[0].Config)
	return s, s.Open()
}

func (a *app) printWalkPlan(to io.Writer, s *walkforward.Study) error {
	if err := s.Plan.Print(to); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "%d of %s judged, %d at a time\n\n", s.Judged(), plural(len(s.Plan.Cells), "cell"), s.Parallel)
	return err
}

// carryOutWalk trains and judges what is left of a study and writes what came of it. The error says
// why something is missing; without a report nothing could be written.
func (a *app) carryOutWalk(ctx context.Context, s *walkforward.Study) (r *walkforward.Report, err error) {
	if err := s.Rehearse(ctx); err != nil {
		return nil, err
	}
	if err := s.Begin(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	steps := func(r *walkforward.Run) int64 { return s.Plan.EnvSteps[s.Plan.Cells[r.CellIndex].Variant] }
	failed := executeStudy(ctx, a, "walkforward", &s.Study, steps, func(j *walkforward.Run) string {
		if j.Outcome == nil {
			return ""
		}
		return j.Cell + " is judged"
	})
	if r, err = s.Report(); err != nil {
		return nil, err
	}
	// Finished folds are written after a signal, too.
	if err := s.Write(context.WithoutCancel(ctx), r); err != nil {
		return nil, err
	}
	r.Dir = s.Dir
	switch {
	case ctx.Err() != nil:
		a.say("stopped with %d of %d cells judged; the same command goes on", r.Summary.Judged, r.Summary.Cells)
		return r, quietError{errInterrupted}
	case failed > 0:
		return r, fmt.Errorf("%s failed; the same command tries again", plural(failed, "run"))
	}
	return r, nil
}

func (a *app) printWalk(r *walkforward.Report) error {
	if r.Summary.Judged == 0 {
		return nil
	}
	if err := r.Summary.Print(a.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "tables and plots in %s\n", r.Dir)
	return err
}
