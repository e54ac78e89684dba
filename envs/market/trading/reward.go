package trading

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// The rewards. r is P(t+1)/P(t) − 1.
const (
	// Simple is r.
	Simple = "simple"
	// Log is log(1 + r).
	Log = "log"
	// Excess is log(1 + r) − log(1 + b), where b is the return of RewardParams.Benchmark.
	Excess = "excess"
	// DifferentialSharpe is the derivative of an exponential moving Sharpe ratio by its decay
	// (Moody and Saffell 2001): (B·ΔA − A·ΔB/2) / (B − A²)^(3/2), with the moving means A of r and
	// B of r² before the step, ΔA = r − A and ΔB = r² − B. B − A² is at least varianceFloor.
	DifferentialSharpe = "differential_sharpe"
	// Drawdown is log(1 + r) less Penalty times what the drawdown from the highest value of the
	// episode has grown by.
	Drawdown = "drawdown"
	// MeanCVaR is r − Penalty·max(−r − v, 0)/(1 − Level): the mean of the last term is what CVaR at
	// Level is above v, the value at risk (Rockafellar and Uryasev 2000). v is the running estimate
	// before the step by stochastic approximation (Robbins and Monro 1951), which moves by
	// Eta·m·Level upwards when the loss −r is above it, and by Eta·m·(1 − Level) downwards
	// otherwise, where m is a moving mean of |r|.
	MeanCVaR = "mean_cvar"
)

// varianceFloor is the square of one basis point: before there is a variance, a reward that is
// divided by it would be anything.
const varianceFloor = 1e-8

// RewardParams are the parameters of rewards. Those that a reward does not have must be left out.
type RewardParams struct {
	// Benchmark, of excess, is an asset of the data; empty is the mean of all that could be traded
	// at the bar of the decision.
	Benchmark string `yaml:"benchmark,omitzero"`
	// Eta is the decay of moving means, of differential_sharpe and mean_cvar, in (0, 1); 0 is 0.01.
	Eta float64 `yaml:"eta,omitzero"`
	// Penalty, of drawdown and mean_cvar, is positive; 0 is 1.
	Penalty float64 `yaml:"penalty,omitzero"`
	// Level, of mean_cvar, is the share of steps whose loss is below the value at risk, in (0, 1);
	// 0 is 0.95.
	Level float64 `yaml:"level,omitzero"`
	// Turnover, of any reward, is taken off for each part of the portfolio's value that is bought
	// and sold in a step, beside what trading costs.
	Turnover float64 `yaml:"turnover,omitzero"`
}

func (r *RewardParams) check(p *configs.Problems, kind string) {
	p.OneOf("reward", kind, Simple, Log, Excess, DifferentialSharpe, Drawdown, MeanCVaR)
	of := func(key string, given bool, kinds ...string) {
		p.Check(!given || slices.Contains(kinds, kind), "reward_params."+key, "is for %v, and the reward is %s", kinds, kind)
	}
	of("benchmark", r.Benchmark != "", Excess)
	of("eta", r.Eta != 0, DifferentialSharpe, MeanCVaR)
	of("penalty", r.Penalty != 0, Drawdown, MeanCVaR)
	of("level", r.Level != 0, MeanCVaR)
	p.Check(r.Eta >= 0 && r.Eta < 1, "reward_params.eta", "%g, expected a number in (0, 1), or 0", r.Eta)
	p.Check(r.Penalty >= 0 && !math.IsInf(r.Penalty, 0), "reward_params.penalty", "%g, expected a positive number, or 0", r.Penalty)
	p.Check(r.Level >= 0 && r.Level < 1, "reward_params.level", "%g, expected a number in (0, 1), or 0", r.Level)
	p.Check(r.Turnover >= 0 && !math.IsInf(r.Turnover, 0), "reward_params.turnover", "%g, expected a number that is not negative", r.Turnover)
}

// rewards is the range of a configuration's rewards.
func (c *Config) rewards() envs.Range {
	r := envs.Range{Low: math.Inf(-1), High: math.Inf(1)}
	if c.Reward == Simple && c.RewardParams.Turnover == 0 {
		r.Low = -1
	}
	return r
}

// rewarder pays for the steps of an episode.
type rewarder struct {
	config    *Config
	benchmark int // the asset, or -1
	rewardMemory
}

// rewardMemory is what rewards remember of an episode, each of them some of it.
type rewardMemory struct {
	// Mean and Square are moving means of r, or of |r|, and of r²; Peak is the highest value, and
	// VaR the value at risk.
	Mean   float64 `json:"mean,omitzero"`
	Square float64 `json:"square,omitzero"`
	Peak   float64 `json:"peak,omitzero"`
	VaR    float64 `json:"var,omitzero"`
}

func newRewarder(c *Config, m *Market) (rewarder, error) {
	r := rewarder{config: c, benchmark: -1}
	if name := c.RewardParams.Benchmark; name != "" {
		if r.benchmark = slices.Index(m.Assets, name); r.benchmark < 0 {
			return r, fmt.Errorf("trading: reward_params.benchmark: %q is none of the assets %q", name, m.Assets)
		}
	}
	return r, nil
}

func or(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// of pays for a step from bar t to the next, in which the value went from before to after.
func (r *rewarder) of(m *Market, t int, before, after, turnover float64) float64 {
	p, gain := &r.config.RewardParams, after/before-1
	var out float64
	switch r.config.Reward {
	case Simple:
		out = gain
	case Log:
		out = math.Log(after / before)
	case Excess:
		out = math.Log(after/before) - math.Log1p(r.market(m, t))
	case DifferentialSharpe:
		da, db := gain-r.Mean, gain*gain-r.Square
		variance := max(r.Square-r.Mean*r.Mean, varianceFloor)
		out = (r.Square*da - r.Mean*db/2) / (variance * math.Sqrt(variance))
		eta := or(p.Eta, 0.01)
		r.Mean += eta * da
		r.Square += eta * db
	case Drawdown:
		was := max(r.Peak, before)
		r.Peak = max(was, after)
		grown := max((1-after/r.Peak)-(1-before/was), 0)
		out = math.Log(after/before) - or(p.Penalty, 1)*grown
	case MeanCVaR:
		eta, level, loss := or(p.Eta, 0.01), or(p.Level, 0.95), -gain
		out = gain - or(p.Penalty, 1)*max(loss-r.VaR, 0)/(1-level)
		if r.Mean == 0 {
			r.Mean = math.Abs(gain)
		}
		r.Mean += eta * (math.Abs(gain) - r.Mean)
		if loss > r.VaR {
			r.VaR += eta * r.Mean * level
		} else {
			r.VaR -= eta * r.Mean * (1 - level)
		}
	}
	return out - p.Turnover*(turnover/before)
}

// market is the return of the benchmark from the close of bar t to the next.
func (r *rewarder) market(m *Market, t int) float64 {
	sum, n := 0.0, 0
	for i := range m.Assets {
		if (r.benchmark < 0 || r.benchmark == i) && m.Tradable[t*len(m.Assets)+i] != 0 {
			sum += m.AdjustedClose(t+1, i)/m.AdjustedClose(t, i) - 1
			n++
		}
	}
	return sum / float64(max(n, 1))
}
