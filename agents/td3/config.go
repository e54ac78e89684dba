package td3

import (
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// Config describes a TD3 agent. [Defaults] returns Stable-Baselines3's values, [DDPGDefaults] those
// of DDPG; the package comment lists their sources.
type Config struct {
	// Settings are those of learning from a replay. Target networks move with each update of the
	// actor.
	offpolicy.Settings `yaml:",inline"`

	// PolicyDelay is the number of updates of the critics for each one of the actor and of the
	// target networks.
	PolicyDelay int `yaml:"policy_delay"`
	// TargetPolicyNoise is the standard deviation of the noise that smooths the target policy's
	// actions, TargetNoiseClip how far it may go; actions lie in [−1, 1].
	TargetPolicyNoise float64 `yaml:"target_policy_noise"`
	TargetNoiseClip   float64 `yaml:"target_noise_clip"`
	// ActionNoise is what is added to actions in [−1, 1] for exploration.
	ActionNoise offpolicy.Noise `yaml:"action_noise"`

	// BC keeps the policy near the recorded actions; left out nothing does.
	BC *offpolicy.BC `yaml:"bc,omitempty"`

	// Diversity pays for behaviour from which the skill can be told; left out there is no bonus.
	Diversity *diversity.Config `yaml:"diversity,omitempty"`

	offpolicy.CriticSettings `yaml:",inline"`
	// Config is the network: Hidden are the layers of the actor, and of each critic unless
	// CriticHidden names others.
	network.Config `yaml:",inline"`

	// Constraints keep what episodes cost beside the reward below limits.
	Constraints []constraint.Config `yaml:"constraints,omitzero"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Defaults returns Stable-Baselines3's values.
func Defaults() Config {
	s := offpolicy.Defaults()
	s.LearningRate = 1e-3
	return Config{
		Settings: s, PolicyDelay: 2, TargetPolicyNoise: 0.2, TargetNoiseClip: 0.5, ActionNoise: offpolicy.DefaultNoise(),
		CriticSettings: offpolicy.CriticSettings{Critics: 2}, Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{400, 300}, Activation: "relu"},
	}
}

// DDPGDefaults returns the values with which TD3 is DDPG (Lillicrap et al. 2016, arXiv 1509.02971):
// one critic, no smoothing of targets and no delay.
func DDPGDefaults() Config {
	c := Defaults()
	c.PolicyDelay, c.TargetPolicyNoise, c.TargetNoiseClip, c.Critics = 1, 0, 0, 1
	return c
}

// BCDefaults returns the values of TD3+BC (Fujimoto & Gu 2021, arXiv 2106.06860): TD3's own of the
// paper, and the policy kept near the recorded actions.
func BCDefaults() Config {
	c := Defaults()
	c.LearningRate, c.LearningStarts, c.Hidden, c.BC = 3e-4, 0, []int{256, 256}, &offpolicy.BC{}
	c.BC.SetDefaults()
	return c
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("policy_delay", c.PolicyDelay, 1)
	p.NonNegative("target_policy_noise", c.TargetPolicyNoise)
	p.NonNegative("target_noise_clip", c.TargetNoiseClip)
	offpolicy.CheckConstraints(&p, c.Constraints, c.NSteps)
	c.Diversity.Fits(&p, c.BatchSize, c.NSteps)
	return p.Err()
}
