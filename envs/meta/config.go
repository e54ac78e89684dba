package meta

import (
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/risk"
)

// Config says what a decision is, for how long it holds, and what it earns beside what the
// environment inside pays.
type Config struct {
	// Segment is the number of env steps of the environment inside that a decision holds for; the
	// end of an episode ends it sooner.
	Segment int `yaml:"segment"`
	// Choose is what a decision is: expert, one of them; mixture, of their actions; or assets,
	// which of those that the environment inside trades may be held, and one of the experts where
	// there are several.
	Choose string `yaml:"choose"`
	// Diversity is what choosing differently is worth.
	Diversity Diversity `yaml:"diversity,omitzero"`
	// Risk watches a book for each expert, of what the account gained and lost while the expert was
	// in charge: drawdown masks it and cvar cuts what may be held. Limits on
	// positions belong to the environment inside.
	Risk risk.Config `yaml:"risk,omitzero"`
}

// Diversity are bonuses of a decision, in the units of the reward.
type Diversity struct {
	// KLCoef multiplies KL(π_selected ‖ π_mean), the divergence between the policy of the expert
	// that is chosen, or of the mixture, and the mean of all, in nats and for each element of the
	// action. The coefficient rises from KLCoef, while all experts are chosen alike, to KLCoefMax
	// where only one is: λ = coef + (max − coef)·(1 − H(usage)/log N). Max of 0 is KLCoef.
	KLCoef    float64 `yaml:"kl_coef,omitzero"`
	KLCoefMax float64 `yaml:"kl_coef_max,omitzero"`
	// KLClip is the largest divergence that counts; 0 is 1.
	KLClip float64 `yaml:"kl_clip,omitzero"`
	// Noise is the standard deviation of policies that have none, as a part of half the range of
	// the action; 0 is 0.1.
	Noise float64 `yaml:"noise,omitzero"`
	// UsageCoef multiplies KL(one-hot ‖ usage) = −log usage[chosen], of the usage of the experts in
	// the last UsageWindow decisions (0 is 1000) and one decision for each expert beside them: in
	// training those of all episodes of an environment, in evaluation those of the episode.
	UsageCoef   float64 `yaml:"usage_coef,omitzero"`
	UsageWindow int     `yaml:"usage_window,omitzero"`
}

// The words of Choose.
const (
	Expert  = "expert"
	Mixture = "mixture"
	Assets  = "assets"
)

// Defaults returns a decision of one expert every five env steps, without bonuses and limits.
func Defaults() Config { return Config{Segment: 5, Choose: Expert} }

// Validate reports all problems of a configuration.
func (c Config) Validate() error {
	var p configs.Problems
	c.check(&p)
	return p.Err()
}

func (c *Config) check(p *configs.Problems) {
	p.AtLeast("segment", c.Segment, 1)
	p.OneOf("choose", c.Choose, Expert, Mixture, Assets)
	d := &c.Diversity
	p.NonNegative("diversity.kl_coef", d.KLCoef)
	p.Check(d.KLCoefMax == 0 || d.KLCoefMax >= d.KLCoef, "diversity.kl_coef_max", "%g, expected at least kl_coef, %g, or 0", d.KLCoefMax, d.KLCoef)
	p.NonNegative("diversity.kl_clip", d.KLClip)
	p.NonNegative("diversity.noise", d.Noise)
	p.NonNegative("diversity.usage_coef", d.UsageCoef)
	p.AtLeast("diversity.usage_window", d.UsageWindow, 0)
	c.Risk.Check(p, "risk.")
	r := &c.Risk
	p.Check(r.MaxExposure == 0 && r.MaxWeight == 0 && r.MaxTurnover == 0, "risk", "limits on positions belong to the risk of the environment inside; expected drawdown and cvar only")
	p.Check(r.Drawdown.Then == "", "risk.drawdown.then", "%q: an expert whose drawdown is beyond the limit is masked; expected nothing", r.Drawdown.Then)
}

// least is the number of experts that a decision needs.
func (c *Config) least() int {
	if c.Choose == Expert || c.Choose == Mixture {
		return 2
	}
	return 1
}

// alone reports what one expert alone has no use for.
func (c *Config) alone(p *configs.Problems) {
	d := &c.Diversity
	p.Check(d.KLCoef == 0 && d.KLCoefMax == 0 && d.UsageCoef == 0, "diversity", "pays for a choice between experts, and there is one: its policy is the mean of all, from which the divergence is 0")
	p.Check(c.Risk.Drawdown.Limit == 0, "risk.drawdown", "masks experts, and there is one, which always acts")
}

// filled returns the configuration with what its zeros stand for.
func (c Config) filled() Config {
	d := &c.Diversity
	d.KLCoefMax, d.KLClip, d.Noise = max(d.KLCoefMax, d.KLCoef), or(d.KLClip, 1), or(d.Noise, 0.1)
	if d.UsageWindow == 0 {
		d.UsageWindow = 1000
	}
	return c
}

func or(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}
