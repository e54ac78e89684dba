package dqn

import (
	"slices"

	"onnxrl/agents/network"
	"onnxrl/configs"
	"onnxrl/models"
	"onnxrl/models/encoder/crossasset"
	"onnxrl/runtime/optim"
)

// Config describes a DQN agent. [Defaults] returns Stable-Baselines3's values.
type Config struct {
	// LearningRate is the learning rate; Schedule multiplies it by a factor that begins at 1 and counts env steps. A linear or cosine one without steps takes the whole run.
	LearningRate float64        `yaml:"learning_rate"`
	Schedule     optim.Schedule `yaml:"schedule,omitempty"`
	// BufferSize is the number of transitions that are kept, LearningStarts the number of env steps before the first gradient step, in which all actions are random.
	BufferSize     int `yaml:"buffer_size"`
	LearningStarts int `yaml:"learning_starts"`
	// BatchSize is the number of transitions of a gradient step.
	BatchSize int     `yaml:"batch_size"`
	Gamma     float64 `yaml:"gamma"`
	// TrainFreq is the number of rounds between learner steps, and GradientSteps how many gradient steps each takes; −1 is as many as env steps were taken since the last one.
	TrainFreq     int `yaml:"train_freq"`
	GradientSteps int `yaml:"gradient_steps"`
	// TargetUpdateInterval is the number of env steps after which the target network moves towards the online one, by Tau of the way; 1 is a copy.
	TargetUpdateInterval int     `yaml:"target_update_interval"`
	Tau                  float64 `yaml:"tau"`
	// An action is random with a probability that falls from ExplorationInitial to ExplorationFinal over the first ExplorationFraction of the run, straight, and then stays.
	ExplorationFraction float64 `yaml:"exploration_fraction"`
	ExplorationInitial  float64 `yaml:"exploration_initial_eps"`
	ExplorationFinal    float64 `yaml:"exploration_final_eps"`
	// GradClip limits the norm of the whole gradient; 0 does not.
	GradClip float64 `yaml:"grad_clip"`

	// Double selects the following action by the online network and judges it by the target network.
	Double bool `yaml:"double"`
	// Duelling makes the action values of a state's value and advantages.
	Duelling bool `yaml:"duelling"`
	// NSteps is the number of rewards before a value is bootstrapped.
	NSteps int `yaml:"n_steps"`
	// Prioritised samples in proportion to errors instead of uniformly.
	Prioritised Prioritised `yaml:"prioritised"`

	// Optimizer is any of package optim; its learning rate is learning_rate.
	Optimizer optim.Config `yaml:"optimizer"`
	// Config is the network: encoder, hidden layers and activation.
	network.Config `yaml:",inline"`
	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Prioritised describes prioritised replay (Schaul et al. 2016); the defaults are the paper's of the proportional variant.
type Prioritised struct {
	Enabled bool `yaml:"enabled"`
	// Alpha is the exponent of priorities, Eps is added to errors.
	Alpha float64 `yaml:"alpha"`
	Eps   float64 `yaml:"eps"`
	// Beta is the exponent of importance weights at the beginning of the run; it rises straight to BetaFinal at its end.
	Beta      float64 `yaml:"beta"`
	BetaFinal float64 `yaml:"beta_final"`
}

// Defaults returns the defaults of stable_baselines3.DQN; what it does not have is off.
func Defaults() Config {
	return Config{
		LearningRate: 1e-4, BufferSize: 1_000_000, LearningStarts: 100, BatchSize: 32, Gamma: 0.99, TrainFreq: 4, GradientSteps: 1, TargetUpdateInterval: 10_000, Tau: 1,
		ExplorationFraction: 0.1, ExplorationInitial: 1, ExplorationFinal: 0.05, GradClip: 10, NSteps: 1,
		Prioritised: Prioritised{Alpha: 0.6, Eps: 1e-6, Beta: 0.4, BetaFinal: 1}, Optimizer: optim.Config{Kind: "adam"},
		Config: network.Config{CrossAsset: crossasset.Defaults(), Hidden: []int{64, 64}, Activation: "relu"},
	}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.Schedule.Initial == 0 || c.Schedule.Initial == 1, "schedule.initial", "is %g, but the schedule is a factor that begins at 1", c.Schedule.Initial)
	p.AtLeast("buffer_size", c.BufferSize, 1)
	p.NonNegative("learning_starts", c.LearningStarts)
	p.AtLeast("batch_size", c.BatchSize, 1)
	p.Check(c.BatchSize <= c.BufferSize, "buffer_size", "is %d, less than the %d transitions of a batch", c.BufferSize, c.BatchSize)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.AtLeast("train_freq", c.TrainFreq, 1)
	p.Check(c.GradientSteps >= 1 || c.GradientSteps == -1, "gradient_steps", "must be at least 1, or -1 for as many as env steps, is %d", c.GradientSteps)
	p.AtLeast("target_update_interval", c.TargetUpdateInterval, 1)
	p.Check(c.Tau > 0 && c.Tau <= 1, "tau", "must be above 0 and at most 1, is %g", c.Tau)
	p.InRange("exploration_fraction", c.ExplorationFraction, 0, 1)
	p.InRange("exploration_initial_eps", c.ExplorationInitial, 0, 1)
	p.InRange("exploration_final_eps", c.ExplorationFinal, 0, 1)
	p.NonNegative("grad_clip", c.GradClip)
	p.AtLeast("n_steps", c.NSteps, 1)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
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

// relative reports whether a schedule is measured by the length of the run.
func relative(s optim.Schedule) bool {
	return s.Steps == 0 && slices.Contains([]string{"linear", "cosine"}, s.Kind)
}
