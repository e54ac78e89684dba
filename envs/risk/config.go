package risk

import "github.com/onnxrl/onnxrl/configs"

// Config are limits on the risk of a portfolio. The zero Config has none.
type Config struct {
	// Drawdown stops buying while the value is too far below its highest of late.
	Drawdown Drawdown `yaml:"drawdown,omitzero"`
	// CVaR cuts max_exposure and max_weight while the worst days of late are too bad.
	CVaR CVaR `yaml:"cvar,omitzero"`
	// MaxExposure is the largest part of the value that may be in assets together, MaxWeight that
	// may be in one asset; what prices have moved beyond is sold at the next fill. 0 is no limit.
	MaxExposure float64 `yaml:"max_exposure,omitzero"`
	MaxWeight   float64 `yaml:"max_weight,omitzero"`
	// MaxTurnover is the most that is bought and sold in a day, as a part of the value. Sales that
	// another limit demands, or a universe that an asset leaves, use it up but are made in any
	// case. 0 is no limit. weights.max_turnover is that of a step.
	MaxTurnover float64 `yaml:"max_turnover,omitzero"`
}

// Drawdown is a limit on the drawdown from the highest value of the last days.
type Drawdown struct {
	// Limit is the drawdown beyond which nothing is bought, a fraction; 0 is no limit.
	Limit float64 `yaml:"limit,omitzero"`
	// Window is the number of days of the market, the present one included, whose highest value the
	// drawdown is from; 0 is 30.
	Window int `yaml:"window,omitzero"`
	// Resume is the drawdown at which buying begins again, below Limit; 0 is half of it.
	Resume float64 `yaml:"resume,omitzero"`
	// Then is what becomes of positions: hold (the default) leaves them to the agent, flatten sells
	// them.
	Then string `yaml:"then,omitzero"`
}

// CVaR is a limit on the conditional value at risk of daily returns, a loss.
type CVaR struct {
	// Limit is the loss beyond which exposure is cut, such as 0.05; 0 is no limit.
	Limit float64 `yaml:"limit,omitzero"`
	// Level is the share of days that are not in the tail; 0 is 0.95.
	Level float64 `yaml:"level,omitzero"`
	// Window is the number of daily returns, the present day's so far included; 0 is 250. Before
	// there are 1/(1 − Level) of them nothing is cut.
	Window int `yaml:"window,omitzero"`
	// Resume is the loss at which the cut ends, below Limit; 0 is half of it.
	Resume float64 `yaml:"resume,omitzero"`
	// Cut is what max_exposure (1 where there is none) and max_weight are multiplied by; 0 is 0.5.
	Cut float64 `yaml:"cut,omitzero"`
}

// The words of Drawdown.Then.
const (
	Hold    = "hold"
	Flatten = "flatten"
)

// On reports whether there is any limit.
func (c *Config) On() bool { return *c != Config{} }

// Complete returns the configuration with what the zeros of Drawdown and CVaR stand for.
func (c Config) Complete() Config {
	d, v := &c.Drawdown, &c.CVaR
	d.Window, d.Resume = or(d.Window, defaultDrawdownDays), or(d.Resume, defaultResume*d.Limit)
	v.Window, v.Level = or(v.Window, defaultCVaRDays), or(v.Level, defaultLevel)
	v.Resume, v.Cut = or(v.Resume, defaultResume*v.Limit), or(v.Cut, defaultCut)
	return c
}

// LeastReturns is the number of daily returns before which nothing is cut.
func (c CVaR) LeastReturns() int { return tailDays(or(c.Level, defaultLevel)) }

// Check reports the problems of a configuration by the keys below prefix, such as "risk.".
func (c *Config) Check(p *configs.Problems, prefix string) {
	part := func(key string, x float64) {
		p.Check(x >= 0 && x <= 1, prefix+key, "%g, expected a part of the portfolio's value in (0, 1], or 0", x)
	}
	part("max_exposure", c.MaxExposure)
	part("max_weight", c.MaxWeight)
	p.Check(c.MaxTurnover >= 0 && c.MaxTurnover <= 100, prefix+"max_turnover", "%g, expected a part of the portfolio's value, or 0", c.MaxTurnover)
	trip := func(key string, limit, resume float64, window, least int, more bool) {
		p.Check(limit >= 0 && limit < 1, prefix+key+".limit", "%g, expected a fraction in (0, 1), or 0", limit)
		p.Check(resume >= 0 && (resume == 0 || resume < limit), prefix+key+".resume", "%g, expected a fraction below the limit of %g", resume, limit)
		p.Check(window == 0 || window >= least && window <= maxWindow, prefix+key+".window", "%d days, expected %d to %d", window, least, maxWindow)
		p.Check(limit > 0 || resume == 0 && window == 0 && !more, prefix+key+".limit", "is missing")
	}
	d, v := &c.Drawdown, &c.CVaR
	trip("drawdown", d.Limit, d.Resume, d.Window, 1, d.Then != "")
	p.OneOf(prefix+"drawdown.then", d.Then, "", Hold, Flatten)
	p.Check(v.Level >= 0 && v.Level < 1, prefix+"cvar.level", "%g, expected a number in (0, 1), or 0", v.Level)
	p.Check(v.Cut >= 0 && v.Cut < 1, prefix+"cvar.cut", "%g, expected a fraction in (0, 1), or 0", v.Cut)
	least := 1
	if v.Level < 1 {
		least = tailDays(or(v.Level, defaultLevel))
	}
	trip("cvar", v.Limit, v.Resume, v.Window, least, v.Level != 0 || v.Cut != 0)
}

// The values that 0 stands for.
const (
	defaultDrawdownDays = 30
	defaultCVaRDays     = 250
	defaultLevel        = 0.95
	defaultCut          = 0.5
	defaultResume       = 0.5 // of the limit
)

// maxWindow keeps windows in memory.
const maxWindow = 100_000

func or[T float64 | int](x, otherwise T) T {
	if x == 0 {
		return otherwise
	}
	return x
}
