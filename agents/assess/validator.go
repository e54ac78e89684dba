package assess

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The names of what a Validator returns, in trading and elsewhere.
var (
	tradingMetrics = []string{"total_return", "cagr", "sharpe", "volatility", "max_drawdown", "turnover", "fees", "mean_reward", "mean_length"}
	episodeMetrics = []string{"mean_reward", "std_reward", "mean_length"}
)

// Metrics lists the names of the metrics that a Validator of the factory returns.
func Metrics(f envs.Factory) []string {
	if _, ok := f.(trading.Opened); ok {
		return slices.Clone(tradingMetrics)
	}
	return slices.Clone(episodeMetrics)
}

// Validator returns a function that evaluates an agent's present policy on the validation split, as
// the configuration of evaluation says. All of its calls face the same episodes and, where actions
// are drawn, draw from the same stream, so that two policies differ by what they do and not by
// their luck.
//
// In the trading environment the metrics are those of one run through the split: total_return, cagr
// and max_drawdown (fractions), sharpe and volatility (annual; Sharpe is NaN for a portfolio that
// never changes, so that doing nothing wins no validation), turnover (per year, in portfolio
// values), fees (of the initial cash), and mean_reward, the sum of the episode's rewards. Elsewhere
// mean_reward is the mean return of episodes, std_reward their standard deviation, mean_length
// their mean length, and mean_cost that of the sum of a cost (mean_cost/NAME where there are
// several); success_rate is there too where the environments say which episodes were successes.
func Validator(f envs.Factory, c evaluate.Config) (func(ctx context.Context, a agents.Agent, envSteps int64) (map[string]float64, error), error) {
	mode, key := mode(c), rng.New(0).Split("validation")
	o, ok := f.(trading.Opened)
	if !ok {
		return func(ctx context.Context, a agents.Agent, _ int64) (map[string]float64, error) {
			r, err := evaluate.Episodes(ctx, f, envs.Valid, a, mode, c.Episodes, c.MaxEpisodeSteps, key)
			if err != nil {
				return nil, fmt.Errorf("validation: %w", err)
			}
			m := map[string]float64{"mean_reward": r.Return, "std_reward": r.ReturnStd, "mean_length": r.Length}
			if !math.IsNaN(r.Success) {
				m["success_rate"] = r.Success
			}
			for name, x := range r.Costs {
				m[vector.CostTag("mean_cost", name, len(r.Costs))] = x
			}
			return m, nil
		}, nil
	}
	bars, err := split(o, envs.Valid)
	if err != nil {
		return nil, err
	}
	source, err := charged(o.Source(), c)
	if err != nil {
		return nil, err
	}
	c, _ = annual(c, source.Market())
	spec, err := specOf(source, bars)
	if err != nil {
		return nil, fmt.Errorf("validation: %w", err)
	}
	if spec.MaxSteps < 2 {
		return nil, fmt.Errorf("validation: the split has %d step, expected at least 2", spec.MaxSteps)
	}
	return func(ctx context.Context, a agents.Agent, _ int64) (_ map[string]float64, err error) {
		p, err := evaluate.NewPolicy("validation", a, mode, spec, wrap.FixedSkill(f))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		r, err := backtest.Run(ctx, source, bars, p, key)
		if err != nil {
			return nil, err
		}
		m, err := performance.Measure(input(r, c, nil))
		if err != nil {
			return nil, fmt.Errorf("validation: %w", err)
		}
		out := map[string]float64{"mean_length": float64(r.Steps())}
		for _, x := range r.Rewards {
			out["mean_reward"] += x
		}
		for _, name := range tradingMetrics {
			if _, ok := out[name]; !ok {
				out[name] = m.Get(name)
			}
		}
		return out, nil
	}, nil
}

func mode(c evaluate.Config) agents.Mode {
	if c.Deterministic {
		return agents.Greedy
	}
	return agents.Sample
}

// split returns the bars of a split, or an error that lists those there are.
func split(o trading.Opened, name envs.Split) (trading.Range, error) {
	all := o.Data().Splits
	bars, ok := all[name]
	if ok {
		return bars, nil
	}
	var names []string
	for s := range all {
		names = append(names, string(s))
	}
	slices.Sort(names)
	return bars, fmt.Errorf("the data have no split %q, or it leaves no step; there are %s", name, strings.Join(names, ", "))
}

// charged returns the source with the fees that the configuration asks for.
func charged(s *trading.Source, c evaluate.Config) (*trading.Source, error) {
	if c.UseFee {
		return s, nil
	}
	return s.WithFee(0)
}

// Spec describes a factory's environments over a split. For a split that there is not, the error
// lists those there are.
func Spec(f envs.Factory, name envs.Split) (envs.Spec, error) {
	if o, ok := f.(trading.Opened); ok {
		bars, err := split(o, name)
		if err != nil {
			return envs.Spec{}, err
		}
		return specOf(o.Source(), bars)
	}
	e, err := f.New(name, 0)
	if err != nil {
		return envs.Spec{}, err
	}
	return e.Spec(), e.Close()
}

// specOf returns the description of environments over a range.
func specOf(s *trading.Source, bars trading.Range) (envs.Spec, error) {
	e, err := s.Env(bars)
	if err != nil {
		return envs.Spec{}, err
	}
	return e.Spec(), e.Close()
}

// input is a record in the form that performance measures. The benchmark may be nil.
func input(r *backtest.Record, c evaluate.Config, benchmark *backtest.Record) performance.Input {
	in := performance.Input{
		Dates: r.Dates, Value: r.Value, Cash: make([]float64, len(r.Cash)), Turnover: r.Turnover, Fees: r.Fees, PeriodsPerYear: c.PeriodsPerYear, RiskFree: c.RiskFree,
	}
	for t, cash := range r.Cash {
		in.Cash[t] = cash / r.Value[t]
	}
	if benchmark != nil {
		in.Benchmark = benchmark.Value
	}
	return in
}
