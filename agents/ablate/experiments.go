package ablate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Experiments is the [Runner] that trains each run of a study as package run trains a document, and
// publishes nothing.
type Experiments struct{ study.Trainer }

// Evaluate implements [Runner]: the policy is that of the newest checkpoint, the end of training.
// The best one on the validation range would be evaluated there with the luck that made it the
// best.
func (e Experiments) Evaluate(ctx context.Context, dir string, c experiment.Config) (o *Outcome, err error) {
	p, err := e.Plan(ctx, dir, c, run.Hooks{})
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
		return evaluateTrading(ctx, o, tr.Agent(), c.Eval)
	}
	validate, err := e.Kinds.Validator(p.Factory(), c.Eval)
	if err != nil {
		return nil, err
	}
	m, err := validate(ctx, tr.Agent(), step)
	if err != nil {
		return nil, err
	}
	o = &Outcome{Metrics: map[string]performance.Number{}}
	for k, v := range m {
		o.Metrics[k] = performance.Number(v)
	}
	return o, nil
}

// evaluateTrading evaluates a policy next to buy-and-hold.
func evaluateTrading(ctx context.Context, env trading.Opened, agent agents.Agent, c evaluate.Config) (_ *Outcome, err error) {
	mode := agents.Sample
	if c.Deterministic {
		mode = agents.Greedy
	}
	spec, err := assess.Spec(env, envs.Valid)
	if err != nil {
		return nil, err
	}
	policy, err := assess.NewPolicy("agent", agent, mode, spec, wrap.FixedSkill(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, policy.Close()) }()
	// Only the two rows are needed; other baselines and sensitivity analyses are for reports.
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
	o := &Outcome{From: dates[0].Format(time.DateOnly), To: dates[len(dates)-1].Format(time.DateOnly), Bars: len(dates), LookAhead: a.LookAhead}
	for _, row := range rows {
		m := map[string]performance.Number{}
		for _, v := range row.Metrics {
			m[v.Key] = performance.Number(v.Value)
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
