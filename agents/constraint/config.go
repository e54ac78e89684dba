package constraint

import (
	"math"

	"github.com/onnxrl/onnxrl/configs"
)

// Config is a limit on what episodes cost, and how its multiplier λ moves. The names and defaults
// of the multipliers are OmniSafe's.
type Config struct {
	// Cost is the name of a cost of the environment (envs.Spec.Costs).
	Cost string `yaml:"cost"`
	// Limit is what Measure is kept below.
	Limit float64 `yaml:"limit"`
	// Over is what is measured: the cost of an episode, the undiscounted sum of its steps, or that
	// of a single step, such as the loss of a day.
	Over string `yaml:"over"`
	// Measure is mean, or cvar, the mean of the dearest episodes or steps, a share of 1 − Alpha of
	// all.
	Measure string  `yaml:"measure"`
	Alpha   float64 `yaml:"alpha"`
	// Episodes is how many episodes must have ended, or steps been taken where Over is step, since λ
	// last moved before it moves again.
	Episodes int `yaml:"episodes"`
	// Window is the number of the newest episodes or steps that Measure is estimated from; 0 takes
	// those since λ last moved. The tail of a cvar is 1 − alpha of them: have 30 there, 300 at 0.9.
	Window int `yaml:"window"`
	// WarmupEpisodes is the number of episodes or steps at the beginning in which λ stays as it
	// begins.
	WarmupEpisodes int `yaml:"warmup_episodes"`
	// Method is lagrange, ascent of λ by Adam, or pid.
	Method string `yaml:"method"`
	// LagrangianMultiplierInit is what λ begins with; LambdaLR is the learning rate of lagrange.
	LagrangianMultiplierInit float64 `yaml:"lagrangian_multiplier_init"`
	LambdaLR                 float64 `yaml:"lambda_lr"`
	// LagrangianUpperBound is the most that λ can be; 0 does not limit it.
	LagrangianUpperBound float64 `yaml:"lagrangian_upper_bound"`
	// PID are the gains of pid.
	PID PID `yaml:"pid"`
	// Quantiles is the number of quantiles that a critic of SAC or TD3 has of the cost of the rest
	// of an episode, for a cvar.
	Quantiles int `yaml:"quantiles"`
}

// PID are the gains of pid (Stooke et al. 2020, arXiv 2007.03964): λ = max(0, KP·e + I + KD·d) with
// the error e, the measure less the limit, smoothed, I the sum of KI·error that stays above 0, and
// d the rise of the measure over DDelay moves, smoothed.
type PID struct {
	// KP, KI and KD are the gains of the error, of its sum and of the rise of the measure.
	KP float64 `yaml:"kp"`
	KI float64 `yaml:"ki"`
	KD float64 `yaml:"kd"`
	// DeltaPEMAAlpha and DeltaDEMAAlpha are the weights of the past in the smoothed error and the
	// smoothed measure; both begin at 0.
	DeltaPEMAAlpha float64 `yaml:"delta_p_ema_alpha"`
	DeltaDEMAAlpha float64 `yaml:"delta_d_ema_alpha"`
	// DDelay is the number of moves of λ over which a rise counts.
	DDelay int `yaml:"d_delay"`
}

// The words of a Config.
const (
	Mean = "mean"
	CVaR = "cvar"

	Episode = "episode"
	Step    = "step"

	Lagrange      = "lagrange"
	PIDController = "pid"
)

// Defaults returns OmniSafe's multipliers, for a limit that is not known.
func Defaults() Config {
	return Config{
		Limit: math.NaN(), Over: Episode, Measure: Mean, Alpha: 0.9, Episodes: 1, Quantiles: 32, Method: Lagrange, LagrangianMultiplierInit: 0.001, LambdaLR: 0.035,
		PID: PID{KP: 0.1, KI: 0.01, KD: 0.01, DeltaPEMAAlpha: 0.95, DeltaDEMAAlpha: 0.95, DDelay: 10},
	}
}

// SetDefaults implements configs.Defaulter.
func (c *Config) SetDefaults() { *c = Defaults() }

// Validate implements configs.Validator. Whether the environment has the cost is found out by
// [New].
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Cost != "", "cost", "is empty, expected the name of a cost of the environment")
	p.Check(!math.IsNaN(c.Limit) && !math.IsInf(c.Limit, 0), "limit", "is %g, expected a number", c.Limit)
	p.OneOf("over", c.Over, Episode, Step)
	p.OneOf("measure", c.Measure, Mean, CVaR)
	p.Check(c.Alpha >= 0 && c.Alpha < 1, "alpha", "%g, expected a fraction in [0, 1)", c.Alpha)
	p.AtLeast("episodes", c.Episodes, 1)
	p.AtLeast("window", c.Window, 0)
	if c.Measure == CVaR {
		key, n := "episodes", c.Episodes
		if c.Window > 0 {
			key, n = "window", c.Window
		}
		p.Check(n >= c.least(), key, "%d, of which a share of %.4g is not one; expected at least %d, and 30 times as many for an estimate that can be trusted", n, 1-c.Alpha, c.least())
		p.AtLeast("quantiles", c.Quantiles, 2)
	}
	p.AtLeast("warmup_episodes", c.WarmupEpisodes, 0)
	p.OneOf("method", c.Method, Lagrange, PIDController)
	p.NonNegative("lagrangian_multiplier_init", c.LagrangianMultiplierInit)
	p.NonNegative("lambda_lr", c.LambdaLR)
	p.NonNegative("lagrangian_upper_bound", c.LagrangianUpperBound)
	p.Check(c.LagrangianUpperBound == 0 || c.LagrangianMultiplierInit <= c.LagrangianUpperBound, "lagrangian_multiplier_init", "is %g, above the lagrangian_upper_bound of %g", c.LagrangianMultiplierInit, c.LagrangianUpperBound)
	return p.Err()
}

// least is the number of episodes or steps of which one is in the tail.
func (c *Config) least() int {
	if c.Measure != CVaR {
		return 1
	}
	return int(math.Ceil(1/(1-c.Alpha) - 1e-9))
}

// Tailed reports whether the limit is on the tail of whole episodes: what a step adds to it depends
// on what its episode had cost before.
func (c *Config) Tailed() bool { return c.Measure == CVaR && c.Over == Episode }

// Tails counts the constraints that are [Config.Tailed]. A replay keeps for each what the episode
// had cost before a step.
func Tails(list []Config) (n int) {
	for i := range list {
		if list[i].Tailed() {
			n++
		}
	}
	return n
}

// Validate implements configs.Validator.
func (c PID) Validate() error {
	var p configs.Problems
	p.NonNegative("kp", c.KP)
	p.NonNegative("ki", c.KI)
	p.NonNegative("kd", c.KD)
	p.InRange("delta_p_ema_alpha", c.DeltaPEMAAlpha, 0, 1)
	p.InRange("delta_d_ema_alpha", c.DeltaDEMAAlpha, 0, 1)
	p.AtLeast("d_delay", c.DDelay, 1)
	return p.Err()
}
