package iql

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// Config describes an agent. The package comment lists the sources of the values of [Defaults],
// [AWACDefaults] and [AWRDefaults].
type Config struct {
	// Settings are those of learning from a replay. Target critics move with each update.
	offpolicy.Settings `yaml:",inline"`

	// Advantage says what recorded actions are compared with: expectile (IQL), policy (AWAC) or
	// return (AWR).
	Advantage string `yaml:"advantage"`
	// Expectile, of IQL, is the one that v learns of the values of the data's actions: 0.5 is their
	// mean, near 1 their maximum.
	Expectile float64 `yaml:"expectile"`
	// NActionSamples, of AWAC, is the number of the policy's actions that are compared with.
	NActionSamples int `yaml:"n_action_samples"`
	// WeightTemp is the inverse temperature of the actor's weights, MaxWeight what bounds them; 0
	// does not.
	WeightTemp float64 `yaml:"weight_temp"`
	MaxWeight  float64 `yaml:"max_weight"`

	offpolicy.CriticSettings `yaml:",inline"`
	// Config is the network: Hidden are the layers of the actor, and of each critic and v unless
	// CriticHidden names others.
	network.Config `yaml:",inline"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// The values of Config.Advantage.
const (
	ofExpectile = "expectile"
	ofPolicy    = "policy"
	ofReturn    = "return"
)

// name is what errors call the algorithm.
func (c *Config) name() string {
	return map[string]string{ofExpectile: "iql", ofPolicy: "awac", ofReturn: "awr"}[c.Advantage]
}

// critics reports whether actions are evaluated.
func (c *Config) critics() bool { return c.Advantage != ofReturn }

// logStd are the bounds of log σ.
func (c *Config) logStd() (low, high float64) {
	if c.Advantage == ofPolicy {
		return -6, 0
	}
	return -5, 2
}

// Defaults returns d3rlpy's values of IQL.
func Defaults() Config {
	s := offpolicy.Defaults()
	s.LearningRate, s.LearningStarts = 3e-4, 0
	return Config{
		Settings: s, Advantage: ofExpectile, Expectile: 0.7, NActionSamples: 1, WeightTemp: 3, MaxWeight: 100, CriticSettings: offpolicy.CriticSettings{Critics: 2},
		Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{256, 256}, Activation: "relu"},
	}
}

// AWACDefaults returns d3rlpy's values of AWAC.
func AWACDefaults() Config {
	c := Defaults()
	c.Advantage, c.BatchSize, c.WeightTemp, c.MaxWeight = ofPolicy, 1024, 1, 0
	return c
}

// AWRDefaults returns the authors' values of AWR, with the optimiser and the rates of the others.
func AWRDefaults() Config {
	c := Defaults()
	c.Advantage, c.NSteps, c.WeightTemp, c.MaxWeight = ofReturn, 100, 1, 20
	return c
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.OneOf("advantage", c.Advantage, ofExpectile, ofPolicy, ofReturn)
	p.Check(c.Expectile > 0 && c.Expectile < 1, "expectile", "is %g, expected a number between 0 and 1", c.Expectile)
	p.AtLeast("n_action_samples", c.NActionSamples, 1)
	p.NonNegative("weight_temp", c.WeightTemp)
	p.NonNegative("max_weight", c.MaxWeight)
	return p.Err()
}
