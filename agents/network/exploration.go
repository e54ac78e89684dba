package network

import "github.com/onnxrl/onnxrl/configs"

// Exploration is the part of an algorithm's configuration that describes the noise of actions in a
// Box; algorithms inline it.
type Exploration struct {
	// LogStdInit is the first log standard deviation: of the actions, or of the elements of gSDE's
	// matrix.
	LogStdInit float64 `yaml:"log_std_init"`
	// UseSDE chooses generalised state-dependent exploration, SDESampleFreq after how many rounds
	// its matrices are drawn again; -1 does that at the beginning of each rollout only.
	UseSDE        bool `yaml:"use_sde"`
	SDESampleFreq int  `yaml:"sde_sample_freq"`
}

// DefaultExploration returns Stable-Baselines3's defaults.
func DefaultExploration() Exploration { return Exploration{SDESampleFreq: -1} }

// Validate reports the problems of the configuration's own fields.
func (e Exploration) Validate() error {
	var p configs.Problems
	p.InRange("log_std_init", e.LogStdInit, -20, 20)
	p.Check(e.SDESampleFreq == -1 || e.SDESampleFreq > 0, "sde_sample_freq", "is %d, expected a number of rounds, or -1 for once in each rollout", e.SDESampleFreq)
	return p.Err()
}
