package app

import (
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
		Long: `Trains the agent that a configuration describes (- reads it from standard input), or that a shipped experiment of that name does, and keeps everything in a run directory: the effective
configuration, digests of the data, metrics (JSON lines and TensorBoard), checkpoints, and the policy that was best on the validation split.

The best policy becomes a version of the run's artefact store when the run has ended and its exported form has been proved equal on publish.observations
recorded observations; until then best.onnx is a candidate. With publish.when=improvements that is done at every improvement. With
publish.when=never, or --no-publish, nothing is exported, proved or published; onnxrl models publish does it later.

A run ends after train.total_env_steps, or sooner: with the rollout after train.stop.max_episodes, once an evaluation reaches train.stop.reward_threshold, or after train.validation.patience
evaluations that were no improvement. wrappers puts time limits, frame stacks, rescaled or clipped actions and normalisation between environment and agent.

Ctrl-C saves and stops. --resume continues a run bit for bit, also after a crash, which costs at most the time since the last checkpoint. When it is resumed,
train.total_env_steps may be raised and train.log_interval_steps, train.checkpoint and publish may change; every other change is refused. Schedules
without a length of their own, and DQN's exploration, are then relative to the new length.

--resume RUN/checkpoints/NAME goes on from that checkpoint instead of the newest, bit for bit as the run did. With --out it does so in a new run directory, and the
run stays as it is; hyper-parameters may change there by --set, an entropy coefficient that was 0 included, and lineage.json says which have. Without, the run itself goes back: its later checkpoints and metrics are removed, and made again; a run that is finished is not touched.

With --zoo FILE --env-id ID the configuration is that of RL-Zoo (rl-baselines3-zoo) for an environment, out of a file such as its hyperparams/ppo.yml.
QTMRL's default.yaml is taken as it is. What becomes of each key is said; onnxrl config convert writes the configuration.

With --seeds, or seeds in the configuration, each seed has a complete run directory of its own in seed-N, and the summary shows mean and standard deviation.
train.threads are those of one run; 0 divides the processors among the runs that --parallel lets go on at once.`,
		Example: `  onnxrl train qtmrl --set train.total_env_steps=200000 --out runs/first
  onnxrl train qtmrl --seeds 42,43,44 --parallel 2
  onnxrl train config.yaml --init runs/encoder.onnx --init-map =encoder. --partial
  onnxrl train qtmrl --store runs/artifacts --init qtmrl:first
  onnxrl train --zoo ppo.yml --env-id CartPole-v1
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
