package td3

import (
	"onnxrl/agents/network"
	"onnxrl/configs"
	"onnxrl/models"
	"onnxrl/models/encoder/crossasset"
	"onnxrl/runtime/optim"
)

// Config describes a TD3 agent. [Defaults] returns Stable-Baselines3's values, [DDPGDefaults] those of DDPG; the package comment lists their sources.
type Config struct {
	// LearningRate is that of actor and critics; CriticLearningRate, unless 0, that of the critics. Schedule multiplies both by a factor that begins at 1 and counts env steps; without steps of its own it lasts as long as the run.
	LearningRate       float64        `yaml:"learning_rate"`
	CriticLearningRate float64        `yaml:"critic_learning_rate,omitempty"`
	Schedule           optim.Schedule `yaml:"schedule,omitempty"`
	// Optimizer is any of package optim; its learning rate is given above.
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
	// Tau is how far the target networks move with each update of the actor.
	Tau float64 `yaml:"tau"`
	// TrainFreq is the number of rounds between learner steps, GradientSteps the number of updates of the critics in each; -1 is one for each env step since the last.
	TrainFreq     int `yaml:"train_freq"`
	GradientSteps int `yaml:"gradient_steps"`

	// PolicyDelay is the number of updates of the critics for each one of the actor and of the target networks.
	PolicyDelay int `yaml:"policy_delay"`
	// TargetPolicyNoise is the standard deviation of the noise that smooths the target policy's actions, TargetNoiseClip how far it may go; actions lie in [−1, 1].
	TargetPolicyNoise float64 `yaml:"target_policy_noise"`
	TargetNoiseClip   float64 `yaml:"target_noise_clip"`
	// ActionNoise is what is added to actions in [−1, 1] for exploration.
	ActionNoise Noise `yaml:"action_noise"`

	// Critics is the number of critics; the least of them counts.
	Critics int `yaml:"n_critics"`
	// Config is the network: Hidden are the layers of the actor, and of each critic unless CriticHidden names others.
	network.Config `yaml:",inline"`
	CriticHidden   []int `yaml:"critic_hidden,flow,omitempty"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Noise is that of exploration.
type Noise struct {
	// Kind is none, normal, or ou, which is Ornstein-Uhlenbeck's: noise that pulls back to 0 and depends on the noise before.
	Kind string `yaml:"kind"`
	// Sigma is the standard deviation, of ou for each √dt.
	Sigma float64 `yaml:"sigma"`
	// Theta and Dt are ou's: how strongly it pulls back, and the length of a round.
	Theta float64 `yaml:"theta"`
	Dt    float64 `yaml:"dt"`
}

// The kinds of noise.
const (
	None   = "none"
	Normal = "normal"
	OU     = "ou"
)

// Defaults returns Stable-Baselines3's values.
func Defaults() Config {
	return Config{
		LearningRate: 1e-3, Optimizer: optim.Config{Kind: "adam"},
		BufferSize: 1_000_000, LearningStarts: 100, BatchSize: 256, NSteps: 1, Gamma: 0.99, Tau: 0.005, TrainFreq: 1, GradientSteps: 1,
		PolicyDelay: 2, TargetPolicyNoise: 0.2, TargetNoiseClip: 0.5, ActionNoise: Noise{Kind: None, Sigma: 0.1, Theta: 0.15, Dt: 0.01},
		Critics: 2, Config: network.Config{CrossAsset: crossasset.Defaults(), Hidden: []int{400, 300}, Activation: "relu"},
	}
}

// DDPGDefaults returns the values with which TD3 is DDPG (Lillicrap et al. 2016, arXiv 1509.02971): one critic, no smoothing of targets and no delay.
func DDPGDefaults() Config {
	c := Defaults()
	c.PolicyDelay, c.TargetPolicyNoise, c.TargetNoiseClip, c.Critics = 1, 0, 0, 1
	return c
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
	p.AtLeast("train_freq", c.TrainFreq, 1)
	p.Check(c.GradientSteps == -1 || c.GradientSteps > 0, "gradient_steps", "is %d, expected a number of updates, or -1 for one for each env step", c.GradientSteps)
	p.AtLeast("policy_delay", c.PolicyDelay, 1)
	p.NonNegative("target_policy_noise", c.TargetPolicyNoise)
	p.NonNegative("target_noise_clip", c.TargetNoiseClip)
	p.OneOf("action_noise.kind", c.ActionNoise.Kind, None, Normal, OU)
	p.NonNegative("action_noise.sigma", c.ActionNoise.Sigma)
	p.NonNegative("action_noise.theta", c.ActionNoise.Theta)
	p.Positive("action_noise.dt", c.ActionNoise.Dt)
	p.AtLeast("n_critics", c.Critics, 1)
	for _, width := range c.CriticHidden {
		p.AtLeast("critic_hidden", width, 1)
	}
	return p.Err()
}

// criticHidden returns the layers of a critic.
func (c *Config) criticHidden() []int {
	if len(c.CriticHidden) > 0 {
		return c.CriticHidden
	}
	return c.Hidden
}
