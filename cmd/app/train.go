package app

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/spf13/cobra"
)

// trainFlags are the command line of train.
type trainFlags struct {
	sets        []string
	out, resume string
	seeds       string
	parallel    int
	init        string
	partial     bool
	noPublish   bool
	initMap     []string
	store       storeFlag
	zoo         zooFlags
}

func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train {CONFIG.yaml | - | --zoo FILE --env-id ID}",
		Short: "Train an agent in an environment",
		Long: `Trains the agent that a configuration describes. CONFIG.yaml is a file, the name of a shipped experiment, or -, which reads standard input. The run directory has the effective configuration, digests of the data, metrics, checkpoints, and the policy that was best in validation.

When the run ends, its best policy passes the parity check against the network in training and is published in the run's store. --no-publish leaves that to onnxrl models publish.

Ctrl-C saves and stops. --resume goes on bit for bit, also after a crash, which costs at most the time since the last checkpoint.`,
		Example: `  onnxrl train qtmrl --set train.total_env_steps=200000 --out runs/first
  onnxrl train qtmrl --seeds 42,43,44 --parallel 2
  onnxrl train --resume runs/first
  onnxrl train --resume runs/first/checkpoints/ckpt-000100000 --out runs/second --set agent.ent_coef=0.01`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.train(cmd, args, &f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration, for instance --set agent.ent_coef=0.01")
	fl.StringVarP(&f.out, "out", "o", "", "run directory (default: runs/ and the name of the configuration with the first free number)")
	fl.StringVar(&f.resume, "resume", "", "continue the run, or all unfinished runs, in this directory, or go on from this checkpoint of a run (RUN/checkpoints/NAME)")
	fl.StringVar(&f.seeds, "seeds", "", "one run for each of these seeds, for instance 42,43,44")
	fl.IntVar(&f.parallel, "parallel", 1, "runs that go on at once")
	fl.StringVar(&f.init, "init", "", "begin with the parameters of this run, checkpoint, artefact or ONNX file, by name and shape, and of a run or checkpoint with its statistics of normalisation")
	fl.BoolVar(&f.partial, "partial", false, "with --init, leave parameters that it does not have as they are drawn")
	fl.BoolVar(&f.noPublish, "no-publish", false, "publish nothing: --set publish.when=never")
	fl.StringArrayVar(&f.initMap, "init-map", nil, "with --init, names that begin with FROM there begin with TO here: FROM=TO")
	f.zoo.add(cmd, "zoo")
	f.store.add(cmd)
	fl.Lookup("store").Usage = "artefact store that --init refers to; given here, published policies are copied into it, with the run directory's name as an alias (default for --init " + storeDefault + ")"
	a.addWorkers(cmd, "several seeds", "")
	a.addNice(cmd)
	a.addMetrics(cmd)
	rarely(fl, "init-map", "partial", "algo")
	cmd.AddCommand(a.trainPopulationCommand(), a.trainSCMLCommand())
	return cmd
}

func (a *app) train(cmd *cobra.Command, args []string, f *trainFlags) (err error) {
	if err := f.check(args); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	path := ""
	if len(args) > 0 {
		path = args[0]
	}
	a.begin("training %s: usually seconds for classic control, minutes or more for a market; the bar says how long", cmp.Or(path, f.resume, f.zoo.env))
	p, err := a.openPlan(cmd.Context(), path, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	sum, err := p.train(cmd.Context())
	if err != nil {
		return err
	}
	if err := a.printTrain(sum); err != nil {
		return err
	}
	if len(sum.Unfinished) > 0 {
		return a.stopped(p.Dir(), "")
	}
	return nil
}

// stopped says how to go on with a run after a signal, and what to do then; a run that was stopped
// before it began has no directory.
func (a *app) stopped(dir, then string) error {
	if isFile(filepath.Join(dir, run.ConfigFile)) {
		a.say("stopped; continue with: onnxrl train --resume %s%s", dir, then)
	} else {
		a.say("stopped before the training began; nothing was written")
	}
	return quietError{errInterrupted}
}

// check refuses flags that contradict each other.
func (f *trainFlags) check(args []string) error {
	switch {
	case f.resume == "" && f.zoo.file == "" && len(args) == 0:
		return errors.New("a configuration is needed, or --resume with a run directory")
	case f.zoo.file != "" && (len(args) > 0 || f.resume != ""):
		return errors.New("--zoo has the configuration; give no file, and no --resume")
	case f.zoo.file == "" && (f.zoo.env != "" || f.zoo.algo != ""):
		return errors.New("--env-id and --algo belong to --zoo")
	case f.resume != "" && len(args) > 0:
		return errors.New("--resume takes the configuration of its run directory; give no file")
	case f.resume != "" && f.seeds != "":
		return errors.New("--resume continues the seeds of its run directory; leave --seeds out")
	case f.resume != "" && f.init != "":
		return errors.New("--init is where a run begins; it cannot be given to one that is resumed")
	case f.init == "" && (f.partial || len(f.initMap) > 0):
		return errors.New("--partial and --init-map belong to --init")
	case f.parallel < 1:
		return fmt.Errorf("--parallel %d: expected at least 1", f.parallel)
	}
	return nil
}

// parseSeeds reads 42,43,44.
func parseSeeds(s string) ([]uint64, error) {
	var list []uint64
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseUint(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--seeds %q: expected numbers with commas between them, as 42,43,44", s)
		}
		if slices.Contains(list, v) {
			return nil, fmt.Errorf("--seeds %q: %d is given twice", s, v)
		}
		list = append(list, v)
	}
	return list, nil
}

// printTrain shows what came of the runs.
func (a *app) printTrain(s run.Summary) error {
	if a.json {
		return a.printJSON(s)
	}
	return printSummary(a.out, s)
}
