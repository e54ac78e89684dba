package learning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Share compares an agent with the optimum on the test split; the JSON keys are stable.
type Share struct {
	// Bars is the number of decisions on the test split.
	Bars int `json:"bars"`
	// Agent, Optimum and Hold are mean rewards per bar: of the greedy agent, of the best policy
	// that there is, and of buying at every bar.
	Agent   float64 `json:"agent"`
	Optimum float64 `json:"optimum"`
	Hold    float64 `json:"hold"`
}

// solved trains the agent of a document whose market has a known optimum. Scores are shares of it.
func solved(ctx context.Context, cfg experiment.Config, o Options) (r Result, err error) {
	// Errors point at the document as it was written.
	written := cfg.Env.Section
	cfg, factory, maker, err := kinds.All().Open(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	opened, ok := factory.(trading.Opened)
	if !ok {
		return r, errors.New("the environment is not trading")
	}
	best, err := optimum(written, opened)
	if err != nil {
		return r, err
	}
	t, done, err := trained(ctx, cfg, factory, maker, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	r.EnvSteps = done.EnvSteps
	last, err := share(ctx, cfg.Seed, t, opened, best)
	if err != nil {
		return r, err
	}
	if err := t.UseBest(ctx); err != nil {
		return r, err
	}
	if r.Optimum, err = share(ctx, cfg.Seed, t, opened, best); err != nil {
		return r, err
	}
	r.Final, r.Score = last.Agent/last.Optimum, r.Optimum.Agent/r.Optimum.Optimum
	return r, nil
}

// share evaluates the trainer's present policy.
func share(ctx context.Context, seed uint64, t *train.Trainer, opened trading.Opened, best backtest.Policy) (_ *Share, err error) {
	env, err := opened.New(envs.Test, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	agent, err := assess.NewPolicy("agent", t.Agent(), agents.Greedy, env.Spec(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	s := &Share{}
	for _, p := range []struct {
		policy backtest.Policy
		mean   *float64
	}{{agent, &s.Agent}, {best, &s.Optimum}, {always{}, &s.Hold}} {
		rec, err := backtest.Run(ctx, opened.Source(), opened.Data().Splits[envs.Test], p.policy, rng.New(seed))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.policy.Name(), err)
		}
		s.Bars = len(rec.Rewards)
		for _, v := range rec.Rewards {
			*p.mean += v / float64(s.Bars)
		}
	}
	return s, nil
}

// informed is the best policy. It sees what the agent sees.
type informed struct {
	*synthetic.Optimum
	states []float64 // at each bar
	close  []float64 // [T,N]
	shares []float64 // [N] of the portfolio
	orders []int     // [N]
}

// optimum makes the best policy of a document's market.
func optimum(env configs.Section, f trading.Opened) (backtest.Policy, error) {
	var params trading.Params
	params.Config = trading.Defaults()
	if err := env.Decode(&params); err != nil {
		return nil, err
	}
	var data map[string]configs.Section
	if err := params.Data.Decode(&data); err != nil {
		return nil, err
	}
	var named configs.Kinded
	if err := named.DecodeConfig(data["synthetic"]); err != nil {
		return nil, err
	}
	if named.Kind == "" {
		return nil, params.Data.Errorf("", "the market is not synthetic; its optimum is not known")
	}
	made, err := synthetic.New(named)
	if err != nil {
		return nil, err
	}
	if m, ok := made.(synthetic.Liquidation); ok {
		return scheduled(m, params.Data, f)
	}
	known, ok := made.(synthetic.Known)
	c, market := f.Source().Config(), f.Data().Market
	n := len(market.Assets)
	if !ok || n != len(known.Chain().Moves[0]) || c.Execution.Fill != trading.NextOpen || c.Execution.Lot != 0 || len(c.Costs.Taxes) > 0 || c.Costs.Minimum > 0 || c.Costs.UsesBars() || c.Account.Settlement > 0 {
		var names []string
		for _, k := range synthetic.Kinds() {
			if _, ok := k.Defaults().(synthetic.Known); ok {
				names = append(names, k.Name)
			}
		}
		return nil, params.Data.Errorf("synthetic", "the optimum is known for one asset, or a pair, of %s, filled at the next open without lots, and without other costs than a fee", strings.Join(names, ", "))
	}
	best, err := synthetic.Solve(known, synthetic.Terms{FeeRate: c.FeeRate, BuyPct: c.BuyPct, SellPct: c.SellPct, Log: c.Reward == trading.Log})
	if err != nil {
		return nil, err
	}
	states, err := known.States(seen(market))
	if err != nil {
		return nil, params.Data.Errorf("features", "%v", err)
	}
	return &informed{best, states, market.Close, make([]float64, n), make([]int, n)}, nil
}

// scheduled makes the best policy of a liquidation.
func scheduled(m synthetic.Liquidation, data configs.Section, f trading.Opened) (backtest.Policy, error) {
	c, market := f.Source().Config(), f.Data().Market
	slippage := c.Costs.Slippage
	if c.Actions != trading.Weights || c.Execution.Fill != trading.NextOpen || slippage.Impact != trading.Linear || slippage.BP > 0 || c.Execution.Lot != 0 || len(c.Costs.Taxes) > 0 || c.Costs.Minimum > 0 || c.Costs.Participation > 0 || c.Account.Settlement > 0 {
		return nil, data.Errorf("synthetic", "the optimum is known for actions: weights, filled at the next open without lots, and without other costs than a linear impact and a fee")
	}
	aversion := 0.0
	if c.Reward == trading.Log {
		aversion = 0.5
	}
	shares, err := m.Shares(aversion, slippage.Coefficient*c.InitialCash/m.Turnover, seen(market))
	if err != nil {
		return nil, data.Errorf("features", "%v", err)
	}
	return schedule(shares), nil
}

// schedule is a share of the portfolio at each bar.
type schedule []float64

func (schedule) Name() string { return "optimum" }

func (schedule) Begin(*trading.Env, rng.Key) error { return nil }

func (s schedule) Decide(context.Context, *trading.Env, *envs.TimeStep, []int64) error {
	return errors.New("a schedule has weights and no orders")
}

func (s schedule) Weigh(_ context.Context, e *trading.Env, _ *envs.TimeStep, weights []float64) error {
	weights[0], weights[1] = s[e.Bar()], 1-s[e.Bar()]
	return nil
}

// seen is what an agent sees of the first asset.
func seen(m *trading.Market) synthetic.Seen {
	n := len(m.Assets)
	return synthetic.Seen{Open: column(m.Open, n, 0), Close: column(m.Close, n, 0), Volume: column(m.Volume, n, 0), Column: func(name string) []float64 {
		i := slices.Index(m.Features, name)
		if i < 0 {
			return nil
		}
		return column(m.X, n*len(m.Features), i)
	}}
}

// column is one of a table whose rows have that width; nil of a table that is not there.
func column[T float32 | float64](table []T, width, i int) []float64 {
	if table == nil {
		return nil
	}
	values := make([]float64, len(table)/width)
	for t := range values {
		values[t] = float64(table[t*width+i])
	}
	return values
}

func (*informed) Name() string { return "optimum" }

func (*informed) Begin(*trading.Env, rng.Key) error { return nil }

func (p *informed) Decide(_ context.Context, e *trading.Env, _ *envs.TimeStep, orders []int64) error {
	row := p.close[e.Bar()*len(orders):]
	for i, shares := range e.Positions() {
		p.shares[i] = shares * row[i] / e.Value()
	}
	p.Optimum.Decide(p.orders, p.shares, p.states[e.Bar()])
	for i, order := range p.orders {
		orders[i] = int64(order)
	}
	return nil
}

// always buys.
type always struct{}

func (always) Name() string { return "buy" }

func (always) Begin(*trading.Env, rng.Key) error { return nil }

func (always) Decide(_ context.Context, _ *trading.Env, _ *envs.TimeStep, orders []int64) error {
	for i := range orders {
		orders[i] = trading.Buy
	}
	return nil
}
