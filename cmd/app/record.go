package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/run/recorded"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// recordFlags are the command line of record.
type recordFlags struct {
	split, config, out           string
	sets                         []string
	episodes, transitions        int64
	envs                         int
	stochastic                   bool
	noise                        float64
	randomActions, randomEpisode float64
	seed                         uint64
}

// recordReport is what record has written; the JSON keys are stable.
type recordReport struct {
	Dir         string            `json:"dir"`
	Environment string            `json:"environment"`
	Behaviour   offline.Behaviour `json:"behaviour"`
	Episodes    int64             `json:"episodes"`
	Transitions int64             `json:"transitions"`
	Files       int               `json:"files"`
}

func (a *app) recordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record RUN|CHECKPOINT|MODEL.onnx|ARTEFACT",
		Short: "Record episodes of a policy as a data set to learn from",
		Long: `Lets the best policy of a training run, that of one of its checkpoints (RUN/checkpoints/…), an exported model or an artefact act in its environment, and writes what happens as a data set. That is a folder of Parquet files and dataset.json, with the spaces, the discount factor and where the policy comes from. It has the log-probability of every action where it can be known. Its documents are those of onnxrl evaluate.

--noise adds normal noise to actions in a box, in units in which the bounds are ±1. --random-actions replaces actions by uniformly drawn ones, and --random-episodes whole episodes of them: 0.5 is a mix of a random policy and this one. In worlds of several agents, --episodes and --envs count worlds, and each agent has episodes of its own. Exported models take the best action; --stochastic draws from the policy's distribution, and takes it from a checkpoint of the run.

The records depend on the seed alone. Ctrl-C stops. The same command goes on after the last whole file (of 64 episodes) in FOLDER.partial. The data set has the same bits as if there had been no interruption.`,
		Example: `  onnxrl record runs/pendulum_sac-1 --episodes 200 -o data/expert
  onnxrl record runs/pendulum_sac-1 --transitions 100000 --random-episodes 0.5 -o data/mixed
  onnxrl record runs/artifacts//pendulum_sac:best --noise 0.3 -o data/noisy`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("episodes") && f.transitions > 0 {
				return errors.New("record: --episodes and --transitions are two ways to say how much; give one")
			}
			r, err := a.record(cmd.Context(), args[0], &f)
			if err != nil {
				if cmd.Context().Err() != nil && errors.Is(err, cmd.Context().Err()) {
					a.say("stopped; the same command goes on in %s.partial", f.out)
					return quietError{errInterrupted}
				}
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			_, err = fmt.Fprintf(a.out, "%s: %d episodes, %d transitions of %s in %d files\nonnxrl dataset inspect %s looks at them\n", r.Dir, r.Episodes, r.Transitions, r.Environment, r.Files, r.Dir)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "out", "o", "", "folder of the data set, which must not exist")
	fl.Int64Var(&f.episodes, "episodes", 100, "whole episodes to record")
	fl.Int64Var(&f.transitions, "transitions", 0, "record whole episodes until there are so many transitions, instead of --episodes")
	fl.BoolVar(&f.stochastic, "stochastic", false, "draw actions from the policy's distribution: --set eval.deterministic=false")
	fl.Float64Var(&f.noise, "noise", 0, "standard deviation of noise on actions in a box, whose bounds count as ±1")
	fl.Float64Var(&f.randomActions, "random-actions", 0, "probability of a uniformly drawn action")
	fl.Float64Var(&f.randomEpisode, "random-episodes", 0, "share of episodes of uniformly drawn actions")
	fl.Uint64Var(&f.seed, "seed", 0, "where all randomness descends from")
	fl.IntVar(&f.envs, "envs", 8, "environments that step together; so many episodes are in memory")
	fl.StringVar(&f.split, "split", string(envs.Train), "train, valid or test")
	fl.StringVarP(&f.config, "config", "c", "", "configuration of a bare model's environment: a file, or the name of a shipped experiment")
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration")
	// The name was given just above.
	_ = cmd.MarkFlagRequired("out")
	a.addNice(cmd)
	return cmd
}

// check refuses values that mean nothing.
func (f *recordFlags) check() error {
	switch {
	case f.envs < 1:
		return fmt.Errorf("--envs %d: expected at least 1", f.envs)
	case f.transitions < 0 || f.transitions == 0 && f.episodes < 1:
		return errors.New("--episodes, --transitions: expected at least 1")
	case !(f.noise >= 0) || f.noise > 1e6:
		return fmt.Errorf("--noise %g: expected a standard deviation that is not negative", f.noise)
	case !(f.randomActions >= 0 && f.randomActions <= 1):
		return fmt.Errorf("--random-actions %g: expected a probability", f.randomActions)
	case !(f.randomEpisode >= 0 && f.randomEpisode <= 1):
		return fmt.Errorf("--random-episodes %g: expected a share from 0 to 1", f.randomEpisode)
	}
	return nil
}

func (a *app) record(ctx context.Context, target string, f *recordFlags) (_ *recordReport, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("record %s: %w", target, err)
		}
	}()
	if err := f.check(); err != nil {
		return nil, err
	}
	sets := f.sets
	if f.stochastic {
		sets = append(sets, "eval.deterministic=false")
	}
	e, err := run.NewEvaluation(a.kinds, target, run.EvaluationOptions{
		Split: envs.Split(f.split), Config: f.config, Sets: sets, Store: (&storeFlag{}).path(), Program: a.program(), Digest: a.digest, Log: a.log,
	})
	if err != nil {
		return nil, advise(err, "record", "--config", "")
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	c, err := a.compiler(ctx)
	if err == nil {
		err = e.Open(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	r, m, err := recorded.Recording(e)
	if err != nil {
		return nil, err
	}
	b := &r.Behaviour
	b.Noise, b.RandomActions, b.RandomEpisodes, b.Seed = f.noise, f.randomActions, f.randomEpisode, f.seed
	if f.randomEpisode == 1 || f.randomActions == 1 {
		*b = offline.Behaviour{Algorithm: "random", RandomEpisodes: 1, Seed: f.seed}
		r.NewActor, m.Parents = nil, nil
	}
	m.Behaviours = []offline.Behaviour{*b}
	r.Envs, r.Episodes, r.Transitions = f.envs, f.episodes, f.transitions
	w, err := offline.Create(f.out, m)
	if err != nil {
		return nil, err
	}
	unit, total := "episodes", f.episodes
	if f.transitions > 0 {
		unit, total = "transitions", f.transitions
	}
	bar := progress.Start(a.err, progress.Options{Label: "record", Unit: unit, Total: total, Quiet: a.quiet})
	r.Progress = func(episodes, transitions int64) {
		if f.transitions > 0 {
			episodes = transitions
		}
		bar.Set(episodes)
	}
	err = offline.Record(ctx, r, w)
	bar.Finish()
	if err == nil {
		err = w.Finish()
	}
	if err != nil {
		return nil, err
	}
	m = w.Manifest()
	return &recordReport{f.out, m.Environment.Name, *b, m.Episodes, m.Transitions, len(m.Files)}, nil
}
