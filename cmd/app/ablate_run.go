package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// studyRunner carries out the runs of a study as onnxrl train does.
type studyRunner struct {
	app    *app
	engine engine.Compiler
	told   sync.Once // what is to be said of the data
}

// plan opens an experiment for a directory. The caller closes it.
func (r *studyRunner) plan(ctx context.Context, dir string, c experiment.Config, h run.Hooks) (*run.Plan, error) {
	o := run.Options{Engine: r.engine, NoPublish: true, Program: "onnxrl " + version(), Digest: r.app.digest, Hooks: h}
	if run.Holds(dir) {
		o.Resume = dir
	} else {
		o.Dir = dir
	}
	p, err := run.New(ctx, r.app.kinds, "", c, o)
	if err == nil {
		r.told.Do(func() { r.app.tellData(r.app.err, p.Factory()) })
	}
	return p, err
}

// Train implements ablate.Runner.
func (r *studyRunner) Train(ctx context.Context, dir string, c experiment.Config, progress func(int64)) (steps int64, err error) {
	p, err := r.plan(ctx, dir, c, run.Hooks{Log: r.app.logTo(r.app.err), Progress: func(_ *run.Run, p train.Progress) { progress(p.EnvSteps) }})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	from, err := reached(dir)
	if err != nil {
		return 0, err
	}
	progress(from)
	defer r.app.stop.hold(saveGrace)()
	s, err := p.Train(ctx)
	if err != nil {
		return 0, err
	}
	if len(s.Unfinished) > 0 {
		err = ctx.Err()
	}
	for _, one := range s.Runs {
		steps = one.EnvSteps
	}
	return steps, err
}

// reached returns the env step of the newest checkpoint in a run's directory, 0 where there is
// none.
func reached(dir string) (int64, error) {
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].Step, nil
}

// Judge implements ablate.Runner: the policy is that of the newest checkpoint, the end of training.
// The best one on the validation range would be judged there with the luck that made it the best.
func (r *studyRunner) Judge(ctx context.Context, dir string, c experiment.Config) (o *ablate.Outcome, err error) {
	p, err := r.plan(ctx, dir, c, run.Hooks{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	tr, step, err := p.Restore(ctx, c.Seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	if o, ok := p.Factory().(trading.Opened); ok {
		return judgeTrading(ctx, o, tr.Agent(), c.Eval)
	}
	validate, err := assess.Validator(p.Factory(), c.Eval)
	if err != nil {
		return nil, err
	}
	m, err := validate(ctx, tr.Agent(), step)
	if err != nil {
		return nil, err
	}
	o = &ablate.Outcome{Metrics: map[string]ablate.Number{}}
	for k, v := range m {
		o.Metrics[k] = ablate.Number(v)
	}
	return o, nil
}

// judgeTrading judges a policy next to buy-and-hold.
func judgeTrading(ctx context.Context, env trading.Opened, agent agents.Agent, c evaluate.Config) (_ *ablate.Outcome, err error) {
	mode := agents.Explore
	if c.Deterministic {
		mode = agents.Greedy
	}
	e, err := env.New(envs.Valid, 0)
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	policy, err := evaluate.NewPolicy("agent", agent, mode, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, policy.Close()) }()
	// Only the two rows are needed; other baselines and doubts are for reports.
	c.Lag, c.CostSweepBP, c.Baselines, c.Bootstrap.Samples = nil, nil, evaluate.Baselines{}, 0
	a, err := assess.Run(ctx, assess.Request{Env: env, Split: envs.Valid, Config: c, Agents: []backtest.Policy{policy}, Key: rng.New(0).Split("validation")})
	if err != nil {
		return nil, err
	}
	rows, err := a.Rows()
	if err != nil {
		return nil, err
	}
	dates := a.Benchmark.Dates
	o := &ablate.Outcome{From: dates[0].Format(time.DateOnly), To: dates[len(dates)-1].Format(time.DateOnly), Bars: len(dates), LookAhead: a.LookAhead}
	for _, row := range rows {
		m := map[string]ablate.Number{}
		for _, v := range row.Metrics {
			m[v.Key] = ablate.Number(v.Value)
		}
		switch row.Role {
		case assess.RoleAgent:
			o.Metrics = m
		case assess.RoleBaseline:
			o.Reference, o.ReferenceName = m, row.Name
		}
	}
	if o.Metrics == nil || o.Reference == nil {
		return nil, fmt.Errorf("evaluation has no row of the agent or of buy-and-hold among %d", len(rows))
	}
	return o, nil
}
