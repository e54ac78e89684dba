package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// trainSCMLFlags are the command line of train scml.
type trainSCMLFlags struct {
	sets        []string
	out, resume string
	workers     int
}

func (a *app) trainSCMLCommand() *cobra.Command {
	f := trainSCMLFlags{workers: runtime.GOMAXPROCS(0)}
	cmd := &cobra.Command{
		Use:   "scml CONFIG.yaml",
		Short: "Train an agent of SCML's Standard league",
		Long: `Plays tournaments of agents by rule, makes samples of their logs, and trains the layers of an agent on them. It then trains them round by round against a pool of rivals, beside what it was before. After each round a tournament decides whether it has become better, and an agent that is worse by too much is rolled back. At the end its best is published and evaluated in worlds that it has not seen, with intervals; onnxrl ablate says what each of its layers is worth.

The directory has scml.yaml, rounds.jsonl, evaluation.json and agent/, which onnxrl scml tournament takes as a competitor. Ctrl-C saves and stops; --resume goes on, also after a crash, with the same results.`,
		Example: `  onnxrl train scml scml_demo --out runs/scml
  onnxrl train scml scml --set rounds=20
  onnxrl train scml --resume runs/scml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("train scml", a.trainSCML(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the document, for instance --set rounds=3")
	fl.StringVarP(&f.out, "out", "o", "", "directory (default: runs/ and the name of the document with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "go on with the training in this directory")
	fl.IntVar(&f.workers, "workers", f.workers, "processors to play tournaments on; results do not depend on it")
	a.addNice(cmd)
	a.addMetrics(cmd)
	return cmd
}

func (a *app) trainSCML(ctx context.Context, args []string, f *trainSCMLFlags) (err error) {
	switch {
	case f.resume == "" && len(args) == 0:
		return errors.New("a document is needed, or --resume with the directory of one")
	case f.workers < 1:
		return fmt.Errorf("--workers %d: expected at least 1", f.workers)
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	eng, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	var bar *progress.Progress
	finish := func() {
		if bar != nil {
			bar.Finish()
		}
	}
	runs, err := a.studyRuns(ctx, eng)
	if err != nil {
		return err
	}
	c, err := curriculum.Open(ctx, path, curriculum.Options{
		Kinds: a.kinds, Run: runs, Dir: f.out, Resume: f.resume, Sets: f.sets, Workers: f.workers,
		Stage: func(name, unit string, total int64) func(int64) {
			finish()
			now := progress.Start(a.err, progress.Options{Label: name, Unit: unit, Total: total, Quiet: a.quiet})
			bar = now
			return now.Set
		},
		Rounded: func(s curriculum.Summary) {
			r := s.Rounds[len(s.Rounds)-1]
			bar.FieldText("round", r.Decision)
			bar.Field("score", r.Agent.Score)
		},
		Note: func(text string) { a.say("%s", text) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Rehearse(ctx); err != nil {
		return err
	}
	if err := c.Begin(); err != nil {
		return err
	}
	// Runs save where they stop.
	release := a.stop.hold(saveGrace)
	ended := c.Train(ctx)
	release()
	finish()
	if ended != nil && ctx.Err() == nil {
		return ended
	}
	s := c.Summarize()
	if a.json {
		err = a.printJSON(s)
	} else {
		err = a.printCurriculum(&s)
	}
	if err == nil && ended != nil {
		a.say("stopped; continue with: onnxrl train scml --resume %s", c.Dir())
		return quietError{errInterrupted}
	}
	return err
}

func (a *app) printCurriculum(s *curriculum.Summary) error {
	if len(s.Rounds) > 0 {
		if err := study.Print(a.out, s.Table); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	if s.Evaluation != nil {
		if err := study.Print(a.out, s.Ranking); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	_, err := fmt.Fprintf(a.out, "%sdirectory %s\n", s.Text(), s.Dir)
	return err
}
