package evaluate

import (
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
)

// Config is the eval section of a run.
type Config struct {
	// Deterministic takes the best action; otherwise actions are drawn from the policy.
	Deterministic bool `yaml:"deterministic"`
	// UseFee charges the environment's fees.
	UseFee bool `yaml:"use_fee"`
	// Metrics are those of the short table, in order.
	Metrics []string `yaml:"metrics"`
	// Episodes is how many are counted in environments other than trading, whose evaluation is one
	// episode over the whole split.
	Episodes int `yaml:"episodes"`
	// MaxEpisodeSteps cuts off episodes of environments that have no limit of their own, in which a
	// bad policy may never come to an end.
	MaxEpisodeSteps int `yaml:"max_episode_steps"`
	// PeriodsPerYear is the number of bars in a year, for annual volatilities and ratios; 0
	// recognises it by the timestamps of all bars; RiskFree the rate per year that Sharpe and
	// Sortino ratios subtract.
	PeriodsPerYear float64 `yaml:"periods_per_year"`
	RiskFree       float64 `yaml:"risk_free"`
	// Lag lists the numbers of bars by which decisions are executed late, one row of the table for
	// each.
	Lag []int `yaml:"lag"`
	// CostSweepBP lists fee rates in basis points (hundredths of a per cent) at which the policy
	// trades again.
	CostSweepBP []float64 `yaml:"cost_sweep_bp"`
	Baselines   Baselines `yaml:"baselines"`
	Bootstrap   Bootstrap `yaml:"bootstrap"`
}

// Baselines are what a policy is compared with, besides equal-weight buy-and-hold, which is always
// there.
type Baselines struct {
	// MovingAverage lists numbers of closes, Random the seeds of the random policy.
	MovingAverage []int    `yaml:"moving_average"`
	Random        []uint64 `yaml:"random"`
	// Cash is the portfolio that is never invested.
	Cash bool `yaml:"cash"`
	// Index is a series of prices that is not traded, such as SPY.
	Index Index `yaml:"index"`
}

// Index names a series of prices.
type Index struct {
	// Symbol is empty where there is none.
	Symbol string `yaml:"symbol"`
	// Source says where the rows of the symbol are, as the source of a data section does; absent,
	// they are in that of the run.
	Source configs.Section `yaml:"source,omitempty" section:"source"`
}

// Bootstrap says how intervals are made: from resampled blocks of consecutive returns.
type Bootstrap struct {
	// Samples is how often returns are resampled.
	Samples int `yaml:"samples"`
	// Block is the mean number of returns in a block; 0 chooses it from the returns.
	Block float64 `yaml:"block"`
	// Confidence is the probability that an interval covers.
	Confidence float64 `yaml:"confidence"`
}

// Mode is how policies act.
func (c Config) Mode() agents.Mode {
	if c.Deterministic {
		return agents.Greedy
	}
	return agents.Sample
}

// Defaults returns the specification's values, with the sensitivity analyses that every report
// should have.
func Defaults() Config {
	return Config{
		Deterministic: true, UseFee: true, Metrics: []string{"total_return", "sharpe", "volatility", "max_drawdown"},
		Episodes: 20, MaxEpisodeSteps: 10_000, Lag: []int{1}, CostSweepBP: []float64{0, 5, 10, 20, 50},
		Baselines: Baselines{MovingAverage: []int{10, 20, 30}, Random: []uint64{42, 43, 44, 45, 46}, Cash: true},
		Bootstrap: Bootstrap{Samples: 2000, Confidence: 0.95},
	}
}

// Validate reports all problems of the section. Which metrics there are is known to the program.
func (c Config) Validate() error {
	var p configs.Problems
	p.NotEmpty("metrics", c.Metrics)
	distinct(&p, "metrics", c.Metrics)
	p.AtLeast("episodes", c.Episodes, 1)
	p.AtLeast("max_episode_steps", c.MaxEpisodeSteps, 1)
	p.Check(c.PeriodsPerYear >= 0 && !math.IsInf(c.PeriodsPerYear, 0), "periods_per_year", "%g, expected a positive number, or 0 to recognise it by the timestamps", c.PeriodsPerYear)
	p.Check(c.RiskFree > -1, "risk_free", "%g, expected a rate per year above -1", c.RiskFree)
	distinct(&p, "lag", c.Lag)
	for _, k := range c.Lag {
		p.Check(k >= 1, "lag", "%d, expected at least 1 bar", k)
	}
	distinct(&p, "cost_sweep_bp", c.CostSweepBP)
	for _, bp := range c.CostSweepBP {
		p.Check(bp >= 0 && bp < 10_000, "cost_sweep_bp", "%g, expected basis points in [0, 10000)", bp)
	}
	distinct(&p, "baselines.moving_average", c.Baselines.MovingAverage)
	for _, n := range c.Baselines.MovingAverage {
		p.Check(n >= 2, "baselines.moving_average", "%d, expected at least 2 closes", n)
	}
	distinct(&p, "baselines.random", c.Baselines.Random)
	p.Check(c.Baselines.Index.Symbol != "" || c.Baselines.Index.Source.IsZero(), "baselines.index.symbol", "required: which rows of the source are the index")
	p.AtLeast("bootstrap.samples", c.Bootstrap.Samples, 1)
	p.Check(c.Bootstrap.Block == 0 || c.Bootstrap.Block >= 1, "bootstrap.block", "%g, expected at least 1, or 0", c.Bootstrap.Block)
	p.Check(c.Bootstrap.Confidence > 0 && c.Bootstrap.Confidence < 1, "bootstrap.confidence", "%g, expected a probability in (0, 1)", c.Bootstrap.Confidence)
	return p.Err()
}

// distinct reports elements that a list has twice.
func distinct[T comparable](p *configs.Problems, path string, list []T) {
	seen := map[T]bool{}
	for _, x := range list {
		p.Check(!seen[x], path, "%v is given twice", x)
		seen[x] = true
	}
}
