package learning

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// documents are the run documents that only serve as proofs; the others are shipped experiments.
//
//go:embed documents/*.yaml
var documents embed.FS

// Result is what one seed of a task has learnt; the JSON keys are stable.
type Result struct {
	Seed     uint64 `json:"seed"`
	EnvSteps int64  `json:"env_steps"`
	// Score is that of the policy that was best in validation, Final that of the policy at the end
	// of training; see Task.
	Score float64 `json:"score"`
	Final float64 `json:"final"`
	// Reached says that the score reaches the target.
	Reached bool    `json:"reached"`
	Seconds float64 `json:"seconds"`
	// Optimum is set for a market of which the best policy is known.
	Optimum *Share `json:"optimum,omitempty"`
}

// Options are what all runs have in common.
type Options struct {
	Engine engine.Compiler
	// Threads is how many cores a run may keep busy; 0 leaves it to the document.
	Threads int
	// Sets edit the document, as --set does.
	Sets []string
	// Each, unless nil, is called after every learner step.
	Each func(train.Progress)
	// Profile, unless nil, receives where the time goes.
	Profile *agents.Profile
}

// EnvSteps are those that a seed of the task takes.
func (t Task) EnvSteps(o Options) (int64, error) {
	if t.League {
		c, err := league.Load(cmp.Or(t.Document, t.Name), slices.Concat(t.Sets, o.Sets))
		return c.IntervalSteps * int64(c.Generations), err
	}
	cfg, err := t.Load(o)
	return cfg.Train.TotalEnvSteps, err
}

// Load reads the document of the task, with its edits and then those of the options.
func (t Task) Load(o Options) (experiment.Config, error) {
	o.Sets = slices.Concat(t.Sets, o.Sets)
	return Load(cmp.Or(t.Document, t.Name), o)
}

// Load reads a document, of this package or shipped.
func Load(name string, o Options) (experiment.Config, error) {
	text, err := documents.ReadFile("documents/" + name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		cfg, _, err := experiment.Load(name, o.Sets)
		return o.apply(cfg), err
	}
	if err != nil {
		return experiment.Config{}, err
	}
	cfg := experiment.Defaults()
	doc, err := configs.Parse(name+".yaml", text)
	if err != nil {
		return cfg, err
	}
	if err := doc.Set(o.Sets...); err != nil {
		return cfg, err
	}
	err = doc.Decode(&cfg)
	return o.apply(cfg), err
}

func (o Options) apply(cfg experiment.Config) experiment.Config {
	if o.Threads > 0 {
		cfg.Train.Threads = o.Threads
	}
	return cfg
}

// Run trains one seed of a task and scores it.
func Run(ctx context.Context, t Task, seed uint64, o Options) (Result, error) {
	start := time.Now()
	if t.League {
		r, err := leagued(ctx, t, seed, o)
		if err != nil {
			return r, fmt.Errorf("%s: seed %d: %w", t.Name, seed, err)
		}
		r.Seed, r.Seconds, r.Reached = seed, time.Since(start).Seconds(), r.Score >= t.Target
		return r, nil
	}
	cfg, err := t.Load(o)
	if err != nil {
		return Result{}, err
	}
	cfg.Seed = seed
	score := control
	if t.Optimum {
		score = solved
	}
	r, err := score(ctx, cfg, o)
	if err != nil {
		return r, fmt.Errorf("%s: seed %d: %w", t.Name, seed, err)
	}
	r.Seed, r.Seconds, r.Reached = seed, time.Since(start).Seconds(), r.Score >= t.Target
	return r, nil
}

// control trains an agent and lets it act through episodes that are kept for the end.
func control(ctx context.Context, cfg experiment.Config, o Options) (r Result, err error) {
	cfg, factory, maker, err := kinds.All().Open(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	t, done, err := trained(ctx, cfg, factory, maker, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	r.EnvSteps = done.EnvSteps
	evaluated := func() (float64, error) {
		res, err := evaluate.Episodes(ctx, factory, envs.Test, t.Agent(), agents.Greedy, episodes, cfg.Eval.MaxEpisodeSteps, rng.New(cfg.Seed).Split("test"))
		return res.Return, err
	}
	if r.Final, err = evaluated(); err != nil {
		return r, err
	}
	if err := t.UseBest(ctx); err != nil {
		return r, err
	}
	r.Score, err = evaluated()
	return r, err
}

// trained returns a trainer whose run has ended. The caller closes it.
func trained(ctx context.Context, cfg experiment.Config, f envs.Factory, m agents.Maker, o Options) (*train.Trainer, train.Result, error) {
	evaluator, err := kinds.All().Validator(f, cfg.Eval)
	if err != nil {
		return nil, train.Result{}, err
	}
	setup := agents.Setup{Engine: o.Engine, Encoders: kinds.All().Encoders, Key: rng.New(cfg.Seed), Profile: o.Profile}
	t, err := train.New(ctx, f, m, setup, cfg.Train, train.Hooks{Evaluate: evaluator, Progress: o.Each})
	if err != nil {
		return nil, train.Result{}, err
	}
	done, err := t.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, done, errors.Join(err, t.Close())
	}
	return t, done, nil
}
