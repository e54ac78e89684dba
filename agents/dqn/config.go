package dqn

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder/crossasset"
)

// Config describes a DQN agent. [Defaults] returns Stable-Baselines3's values.
type Config struct {
	// Settings are those of learning from a replay. An update is a gradient step.
	offpolicy.Settings `yaml:",inline"`
	// TargetUpdateInterval is the number of env steps after which the target network moves towards
	// the online one.
	TargetUpdateInterval int `yaml:"target_update_interval"`
	// An action is random with a probability that falls from ExplorationInitial to ExplorationFinal
	// over the first ExplorationFraction of the run, straight, and then stays.
	ExplorationFraction float64 `yaml:"exploration_fraction"`
	ExplorationInitial  float64 `yaml:"exploration_initial_eps"`
	ExplorationFinal    float64 `yaml:"exploration_final_eps"`

	// Double selects the following action by the online network and evaluates it by the target
	// network.
	Double bool `yaml:"double"`
	// Duelling makes the action values of a state's value and advantages.
	Duelling bool `yaml:"duelling"`
	// Prioritised samples in proportion to errors instead of uniformly.
	Prioritised Prioritised `yaml:"prioritised"`

	// ConservativeWeight is that of CQL's regulariser, which keeps down the values of actions that
	// the data do not have; 0 is without.
	ConservativeWeight float64 `yaml:"conservative_weight"`

	// Config is the network: encoder, hidden layers and activation.
	network.Config `yaml:",inline"`
	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Prioritised describes prioritised replay (Schaul et al. 2016); the defaults are the paper's of
// the proportional variant.
type Prioritised struct {
	// Enabled draws transitions by priority, and not all alike.
	Enabled bool `yaml:"enabled"`
	// Alpha is the exponent of priorities, Eps is added to errors.
	Alpha float64 `yaml:"alpha"`
	Eps   float64 `yaml:"eps"`
	// Beta is the exponent of importance weights at the beginning of the run; it rises straight to
	// BetaFinal at its end.
	Beta      float64 `yaml:"beta"`
	BetaFinal float64 `yaml:"beta_final"`
}

// Defaults returns the defaults of stable_baselines3.DQN; what it does not have is off.
func Defaults() Config {
	s := offpolicy.Defaults()
	s.LearningRate, s.BatchSize, s.TrainFreq, s.Tau, s.MaxGradNorm = 1e-4, 32, 4, 1, 10
	return Config{
		Settings: s, TargetUpdateInterval: 10_000, ExplorationFraction: 0.1, ExplorationInitial: 1, ExplorationFinal: 0.05,
		Prioritised: Prioritised{Alpha: 0.6, Eps: 1e-6, Beta: 0.4, BetaFinal: 1},
		Config:      network.Config{CrossAsset: crossasset.Defaults(), Hidden: []int{64, 64}, Activation: "relu"},
	}
}

// CQLDefaults returns the values of d3rlpy's DiscreteCQL (Kumar et al. 2020, arXiv 2006.04779):
// double Q-learning with the regulariser, and no exploration to wait for.
func CQLDefaults() Config {
	c := Defaults()
	c.LearningRate, c.LearningStarts, c.TrainFreq, c.MaxGradNorm, c.TargetUpdateInterval = 6.25e-5, 0, 1, 0, 8000
	c.Double, c.ConservativeWeight, c.Hidden = true, 1, []int{256, 256}
	return c
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(len(c.Privileged) == 0, "privileged", "is for critics beside a policy, and DQN's values are the policy")
	p.Check(c.Tau > 0, "tau", "must be above 0, is %g", c.Tau)
	p.AtLeast("target_update_interval", c.TargetUpdateInterval, 1)
	p.NonNegative("conservative_weight", c.ConservativeWeight)
	p.InRange("exploration_fraction", c.ExplorationFraction, 0, 1)
	p.InRange("exploration_initial_eps", c.ExplorationInitial, 0, 1)
	p.InRange("exploration_final_eps", c.ExplorationFinal, 0, 1)
	return p.Err()
}

// Validate reports the problems of the section.
func (c Prioritised) Validate() error {
	var p configs.Problems
	p.NonNegative("alpha", c.Alpha)
	p.Positive("eps", c.Eps)
	p.InRange("beta", c.Beta, 0, 1)
	p.InRange("beta_final", c.BetaFinal, 0, 1)
	return p.Err()
}
