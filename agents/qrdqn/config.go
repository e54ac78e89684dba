package qrdqn

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
)

// Config describes a QR-DQN agent. [Defaults] returns sb3-contrib's values.
type Config struct {
	// Settings are those of the family.
	valuebased.Settings `yaml:",inline"`
	// NQuantiles is the number of quantiles of the return that are learnt for each action.
	NQuantiles int `yaml:"n_quantiles"`

	// Config is the network: encoder, hidden layers and activation.
	network.Config `yaml:",inline"`
	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Defaults returns the defaults of sb3_contrib.QRDQN; what it does not have is off.
func Defaults() Config {
	s, n := valuebased.Defaults()
	s.LearningRate, s.ExplorationFraction, s.ExplorationFinal = 5e-5, 0.005, 0.01
	// The paper's, for batches of 32.
	s.Optimizer.Eps = 0.01 / 32
	return Config{Settings: s, NQuantiles: 200, Config: n}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(len(c.Privileged) == 0, "privileged", "is for critics beside a policy, and QR-DQN's values are the policy")
	p.AtLeast("n_quantiles", c.NQuantiles, 2)
	return p.Err()
}
