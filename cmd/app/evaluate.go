package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// evaluateFlags are the command line of evaluate.
type evaluateFlags struct {
	split, config, out, among string
	sets                      []string
	// episodes, unless 0, is eval.episodes.
	episodes int
	// bare prints the table and writes no report.
	bare    bool
	offline offlineFlags
}

func (a *app) evaluateCommand() *cobra.Command {
	var f evaluateFlags
	cmd := &cobra.Command{
		Use:   "evaluate RUN|CHECKPOINT|MODEL.onnx|ARTEFACT",
		Short: "Judge a policy against baselines, and write the report",
		Long: `Lets the best policy of a training run, or an exported model, trade a split of the data once, next to the baselines, with its decisions executed late, and at other fees. Writes a report: report.html, plots, and tables as CSV and Parquet. The first line says whether the policy beats equal-weight buy-and-hold.

RUN is the directory of onnxrl train, or that of a router with its experts (onnxrl train population), CHECKPOINT one of RUN/checkpoints. A directory that holds seed-* directories has all of them evaluated, and the report is about the seed with the best validation. The policy is the published
one (best.onnx), and where there is none, or eval.deterministic is false, the best one in the newest checkpoint. A model, or an artefact such as runs/artifacts//qtmrl:best, needs the
configuration of its environment: --config, or the config.yaml beside it.

In other environments than trading the policy acts through --episodes whole episodes. The table has the mean, the standard deviation and the range of their returns and lengths.
With --offline nothing acts: what the policies would earn is estimated from a data set that another one has recorded.`,
		Example: `  onnxrl evaluate runs/qtmrl-1
  onnxrl evaluate runs/cartpole_ppo-1 --episodes 100
  onnxrl evaluate runs/qtmrl-1 --split valid --set eval.baselines.index.symbol=SPY
  onnxrl evaluate best.onnx --config qtmrl --out report
  onnxrl evaluate runs/qtmrl-1 --among runs
  onnxrl evaluate runs/cartpole_dqn-1 --offline data/cartpole --estimators wpdis,fqe`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.offline.check(cmd.Flags()); err != nil {
				return err
			}
			if f.offline.dataset != "" {
				return a.evaluateByData(cmd, args[0], &f)
			}
			if cmd.Flags().Changed("episodes") {
				f.sets = append(f.sets, fmt.Sprintf("eval.episodes=%d", f.episodes))
			}
			return a.evaluate(cmd.Context(), args[0], &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.split, "split", string(envs.Test), "train, valid or test")
	fl.StringVarP(&f.config, "config", "c", "", "configuration of a bare model's environment: a file, or the name of a shipped experiment")
	fl.StringVarP(&f.out, "out", "o", "", "folder of the report (default: report/SPLIT in a run directory, unless that cannot be written to; a bare model's is only written when this is given)")
	fl.IntVar(&f.episodes, "episodes", 0, "whole episodes to act through in other environments than trading (default: eval.episodes)")
	fl.StringVar(&f.among, "among", "", "directory whose runs on the same data count as trials, at any depth (default: RUN)")
	fl.BoolVar(&f.bare, "no-report", false, "print the table only")
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration, for instance --set eval.lag=[1,2]")
	rarely(fl, "among")
	f.offline.add(fl)
	return cmd
}

func (a *app) evaluate(ctx context.Context, target string, f *evaluateFlags) (err error) {
	if f.bare && f.out != "" {
		return errors.New("evaluate: --out names the folder of a report, and --no-report writes none")
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("evaluate %s: %w", target, err)
		}
	}()
	a.begin("evaluating %s: usually seconds, minutes with fitted Q evaluation", target)
	p, err := a.openEvaluation(ctx, target, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, ok := p.Factory().(trading.Opened); !ok {
		return a.evaluateEpisodes(ctx, p, f)
	}
	if f.episodes != 0 {
		return errors.New("--episodes: the trading environment is evaluated by one run through the split")
	}
	e, err := a.evaluateTrading(ctx, p, f)
	if e == nil {
		return err
	}
	return errors.Join(a.printEvaluation(e, p.Config().Eval), err)
}

// openEvaluation opens the policies of a target and their environment.
func (a *app) openEvaluation(ctx context.Context, target string, f *evaluateFlags) (*run.Evaluation, error) {
	if f.config != "" && run.Holds(target) {
		return nil, errors.New("a run directory has its own configuration; edit it with --set and leave --config out")
	}
	if err := refuseSearch(target); err != nil {
		return nil, err
	}
	p, err := run.NewEvaluation(a.kinds, target, run.EvaluationOptions{
		Split: envs.Split(f.split), Config: f.config, Sets: f.sets, Among: f.among, Store: (&storeFlag{}).path(), Program: a.program(), Digest: a.digest, Log: a.log,
	})
	if err != nil {
		return nil, advise(err, "evaluate", "--config", "")
	}
	c, err := a.foreign(ctx, a.engine)
	if err == nil {
		err = p.Open(ctx, c)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// evaluateTrading assesses the policies and writes the report. Where only that fails, what was
// found out comes with the error.
func (a *app) evaluateTrading(ctx context.Context, p *run.Evaluation, f *evaluateFlags) (*evaluation, error) {
	out, unwritten, err := f.folder(p.Dir())
	if err != nil {
		return nil, err
	}
	r, err := assess.Evaluate(ctx, p)
	if err != nil {
		return nil, err
	}
	e, err := a.report(ctx, p, r, out)
	if e != nil {
		e.Unwritten = unwritten
	}
	return e, err
}

// folder returns where the report goes, empty where none is written; run is the run directory, if
// there is one. A folder that was asked for must be writable. The usual one may lie in a run
// directory of somebody else or on a disk that cannot be written to: then the evaluation goes
// without, and unwritten says why.
func (f *evaluateFlags) folder(run string) (out, unwritten string, err error) {
	switch {
	case f.bare:
		return "", "", nil
	case f.out != "":
		if err := writable(f.out); err != nil {
			return "", "", fmt.Errorf("--out: %w", err)
		}
		return f.out, "", nil
	case run == "":
		return "", "", nil
	}
	out = filepath.Join(run, "report", f.split)
	if err := writable(out); err != nil {
		return "", fmt.Sprintf("no report is written: %v; --out FOLDER writes it elsewhere", err), nil
	}
	return out, "", nil
}

// writable returns an error unless files can be made in a folder, or where there is none yet in the
// nearest one above it. Nothing stays behind.
func writable(dir string) error {
	if objects.IsCopy(dir) {
		return errors.New("what a reference names is only read")
	}
	at := filepath.Clean(dir)
	for !isDir(at) && at != filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil {
			return fmt.Errorf("%s is no folder", at)
		}
		at = filepath.Dir(at)
	}
	probe, err := os.CreateTemp(at, ".onnxrl-*")
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("the folder %s cannot be written to: %w", at, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// isDir reports whether a path is a directory.
func isDir(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.IsDir()
}

// isFile reports whether a path is a file.
func isFile(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular()
}
