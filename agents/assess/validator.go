package assess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// tradingMetrics are the names of what the validator returns.
var tradingMetrics = []string{"total_return", "cagr", "sharpe", "volatility", "max_drawdown", "turnover", "fees", "mean_reward", "mean_length"}

// Judge evaluates policies of the trading environment by back-tests.
type Judge struct{}

var _ experiment.Judge = Judge{}

// Of implements [experiment.Judge].
func (Judge) Of(f envs.Factory) bool { _, ok := f.(trading.Opened); return ok }

// Kind implements [experiment.Judge].
func (Judge) Kind() string { return "trading" }

// Metrics implements [experiment.Judge].
func (Judge) Metrics() []string { return slices.Clone(tradingMetrics) }

// Metric implements [experiment.Judge].
func (Judge) Metric() string { return "sharpe" }

// Validator implements [experiment.Judge].
//
// The metrics are those of one run through the validation split: total_return, cagr and max_drawdown
// (fractions), sharpe and volatility (annual; Sharpe is NaN for a portfolio that never changes, so
// that doing nothing wins no validation), turnover (per year, in portfolio values), fees (of the
// initial cash), and mean_reward, the sum of the episode's rewards.
func (Judge) Validator(f envs.Factory, c evaluate.Config) (train.Evaluator, error) {
	mode, key := c.Mode(), evaluate.ValidationKey()
	o := f.(trading.Opened)
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
		p, err := NewPolicy("validation", a, mode, spec, wrap.FixedSkill(f))
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

// Spec describes the environment over a split. For a split that there is not, the error lists those
// there are.
func Spec(o trading.Opened, name envs.Split) (envs.Spec, error) {
	bars, err := split(o, name)
	if err != nil {
		return envs.Spec{}, err
	}
	return specOf(o.Source(), bars)
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
