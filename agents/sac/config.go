package sac

import (
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
)

// Config describes a SAC agent. [Defaults] returns Stable-Baselines3's values; the package comment
// lists their sources.
type Config struct {
	// Settings are those of learning from a replay. The learning rate is the temperature's too,
	// whose optimiser is an Adam of its own.
	offpolicy.Settings `yaml:",inline"`
	// Target critics move with each update that TargetUpdateInterval does not leave out.
	TargetUpdateInterval int `yaml:"target_update_interval"`

	// EntCoef is the temperature α, TargetEntropy what it is adjusted to where it is automatic.
	EntCoef       EntCoef       `yaml:"ent_coef"`
	TargetEntropy TargetEntropy `yaml:"target_entropy"`

	// Conservative keeps down the values of actions that the data do not have; left out nothing
	// does.
	Conservative *Conservative `yaml:"conservative,omitempty"`

	// BC keeps the policy near the recorded actions; left out nothing does.
	BC *offpolicy.BC `yaml:"bc,omitempty"`

	// VTrace corrects sequences for actions of earlier policies.
	VTrace VTrace `yaml:"vtrace"`

	// Sharing says what transitions of other policies count for, where several share a replay; left
	// out they count as the learner's own. Where none is shared it changes nothing.
	Sharing *offpolicy.Sharing `yaml:"sharing,omitempty"`

	// ActionNoise is added to actions in [−1, 1] for exploration, beside the policy's own, and with
	// sharing or vtrace before squashing; left out none is. A section without kind is normal.
	ActionNoise *offpolicy.Noise `yaml:"action_noise,omitempty"`
	// Diversity pays for behaviour from which the skill can be told; left out there is no bonus.
	Diversity *diversity.Config `yaml:"diversity,omitempty"`

	offpolicy.CriticSettings `yaml:",inline"`
	// Config is the network: Hidden are the layers of the actor, and of each critic unless
	// CriticHidden names others.
	network.Config `yaml:",inline"`

	// LogStd bounds the log standard deviation of actions in a Box; with use_sde it has no bounds.
	LogStd LogStd `yaml:"log_std"`
	// Exploration chooses gSDE; LogStdInit is for gSDE's matrix alone.
	network.Exploration `yaml:",inline"`
	// UseSDEAtWarmup acts with gSDE and not uniformly before LearningStarts.
	UseSDEAtWarmup bool `yaml:"use_sde_at_warmup"`
	// ClipMean bounds the mean before squashing, with gSDE; 0 does not.
	ClipMean float64 `yaml:"clip_mean"`

	// Constraints keep what episodes cost beside the reward below limits.
	Constraints []constraint.Config `yaml:"constraints,omitzero"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// LogStd says how the network's output becomes a log standard deviation.
type LogStd struct {
	// Bound is clip, or tanh, which squashes the output between Low and High.
	Bound head.Bound `yaml:"bound"`
	Low   float64    `yaml:"low"`
	High  float64    `yaml:"high"`
}

// VTrace configures the correction of sequences.
type VTrace struct {
	// Length is the number of transitions of a sequence; 0 samples transitions and corrects
	// nothing. The batch is a multiple of it.
	Length int `yaml:"length"`
	// Lambda, ClipRho and ClipC are those of rlmath.VTraceConfig.
	Lambda  float64 `yaml:"lambda"`
	ClipRho float64 `yaml:"clip_rho"`
	ClipC   float64 `yaml:"clip_c"`
}

// Defaults returns Stable-Baselines3's values.
func Defaults() Config {
	v, e, s := rlmath.DefaultVTrace(), network.DefaultExploration(), offpolicy.Defaults()
	e.LogStdInit, s.LearningRate = -3, 3e-4
	return Config{
		Settings: s, TargetUpdateInterval: 1, EntCoef: EntCoef{Auto: true, Value: 1}, TargetEntropy: TargetEntropy{Auto: true},
		VTrace:         VTrace{Lambda: v.Lambda, ClipRho: v.ClipRho, ClipC: v.ClipC},
		CriticSettings: offpolicy.CriticSettings{Critics: 2}, Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{256, 256}, Activation: "relu"},
		LogStd: LogStd{Bound: head.BoundClip, Low: -20, High: 2}, Exploration: e, ClipMean: 2,
	}
}

// noise is that of actions.
func (c *Config) noise() offpolicy.Noise {
	if c.ActionNoise == nil {
		return offpolicy.DefaultNoise()
	}
	return *c.ActionNoise
}

// explored is how actors explore; with shared, the replay may have transitions of other policies.
func (c *Config) explored(shared bool) offpolicy.Exploration {
	return offpolicy.Exploration{Exploration: c.Exploration, AtWarmup: c.UseSDEAtWarmup, Noise: c.noise(), BeforeSquashing: c.VTrace.Length > 0 || shared && c.Sharing != nil}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("target_update_interval", c.TargetUpdateInterval, 1)
	if v := c.VTrace; v.Length != 0 {
		p.AtLeast("vtrace.length", v.Length, 2)
		p.Check(v.Length > 0 && c.BatchSize%v.Length == 0, "vtrace.length", "is %d, and the batch_size of %d is no multiple of it", v.Length, c.BatchSize)
		p.InRange("vtrace.lambda", v.Lambda, 0, 1)
		p.Positive("vtrace.clip_rho", v.ClipRho)
		p.Positive("vtrace.clip_c", v.ClipC)
		p.Check(c.NSteps == 1, "n_steps", "is %d, but with vtrace.length the targets are V-trace's", c.NSteps)
	}
	if c.Sharing != nil {
		p.Check(c.VTrace.Length == 0, "sharing", "cannot be combined with vtrace.length, which corrects for other policies by itself")
		p.Check(c.NSteps == 1, "n_steps", "is %d, but the weights of sharing are of single actions", c.NSteps)
	}
	if n := c.noise(); c.VTrace.Length != 0 || c.Sharing != nil {
		p.Check(!n.On() || n.Kind == offpolicy.Normal, "action_noise.kind", "is %s, expected %s: sharing and vtrace need the density of an action given the observation, and noise of the kind %s depends on the noise before, too", n.Kind, offpolicy.Normal, n.Kind)
	}
	if c.Conservative != nil {
		p.Check(c.VTrace.Length == 0, "conservative", "cannot be combined with vtrace.length")
		p.Check(!c.UseSDE, "conservative", "cannot be combined with use_sde: one matrix of noise serves all rows, and the regulariser needs many actions of each")
	}
	p.Check(len(c.Constraints) == 0 || c.VTrace.Length == 0, "constraints", "cannot be combined with vtrace.length")
	offpolicy.CheckConstraints(&p, c.Constraints, c.NSteps)
	p.OneOf("log_std.bound", string(c.LogStd.Bound), string(head.BoundClip), string(head.BoundTanh))
	p.Check(c.LogStd.Low < c.LogStd.High, "log_std", "is bounded by %g and %g", c.LogStd.Low, c.LogStd.High)
	p.Check(!c.UseSDEAtWarmup || c.UseSDE, "use_sde_at_warmup", "needs use_sde")
	p.NonNegative("clip_mean", c.ClipMean)
	c.Diversity.Fits(&p, c.BatchSize, c.NSteps)
	return p.Err()
}
