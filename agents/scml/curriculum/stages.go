package curriculum

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Rehearse finds out what refuses a layer's experiment, and that its policies can be published,
// before anything is played or trained: each layer acts on top of those before it, which are
// untrained. A curriculum that is resumed was rehearsed before. Pretrainings are rehearsed when their
// samples are there.
func (c *Curriculum) Rehearse(ctx context.Context) (err error) {
	if c.o.Resume != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "onnxrl-scml-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	layers, files := "", map[string]string{}
	for _, l := range c.c.on() {
		cfg, err := c.among(l, c.c.Pool.Rivals, layers)
		if err != nil {
			return err
		}
		// Its policy is kept whatever the document says.
		cfg.Publish.When = experiment.AtEnd
		layers = filepath.Join(dir, l.name)
		if err := os.Mkdir(layers, 0o755); err != nil {
			return err
		}
		j := run.Job{Name: c.ledger.Name + "-" + l.name, EnvSteps: l.RoundSteps}
		if j.Config, err = cfg.YAML(); err != nil {
			return err
		}
		err = run.Rehearse(ctx, c.o.Kinds, j, c.o.Run, layers)
		var short *run.IntervalError
		switch {
		case errors.As(err, &short):
			return fmt.Errorf("%s.round_steps: %w", l.name, short)
		case err != nil:
			return fmt.Errorf("%s.experiment: %w", l.name, err)
		}
		files[l.name] = filepath.Join(layers, publish.PolicyFile)
		if err := c.assemble(layers, files); err != nil {
			return err
		}
	}
	return nil
}

// among is the experiment of a layer among rivals. layers is the directory of the agent as it is,
// empty for none.
func (c *Curriculum) among(l layer, rivals []string, layers string) (cfg experiment.Config, err error) {
	doc, err := c.c.document(l)
	if err == nil {
		err = doc.SetValue("env.rivals", rivals)
	}
	// A layer alone stands on the baseline.
	if err == nil && layers != "" && len(c.c.on()) > 1 {
		err = doc.SetValue("env.layers", layers)
	}
	if err != nil {
		return cfg, err
	}
	return c.o.Kinds.Decode(doc)
}

// pretrain plays the demonstrations, makes samples of them, and trains the layers that learn from
// samples, as far as that is left.
func (c *Curriculum) pretrain(ctx context.Context) error {
	if !c.c.Demonstrations.On() {
		return nil
	}
	if err := c.collect(ctx); err != nil {
		return err
	}
	t := study.Trainer{Kinds: c.o.Kinds, Options: c.o.Run}
	var layers []layer
	var documents []experiment.Config
	for _, l := range c.c.on() {
		if l.Pretrain.IsZero() {
			continue
		}
		doc, err := c.c.pretraining(l, filepath.Join(c.ledger.Dir, samplesDir))
		if err != nil {
			return err
		}
		cfg, err := c.o.Kinds.Decode(doc)
		if err != nil {
			return err
		}
		layers, documents = append(layers, l), append(documents, cfg)
	}
	for i, l := range layers {
		if run.Holds(c.pretrained(l)) {
			continue
		}
		// Only its parameters are used.
		cfg := documents[i]
		cfg.Publish.When = experiment.Never
		if err := t.Rehearse(ctx, cfg); err != nil {
			return fmt.Errorf("%s.pretrain: %w", l.name, err)
		}
	}
	for i, l := range layers {
		done := c.o.Stage("pretrain "+l.name, "env steps", documents[i].Train.TotalEnvSteps)
		if _, err := t.Train(ctx, c.pretrained(l), documents[i], done); err != nil {
			return fmt.Errorf("%s.pretrain: %w", l.name, err)
		}
	}
	return nil
}

// pretrained is the run directory of a layer's pretraining.
func (c *Curriculum) pretrained(l layer) string {
	return filepath.Join(c.ledger.Dir, pretrainDir, l.name)
}

// collect plays the demonstrations and makes samples of them, unless there are samples.
func (c *Curriculum) collect(ctx context.Context) error {
	to := filepath.Join(c.ledger.Dir, samplesDir)
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	d := &c.c.Demonstrations
	s := d.spec(c.seed("demonstrations", 0), d.Competitors)
	s.Find = c.roster.Find
	folder := filepath.Join(c.ledger.Dir, demonstrationsDir)
	t, err := logs.OpenTournament(folder, s, logs.Extras{})
	if err != nil {
		return err
	}
	s.Follow = t.Follow
	if _, err := c.play(ctx, "demonstrations", filepath.Join(folder, tournamentFile), s); err != nil {
		return fmt.Errorf("demonstrations: %w", err)
	}
	if err := t.Finish(); err != nil {
		return fmt.Errorf("demonstrations: %w", err)
	}
	worlds, err := samples.Find(ctx, folder)
	if err != nil {
		return err
	}
	o := samples.Options{Goal: c.shape.Goal, Horizon: c.shape.Horizon, Types: d.Types}
	if len(o.Types) == 0 {
		for _, name := range d.Competitors {
			k, err := s.Kind(name)
			if err != nil {
				return err
			}
			o.Types = append(o.Types, k.Type)
		}
	}
	done := c.o.Stage("samples", "worlds", int64(len(worlds)))
	o.Progress = func(n int) { done(int64(n)) }
	if _, err := samples.Collect(ctx, worlds, to, o); err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	return nil
}

// seed is that of a tournament.
func (c *Curriculum) seed(stage string, round int) uint64 {
	return c.key.Split(stage, round).Stream().Uint64() >> 32
}

// play plays a tournament that is kept in a file.
func (c *Curriculum) play(ctx context.Context, stage, path string, s league.Spec) (*league.Report, error) {
	done := c.o.Stage(stage, "worlds", int64(s.Worlds()))
	return s.Report(ctx, path, max(1, c.o.Workers), func(n int) { done(int64(n)) })
}

// train trains the interval of a layer in a round, and returns what came of it, with the file of
// its policy. layers is the directory of the agent as it is, empty for none.
func (c *Curriculum) train(ctx context.Context, l layer, round int, rivals []string, layers string) (res run.Result, policy string, err error) {
	cfg, err := c.among(l, rivals, layers)
	if err != nil {
		return res, "", err
	}
	dir := filepath.Join(c.roundDir(round), l.name)
	// Another seed in each round: one that goes on from the best again is not to repeat what was
	// rolled back.
	cfg.Seed = rng.New(cfg.Seed).Split(l.name, round).Stream().Uint64() >> 32
	j := run.Job{Name: c.ledger.Name + "-" + l.name, Group: c.ledger.Dir, Dir: dir, EnvSteps: l.RoundSteps, NoPublish: true}
	if j.Config, err = cfg.YAML(); err != nil {
		return res, "", err
	}
	o := c.o.Run
	var taken, learnt int64
	if before := c.trained(l, c.before(round)); before >= 0 {
		from := filepath.Join(c.roundDir(before), l.name)
		var last run.Result
		if err := run.ReadJSON(filepath.Join(from, run.IntervalFile), &last); err != nil {
			return res, "", err
		}
		j.Checkpoint, taken = filepath.Join(from, last.Checkpoint), last.EnvSteps
		learnt = last.LearnerSteps
		// Learner steps are whole: what was taken too much is not taken again.
		j.EnvSteps -= taken % l.RoundSteps
	} else if !l.Pretrain.IsZero() && !run.Holds(dir) {
		j.Init = run.Init{Ref: c.pretrained(l), Partial: true, Rename: renames}
	}
	done := c.o.Stage(fmt.Sprintf("round %d %s", round+1, l.name), "env steps", j.EnvSteps)
	o.Hooks.Progress = func(_ *run.Run, p train.Progress) { done(min(p.EnvSteps-taken, j.EnvSteps)) }
	if res, err = j.Train(ctx, c.o.Kinds, o); err != nil {
		return res, "", err
	}
	if why := trainedNothing(&res, learnt); why != "" {
		return res, "", fmt.Errorf("%s: this round has trained nothing: %s", l.name, why)
	}
	policy, err = c.keep(ctx, dir)
	return res, policy, err
}

// trainedNothing says why an interval has not changed its layer, which had taken so many learner
// steps before; empty where it has.
func trainedNothing(res *run.Result, before int64) string {
	rate, known := res.Train["train/learning_rate"]
	switch steps := res.LearnerSteps - before; {
	case steps <= 0 && res.Stopped != "" && res.Stopped != train.Paused:
		return fmt.Sprintf("its run had ended by itself (%s) before; leave out what ends it early", res.Stopped)
	case steps <= 0:
		return "no learner step was taken; round_steps is too small"
	case steps == 1 && known && rate == 0:
		return "its only learner step had a learning rate of 0, since it was the last of the schedule; give round_steps several learner steps"
	}
	return ""
}
