package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/runtime/rng"
)

// Trainer is one run of one seed. It is not safe for concurrent use; several trainers may share a factory and an engine.
type Trainer struct {
	cfg   Config
	hooks Hooks
	// key is what actions are drawn from, worlds what environments are.
	key     rng.Key
	worlds  rng.Key
	env     vector.Env
	agent   agents.Agent
	actor   agents.Actor
	learner agents.Learner
	each    func(*vector.Batch) error

	s        state
	episodes window
	// validation is the newest evaluation, best the one with the highest score, and kept the parameters it was of.
	validation, best *Evaluation
	kept             snapshot

	// saved is the env step of the newest checkpoint, -1 before the first.
	saved int64
	// warned says that the log has been told that the environments cannot be saved.
	warned bool
	last   agents.Metrics
	values map[string]float64
	// began and first are where this process started to count, for time/fps and Result.Taken.
	began time.Time
	first int64
}

// New makes the environments of the train split and the agent. Of the setup, Engine, Encoders, Init, Log and Key are the caller's; the others are filled in. The factory remains the caller's and must outlive the trainer, which is to be closed after use.
func New(ctx context.Context, f envs.Factory, m agents.Maker, s agents.Setup, cfg Config, hooks Hooks) (_ *Trainer, err error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if hooks.Log == nil {
		hooks.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Threads == 0 {
		cfg.Threads = runtime.GOMAXPROCS(0)
	}
	t := &Trainer{cfg: cfg, hooks: hooks, key: s.Key.Split("act"), worlds: s.Key.Split("envs"), episodes: newWindow(), kept: snapshot{}, saved: -1, values: map[string]float64{}}
	t.s.Evaluated = -1
	t.each = t.count
	defer func() {
		if err != nil {
			err = fmt.Errorf("train: %w", errors.Join(err, t.Close()))
		}
	}()
	if err := t.openEnvs(f); err != nil {
		return nil, err
	}
	s.Spec, s.Envs, s.Threads, s.Key = t.env.Spec(), cfg.NumEnvs, cfg.Threads, s.Key.Split("agent")
	if s.Log == nil {
		s.Log = hooks.Log
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if t.agent, err = m.New(ctx, s); err != nil {
		return nil, err
	}
	t.learner = t.agent.Learner()
	t.actor, err = t.agent.NewActor(agents.Explore, cfg.NumEnvs)
	return t, err
}

func (t *Trainer) openEnvs(f envs.Factory) error {
	// With fewer threads than processors, other runs may be using the rest.
	workers := 0
	if t.cfg.Threads < runtime.GOMAXPROCS(0) {
		workers = 1
	}
	v, err := vector.Open(f, envs.Train, t.cfg.NumEnvs, vector.Options{Workers: workers, Log: t.hooks.Log})
	if err != nil {
		return err
	}
	t.env = v
	return t.env.Reset(t.worlds)
}

// Config returns the configuration in force: what was left open in the given one is decided.
func (t *Trainer) Config() Config { return t.cfg }

// Agent returns the agent, which ends with the trainer.
func (t *Trainer) Agent() agents.Agent { return t.agent }

// EnvSteps returns the env steps taken since the beginning of the run, over all environments.
func (t *Trainer) EnvSteps() int64 { return t.s.Rounds * int64(t.cfg.NumEnvs) }

// Finished reports whether there is nothing left to do: all env steps are taken, or the run has stopped early.
func (t *Trainer) Finished() bool { return t.s.Done || t.EnvSteps() >= t.cfg.TotalEnvSteps }

// UseBest copies the best parameters into the policy, for use after the run: the trainer cannot be continued from there. Without an evaluation the last ones remain.
func (t *Trainer) UseBest(ctx context.Context) error {
	if t.best == nil {
		return nil
	}
	_, params := t.learner.Policy()
	t.kept.restore(params)
	return t.actor.Sync(ctx)
}

// Close frees the agent and the environments.
func (t *Trainer) Close() error {
	var errs []error
	if t.actor != nil {
		errs = append(errs, t.actor.Close())
	}
	if t.agent != nil {
		errs = append(errs, t.agent.Close())
	}
	if t.env != nil {
		errs = append(errs, t.env.Close())
	}
	t.actor, t.agent, t.env = nil, nil, nil
	return errors.Join(errs...)
}
