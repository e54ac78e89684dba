package dqn

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
)

// Config describes a DQN agent. [Defaults] returns Stable-Baselines3's values.
type Config struct {
	// Settings are those of the family.
	valuebased.Settings `yaml:",inline"`

	// ConservativeWeight is that of CQL's regulariser, which keeps down the values of actions that
	// the data do not have; 0 is without.
	ConservativeWeight float64 `yaml:"conservative_weight"`

	// Config is the network: encoder, hidden layers and activation.
	network.Config `yaml:",inline"`
	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Defaults returns the defaults of stable_baselines3.DQN; what it does not have is off.
func Defaults() Config {
	s, n := valuebased.Defaults()
	s.LearningRate, s.MaxGradNorm, s.ExplorationFraction, s.ExplorationFinal = 1e-4, 10, 0.1, 0.05
	return Config{Settings: s, Config: n}
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
	p.NonNegative("conservative_weight", c.ConservativeWeight)
	return p.Err()
}
