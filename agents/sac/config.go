package sac

import (
	"onnxrl/agents/network"
	"onnxrl/agents/rlmath"
	"onnxrl/configs"
	"onnxrl/models"
	"onnxrl/models/encoder/crossasset"
	"onnxrl/models/head"
	"onnxrl/runtime/optim"
)

// Config describes a SAC agent. [Defaults] returns Stable-Baselines3's values; the package comment lists their sources.
type Config struct {
	// LearningRate is that of actor, critics and temperature; CriticLearningRate, unless 0, that of the critics. Schedule multiplies both by a factor that begins at 1 and counts env steps; without steps of its own it lasts as long as the run.
	LearningRate       float64        `yaml:"learning_rate"`
	CriticLearningRate float64        `yaml:"critic_learning_rate,omitempty"`
	Schedule           optim.Schedule `yaml:"schedule,omitempty"`
	// Optimizer is any of package optim, for actor and critics; its learning rate is given above. The temperature has an Adam of its own.
	Optimizer optim.Config `yaml:"optimizer"`
	// GradClip limits the norm of the actor's and of the critics' gradient, each by itself; 0 does not.
	GradClip float64 `yaml:"grad_clip"`

	// BufferSize is the number of transitions that are kept, over all environments.
	BufferSize int `yaml:"buffer_size"`
	// LearningStarts is the number of env steps with uniformly random actions before the first update.
	LearningStarts int `yaml:"learning_starts"`
	BatchSize      int `yaml:"batch_size"`
	// NSteps is the number of rewards in a target before the value of what follows.
	NSteps int     `yaml:"n_steps"`
	Gamma  float64 `yaml:"gamma"`
	// Tau is how far the target critics move with each update that TargetUpdateInterval does not leave out.
	Tau                  float64 `yaml:"tau"`
	TargetUpdateInterval int     `yaml:"target_update_interval"`
	// TrainFreq is the number of rounds between learner steps, GradientSteps the number of updates in each; -1 is one for each env step since the last.
	TrainFreq     int `yaml:"train_freq"`
	GradientSteps int `yaml:"gradient_steps"`

	// EntCoef is the temperature α, TargetEntropy what it is adjusted to where it is automatic.
	EntCoef       EntCoef       `yaml:"ent_coef"`
	TargetEntropy TargetEntropy `yaml:"target_entropy"`

	// VTrace corrects sequences for actions of earlier policies.
	VTrace VTrace `yaml:"vtrace"`

	// Critics is the number of critics; the least of them counts.
	Critics int `yaml:"n_critics"`
	// Config is the network: Hidden are the layers of the actor, and of each critic unless CriticHidden names others.
	network.Config `yaml:",inline"`
	CriticHidden   []int `yaml:"critic_hidden,flow,omitempty"`

	// LogStd bounds the log standard deviation of actions in a Box; with use_sde it has no bounds.
	LogStd LogStd `yaml:"log_std"`
	// Exploration chooses gSDE; LogStdInit is for gSDE's matrix alone. UseSDEAtWarmup acts with gSDE and not uniformly before LearningStarts, and ClipMean bounds the mean before squashing, unless 0, with gSDE.
	network.Exploration `yaml:",inline"`
	UseSDEAtWarmup      bool    `yaml:"use_sde_at_warmup"`
	ClipMean            float64 `yaml:"clip_mean"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// LogStd says how the network's output becomes a log standard deviation.
type LogStd struct {
	Bound head.Bound `yaml:"bound"`
	Low   float64    `yaml:"low"`
	High  float64    `yaml:"high"`
}

// VTrace configures the correction of sequences.
type VTrace struct {
	// Length is the number of transitions of a sequence; 0 samples transitions and corrects nothing. The batch is a multiple of it.
	Length int `yaml:"length"`
	// Lambda, ClipRho and ClipC are those of rlmath.VTraceConfig.
	Lambda  float64 `yaml:"lambda"`
	ClipRho float64 `yaml:"clip_rho"`
	ClipC   float64 `yaml:"clip_c"`
}

// Defaults returns Stable-Baselines3's values.
func Defaults() Config {
	v, e := rlmath.DefaultVTrace(), network.DefaultExploration()
	e.LogStdInit = -3
	return Config{
		LearningRate: 3e-4, Optimizer: optim.Config{Kind: "adam"},
		BufferSize: 1_000_000, LearningStarts: 100, BatchSize: 256, NSteps: 1, Gamma: 0.99, Tau: 0.005, TargetUpdateInterval: 1, TrainFreq: 1, GradientSteps: 1,
		EntCoef: EntCoef{Auto: true, Value: 1}, TargetEntropy: TargetEntropy{Auto: true},
		VTrace:  VTrace{Lambda: v.Lambda, ClipRho: v.ClipRho, ClipC: v.ClipC},
		Critics: 2, Config: network.Config{CrossAsset: crossasset.Defaults(), Hidden: []int{256, 256}, Activation: "relu"},
		LogStd: LogStd{Bound: head.BoundClip, Low: -20, High: 2}, Exploration: e, ClipMean: 2,
	}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Positive("learning_rate", c.LearningRate)
	p.NonNegative("critic_learning_rate", c.CriticLearningRate)
	p.Check(c.Schedule.Initial == 0 || c.Schedule.Initial == 1, "schedule.initial", "is %g, but the schedule is a factor that begins at 1", c.Schedule.Initial)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.NonNegative("grad_clip", c.GradClip)
	p.AtLeast("buffer_size", c.BufferSize, 1)
	p.AtLeast("learning_starts", c.LearningStarts, 0)
	p.AtLeast("batch_size", c.BatchSize, 1)
	p.Check(c.BatchSize <= c.BufferSize, "batch_size", "is %d, more than the buffer_size of %d", c.BatchSize, c.BufferSize)
	p.AtLeast("n_steps", c.NSteps, 1)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.InRange("tau", c.Tau, 0, 1)
	p.AtLeast("target_update_interval", c.TargetUpdateInterval, 1)
	p.AtLeast("train_freq", c.TrainFreq, 1)
	p.Check(c.GradientSteps == -1 || c.GradientSteps > 0, "gradient_steps", "is %d, expected a number of updates, or -1 for one for each env step", c.GradientSteps)
	if v := c.VTrace; v.Length != 0 {
		p.AtLeast("vtrace.length", v.Length, 2)
		p.Check(v.Length > 0 && c.BatchSize%v.Length == 0, "vtrace.length", "is %d, and the batch_size of %d is no multiple of it", v.Length, c.BatchSize)
		p.InRange("vtrace.lambda", v.Lambda, 0, 1)
		p.Positive("vtrace.clip_rho", v.ClipRho)
		p.Positive("vtrace.clip_c", v.ClipC)
		p.Check(c.NSteps == 1, "n_steps", "is %d, but with vtrace.length the targets are V-trace's", c.NSteps)
	}
	p.AtLeast("n_critics", c.Critics, 1)
	for _, width := range c.CriticHidden {
		p.AtLeast("critic_hidden", width, 1)
	}
	p.OneOf("log_std.bound", string(c.LogStd.Bound), string(head.BoundClip), string(head.BoundTanh))
	p.Check(c.LogStd.Low < c.LogStd.High, "log_std", "is bounded by %g and %g", c.LogStd.Low, c.LogStd.High)
	p.Check(!c.UseSDEAtWarmup || c.UseSDE, "use_sde_at_warmup", "needs use_sde")
	p.NonNegative("clip_mean", c.ClipMean)
	return p.Err()
}

// criticHidden returns the layers of a critic.
func (c *Config) criticHidden() []int {
	if len(c.CriticHidden) > 0 {
		return c.CriticHidden
	}
	return c.Hidden
}
