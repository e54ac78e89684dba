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
	// Limit is what Measure of an episode's cost, the undiscounted sum of its steps, is kept below.
	Limit float64 `yaml:"limit"`
	// Measure is mean, or cvar, the mean of the dearest episodes, a share of 1 − Alpha of all.
	Measure string  `yaml:"measure"`
	Alpha   float64 `yaml:"alpha"`
	// Episodes is how many must have ended since λ last moved before it moves again. The tail of a
	// cvar is estimated from (1 − alpha)·episodes of them: have at least 30, 300 episodes at 0.9.
	Episodes int `yaml:"episodes"`
	// WarmupEpisodes is the number of episodes at the beginning in which λ stays as it begins.
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

	Lagrange      = "lagrange"
	PIDController = "pid"
)

// Defaults returns OmniSafe's multipliers, for a limit that is not known.
func Defaults() Config {
	return Config{
		Limit: math.NaN(), Measure: Mean, Alpha: 0.9, Episodes: 1, Method: Lagrange, LagrangianMultiplierInit: 0.001, LambdaLR: 0.035,
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
	p.OneOf("measure", c.Measure, Mean, CVaR)
	p.Check(c.Alpha >= 0 && c.Alpha < 1, "alpha", "%g, expected a fraction in [0, 1)", c.Alpha)
	p.AtLeast("episodes", c.Episodes, 1)
	if least := 1 / (1 - c.Alpha); c.Measure == CVaR {
		p.Check(float64(c.Episodes) >= least-1e-9, "episodes", "%d, of which a share of %.4g is not one; expected at least %.0f, and 30 times as many for an estimate that can be trusted", c.Episodes, 1-c.Alpha, math.Ceil(least-1e-9))
	}
	p.AtLeast("warmup_episodes", c.WarmupEpisodes, 0)
	p.OneOf("method", c.Method, Lagrange, PIDController)
	p.NonNegative("lagrangian_multiplier_init", c.LagrangianMultiplierInit)
	p.NonNegative("lambda_lr", c.LambdaLR)
	p.NonNegative("lagrangian_upper_bound", c.LagrangianUpperBound)
	p.Check(c.LagrangianUpperBound == 0 || c.LagrangianMultiplierInit <= c.LagrangianUpperBound, "lagrangian_multiplier_init", "is %g, above the lagrangian_upper_bound of %g", c.LagrangianMultiplierInit, c.LagrangianUpperBound)
	return p.Err()
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
