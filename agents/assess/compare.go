package assess

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Compare implements [experiment.Judge]: buy-and-hold is to be beaten.
func (Judge) Compare(ctx context.Context, f envs.Factory, agent agents.Agent, c evaluate.Config) (_ *experiment.Comparison, err error) {
	env := f.(trading.Opened)
	spec, err := Spec(env, envs.Valid)
	if err != nil {
		return nil, err
	}
	policy, err := NewPolicy("agent", agent, c.Mode(), spec, wrap.FixedSkill(env))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, policy.Close()) }()
	// Only the two rows are needed; other baselines and sensitivity analyses are for reports.
	c.Lag, c.CostSweepBP, c.Baselines, c.Bootstrap.Samples = nil, nil, evaluate.Baselines{}, 0
	a, err := Run(ctx, Request{Env: env, Split: envs.Valid, Config: c, Agents: []backtest.Policy{policy}, Key: rng.New(0).Split("validation")})
	if err != nil {
		return nil, err
	}
	rows, err := a.Rows()
	if err != nil {
		return nil, err
	}
	dates := a.Benchmark.Dates
	out := &experiment.Comparison{Period: evaluate.Period{First: dates[0], Last: dates[len(dates)-1]}, Bars: len(dates), LookAhead: a.LookAhead}
	for _, row := range rows {
		m := map[string]float64{}
		for _, v := range row.Metrics {
			m[v.Key] = float64(v.Value)
		}
		switch row.Role {
		case RoleAgent:
			out.Metrics = m
		case RoleBaseline:
			out.Reference, out.ReferenceName = m, row.Name
		}
	}
	if out.Metrics == nil || out.Reference == nil {
		return nil, fmt.Errorf("evaluation has no row of the agent or of buy-and-hold among %d", len(rows))
	}
	return out, nil
}
