package iql

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder/crossasset"
)

// Config describes an IQL agent. [Defaults] returns d3rlpy's values; the package comment lists
// their sources.
type Config struct {
	// Settings are those of learning from a replay. Target critics move with each update.
	offpolicy.Settings `yaml:",inline"`

	// Expectile is the one that v learns of the values of the data's actions: 0.5 is their mean,
	// near 1 their maximum.
	Expectile float64 `yaml:"expectile"`
	// WeightTemp is the inverse temperature of the actor's weights, MaxWeight what bounds them.
	WeightTemp float64 `yaml:"weight_temp"`
	MaxWeight  float64 `yaml:"max_weight"`

	offpolicy.CriticSettings `yaml:",inline"`
	// Config is the network: Hidden are the layers of the actor, and of each critic and v unless
	// CriticHidden names others.
	network.Config `yaml:",inline"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Defaults returns d3rlpy's values.
func Defaults() Config {
	s := offpolicy.Defaults()
	s.LearningRate, s.LearningStarts = 3e-4, 0
	return Config{
		Settings: s, Expectile: 0.7, WeightTemp: 3, MaxWeight: 100, CriticSettings: offpolicy.CriticSettings{Critics: 2},
		Config: network.Config{CrossAsset: crossasset.Defaults(), Hidden: []int{256, 256}, Activation: "relu"},
	}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Expectile > 0 && c.Expectile < 1, "expectile", "is %g, expected a number between 0 and 1", c.Expectile)
	p.NonNegative("weight_temp", c.WeightTemp)
	p.Positive("max_weight", c.MaxWeight)
	return p.Err()
}
