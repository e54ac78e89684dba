package es

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Settings are what both strategies have in common.
type Settings struct {
	// EvalEpisodes is the number of episodes that each member is measured by in each generation.
	EvalEpisodes int `yaml:"n_eval_episodes"`
	// Config is the network: Hidden are the layers of the policy.
	network.Config `yaml:",inline"`

	// Options choose by patterns of names which parameters are perturbed.
	models.Options `yaml:",inline"`
}

// Validate reports the problems of the configuration's own fields.
func (s Settings) Validate() error {
	var p configs.Problems
	p.AtLeast("n_eval_episodes", s.EvalEpisodes, 1)
	p.Check(len(s.Privileged) == 0, "privileged", "is for critics, and evolution strategies have none")
	return p.Err()
}

// OpenAIConfig describes an agent of kind openai_es. [OpenAIDefaults] returns the values of
// openai/evolution-strategies-starter; the package comment lists their sources.
type OpenAIConfig struct {
	// Population is the number of members, an even one: each perturbation has two, one with it
	// added and one with it subtracted.
	Population int `yaml:"population"`
	// Sigma is the standard deviation of the perturbations of each parameter.
	Sigma float64 `yaml:"sigma"`

	// LearningRate is that of all parameters. The steps of LearningRateSchedule are env steps, and
	// linear and cosine without steps take as long as the run.
	LearningRate         float64        `yaml:"learning_rate"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// Optimizer takes the steps; decay is that of the weights. Its learning rate is given above.
	Optimizer optim.Config `yaml:"optimizer"`

	Settings `yaml:",inline"`
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c OpenAIConfig) Validate() error {
	var p configs.Problems
	p.Check(c.Population >= 2 && c.Population%2 == 0, "population", "is %d, expected an even number of members, two for each perturbation", c.Population)
	p.Positive("sigma", c.Sigma)
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.Check(c.LearningRateSchedule.Follows(), "learning_rate_schedule.initial", "is %g, but the schedule begins with learning_rate", c.LearningRateSchedule.Initial)
	return p.Err()
}

// OpenAIDefaults returns the values of openai/evolution-strategies-starter, but for the population
// and the layers, which are small here.
func OpenAIDefaults() OpenAIConfig {
	return OpenAIConfig{
		Population: 64, Sigma: 0.02, LearningRate: 0.01, LearningRateSchedule: optim.Schedule{Relative: true}, Optimizer: optim.Config{Kind: "adam", Decay: 0.005},
		Settings: settings(64, 64),
	}
}

// CMAConfig describes an agent of kind cma_es. [CMADefaults] returns Hansen's values.
type CMAConfig struct {
	// Population is the number of members; 0 is 4 + ⌊3·ln n⌋ for n parameters.
	Population int `yaml:"population"`
	// Sigma is the initial standard deviation of the members in each parameter.
	Sigma float64 `yaml:"sigma"`

	Settings `yaml:",inline"`
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c CMAConfig) Validate() error {
	var p configs.Problems
	p.Check(c.Population == 0 || c.Population >= 4, "population", "is %d, expected at least 4 members, or 0 for 4 + ⌊3·ln n⌋", c.Population)
	p.Positive("sigma", c.Sigma)
	return p.Err()
}

// CMADefaults returns Hansen's values, for a policy with one small layer.
func CMADefaults() CMAConfig { return CMAConfig{Sigma: 0.5, Settings: settings(8)} }

func settings(hidden ...int) Settings {
	return Settings{EvalEpisodes: 1, Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: hidden, Activation: "tanh"}}
}
