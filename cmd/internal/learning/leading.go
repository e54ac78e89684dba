package learning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"onnxrl/agents"
	"onnxrl/agents/evaluate"
	"onnxrl/agents/train"
	"onnxrl/cmd/internal/assess"
	"onnxrl/cmd/internal/experiment"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/envs/market/synthetic"
	"onnxrl/envs/market/trading"
	"onnxrl/envs/market/trading/backtest"
	"onnxrl/models/encoder/kinds"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/rng"
)

// Result compares an agent with the optimum on the test split; the JSON keys are stable.
type Result struct {
	Seed     uint64 `json:"seed"`
	EnvSteps int64  `json:"env_steps"`
	// Bars is the number of decisions on the test split.
	Bars int `json:"bars"`
	// Agent, Optimum and Hold are mean rewards per bar: of the greedy agent, of the best policy that there is, and of buying at every bar.
	Agent   float64 `json:"agent"`
	Optimum float64 `json:"optimum"`
	Hold    float64 `json:"hold"`
	// Share is Agent/Optimum.
	Share   float64 `json:"share"`
	Seconds float64 `json:"seconds"`
}

// Leading trains the agent of a document whose market is a LeadingIndicator with one asset and judges the policy that was best on the validation split. Each, unless nil, is called after every learner step.
func Leading(ctx context.Context, cfg experiment.Config, c engine.Compiler, each func(train.Progress)) (r Result, err error) {
	start := time.Now()
	// Errors point at the document as it was written.
	written := cfg.Env.Section
	cfg, factory, maker, err := experiment.Open(ctx, cfg)
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
	judge, err := assess.Validator(factory, cfg.Eval)
	if err != nil {
		return r, err
	}
	t, err := train.New(ctx, factory, maker, agents.Setup{Engine: c, Encoders: kinds.All(), Key: rng.New(cfg.Seed)}, cfg.Train, train.Hooks{Evaluate: judge, Progress: each})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	done, err := t.Run(ctx)
	if err != nil {
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if err := t.UseBest(ctx); err != nil {
		return r, err
	}
	env, err := factory.New(envs.Test, 0)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	agent, err := evaluate.NewPolicy("agent", t.Agent(), agents.Greedy, env.Spec())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	r.Seed, r.EnvSteps = cfg.Seed, done.EnvSteps
	for _, p := range []struct {
		policy backtest.Policy
		mean   *float64
	}{{agent, &r.Agent}, {best, &r.Optimum}, {always{}, &r.Hold}} {
		rec, err := backtest.Run(ctx, opened.Source(), opened.Data().Splits[envs.Test], p.policy, rng.New(cfg.Seed))
		if err != nil {
			return r, fmt.Errorf("%s: %w", p.policy.Name(), err)
		}
		r.Bars = len(rec.Rewards)
		for _, v := range rec.Rewards {
			*p.mean += v / float64(r.Bars)
		}
	}
	r.Share, r.Seconds = r.Agent/r.Optimum, time.Since(start).Seconds()
	return r, nil
}

// informed is the best policy. It sees the signal as the agent does, among the features of the present bar.
type informed struct {
	*synthetic.Optimum
	market *trading.Market
	column int
}

// optimum makes the best policy of a document's market.
func optimum(env configs.Section, f trading.Opened) (*informed, error) {
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
	market, ok := made.(synthetic.LeadingIndicator)
	c := f.Source().Config()
	if !ok || market.Assets != 1 || c.Execution.Fill != trading.NextOpen || c.Execution.Lot != 0 {
		return nil, params.Data.Errorf("synthetic", "the optimum is known for one asset of a leading_indicator, filled at the next open without lots")
	}
	best, err := market.Optimum(synthetic.Terms{FeeRate: c.FeeRate, BuyPct: c.BuyPct, SellPct: c.SellPct, Log: c.Reward == trading.Log})
	if err != nil {
		return nil, err
	}
	p := &informed{Optimum: best, market: f.Data().Market}
	if p.column = slices.Index(p.market.Features, synthetic.Signal); p.column < 0 {
		return nil, params.Data.Errorf("features", "%s is not among the features", synthetic.Signal)
	}
	return p, nil
}

func (*informed) Name() string { return "optimum" }

func (*informed) Begin(*trading.Env, rng.Key) error { return nil }

func (p *informed) Decide(_ context.Context, e *trading.Env, _ *envs.TimeStep, orders []int64) error {
	signal := p.market.X[e.Bar()*len(p.market.Features)+p.column]
	orders[0] = int64(p.Optimum.Decide(1-e.Cash()/e.Value(), float64(signal)))
	return nil
}

// always buys.
type always struct{}

func (always) Name() string { return "buy" }

func (always) Begin(*trading.Env, rng.Key) error { return nil }

func (always) Decide(_ context.Context, _ *trading.Env, _ *envs.TimeStep, orders []int64) error {
	orders[0] = trading.Buy
	return nil
}
