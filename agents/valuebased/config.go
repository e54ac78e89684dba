package valuebased

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// Settings are those of every algorithm of the family.
type Settings struct {
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

// Defaults returns what Stable-Baselines3 has for DQN and its descendants alike, settings and
// network; what it does not have is off.
func Defaults() (Settings, network.Config) {
	s := offpolicy.Defaults()
	s.BatchSize, s.TrainFreq, s.Tau = 32, 4, 1
	return Settings{Settings: s, TargetUpdateInterval: 10_000, ExplorationInitial: 1, Prioritised: Prioritised{Alpha: 0.6, Eps: 1e-6, Beta: 0.4, BetaFinal: 1}},
		network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{64, 64}, Activation: "relu"}
}

// Validate reports all problems of the family's own settings.
func (s Settings) Validate() error {
	var p configs.Problems
	p.Check(s.Tau > 0, "tau", "must be above 0, is %g", s.Tau)
	p.AtLeast("target_update_interval", s.TargetUpdateInterval, 1)
	p.InRange("exploration_fraction", s.ExplorationFraction, 0, 1)
	p.InRange("exploration_initial_eps", s.ExplorationInitial, 0, 1)
	p.InRange("exploration_final_eps", s.ExplorationFinal, 0, 1)
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
