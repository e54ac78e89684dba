package bc

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Config describes a BC agent. [Defaults] returns d3rlpy's values; the package comment lists their
// sources.
type Config struct {
	// LearningRate is what LearningRateSchedule begins with, which counts rounds; without steps of
	// its own it lasts as long as the run.
	LearningRate         float64        `yaml:"learning_rate"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// Optimizer is one of sgd, rmsprop, adam, adamw, lamb or lion; its learning rate is LearningRate.
	Optimizer optim.Config `yaml:"optimizer"`
	// MaxGradNorm limits the norm of the gradient; 0 does not.
	MaxGradNorm float64 `yaml:"max_grad_norm"`
	// BatchSize is the number of transitions of an update.
	BatchSize int `yaml:"batch_size"`
	// Beta weighs the squares of log-probabilities, for actions that are not in a box.
	Beta float64 `yaml:"beta"`
	// Ensemble is the number of policies, UncertaintyPenalty what their disagreement costs.
	Ensemble           int     `yaml:"ensemble"`
	UncertaintyPenalty float64 `yaml:"uncertainty_penalty"`
	// Bounds is a field of the observation that says how far each component of an action in a box
	// may go, and BoundsPenalty weighs the squares by which the policy goes beyond.
	Bounds        string  `yaml:"bounds,omitempty"`
	BoundsPenalty float64 `yaml:"bounds_penalty"`

	// Config is the network: encoder, hidden layers and activation.
	network.Config `yaml:",inline"`
	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Defaults returns d3rlpy's values.
func Defaults() Config {
	s := offpolicy.Defaults()
	return Config{
		LearningRate: 1e-3, LearningRateSchedule: s.LearningRateSchedule, Optimizer: s.Optimizer, BatchSize: 100, Beta: 0.5, Ensemble: 1, BoundsPenalty: 1,
		Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{256, 256}, Activation: "relu"},
	}
}

// settings are those of a learner that takes an update in every round.
func (c *Config) settings() offpolicy.Settings {
	s := offpolicy.Defaults()
	s.LearningRate, s.LearningRateSchedule, s.Optimizer, s.MaxGradNorm, s.BatchSize, s.LearningStarts = c.LearningRate, c.LearningRateSchedule, c.Optimizer, c.MaxGradNorm, c.BatchSize, 0
	return s
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.LearningRateSchedule.Follows(), "learning_rate_schedule.initial", "is %g, but the schedule begins with learning_rate", c.LearningRateSchedule.Initial)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.NonNegative("max_grad_norm", c.MaxGradNorm)
	p.AtLeast("batch_size", c.BatchSize, 1)
	p.NonNegative("beta", c.Beta)
	p.AtLeast("ensemble", c.Ensemble, 1)
	p.NonNegative("uncertainty_penalty", c.UncertaintyPenalty)
	p.NonNegative("bounds_penalty", c.BoundsPenalty)
	p.Check(c.UncertaintyPenalty == 0 || c.Ensemble > 1, "uncertainty_penalty", "is %g, but one policy cannot disagree; give an ensemble", c.UncertaintyPenalty)
	p.Check(c.Ensemble == 1 || c.Policy.Kind == "", "ensemble", "is %d, but a user-supplied policy is one", c.Ensemble)
	return p.Err()
}
