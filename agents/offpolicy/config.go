package offpolicy

import (
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Settings are those of every algorithm that learns from a replay.
type Settings struct {
	// LearningRate is what LearningRateSchedule begins with, which counts env steps; without steps
	// of its own it lasts as long as the run. A critic's own rate changes in proportion.
	LearningRate         float64        `yaml:"learning_rate"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// Optimizer is one of sgd, rmsprop, adam, adamw, lamb or lion; its learning rate is LearningRate.
	Optimizer optim.Config `yaml:"optimizer"`
	// MaxGradNorm limits the norm of the gradient, of actor and critics each by itself; 0 does not.
	MaxGradNorm float64 `yaml:"max_grad_norm"`

	// BufferSize is the number of transitions that are kept, over all environments.
	BufferSize int `yaml:"buffer_size"`
	// LearningStarts is the number of env steps with random actions before the first update.
	LearningStarts int `yaml:"learning_starts"`
	// BatchSize is the number of transitions of an update.
	BatchSize int `yaml:"batch_size"`
	// NSteps is the number of rewards in a target before the value of what follows.
	NSteps int `yaml:"n_steps"`
	// Gamma discounts what comes later, by as much for each step.
	Gamma float64 `yaml:"gamma"`
	// Tau is how far the target networks move, of the way to the networks that they follow; 1 is a
	// copy.
	Tau float64 `yaml:"tau"`
	// TrainFreq is the number of rounds between learner steps, or episode, which is one after each
	// round in which an episode has ended; GradientSteps is the number of updates in each, -1 one
	// for each env step since the last.
	TrainFreq     TrainFreq `yaml:"train_freq"`
	GradientSteps int       `yaml:"gradient_steps"`
}

// Renamed implements configs.Renamer.
func (Settings) Renamed() map[string]string {
	return map[string]string{"grad_clip": "max_grad_norm", "schedule": "learning_rate_schedule"}
}

// Defaults returns what Stable-Baselines3 has for SAC and TD3 alike; it leaves LearningRate to the
// algorithm.
func Defaults() Settings {
	return Settings{LearningRateSchedule: optim.Schedule{Relative: true}, Optimizer: optim.Config{Kind: "adam"}, BufferSize: 1_000_000, LearningStarts: 100, BatchSize: 256, NSteps: 1, Gamma: 0.99, Tau: 0.005, TrainFreq: 1, GradientSteps: 1}
}

// Validate reports all problems of the settings.
func (c Settings) Validate() error {
	var p configs.Problems
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.LearningRateSchedule.Follows(), "learning_rate_schedule.initial", "is %g, but the schedule begins with learning_rate", c.LearningRateSchedule.Initial)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.NonNegative("max_grad_norm", c.MaxGradNorm)
	p.AtLeast("buffer_size", c.BufferSize, 1)
	p.AtLeast("learning_starts", c.LearningStarts, 0)
	p.AtLeast("batch_size", c.BatchSize, 1)
	p.Check(c.BatchSize <= c.BufferSize, "batch_size", "is %d, more than the buffer_size of %d", c.BatchSize, c.BufferSize)
	p.AtLeast("n_steps", c.NSteps, 1)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.InRange("tau", c.Tau, 0, 1)
	p.Check(c.TrainFreq == EachEpisode || c.TrainFreq > 0, "train_freq", "is %d, expected a number of rounds, or %s", int(c.TrainFreq), episodeWord)
	p.Check(c.GradientSteps == -1 || c.GradientSteps > 0, "gradient_steps", "is %d, expected a number of updates, or -1 for one for each env step", c.GradientSteps)
	return p.Err()
}

// CriticSettings are those of critics of actions.
type CriticSettings struct {
	// CriticLearningRate is the critics' learning rate, unless 0; then it is the actor's.
	CriticLearningRate float64 `yaml:"critic_learning_rate,omitempty"`
	// Critics is the number of critics; the least of them counts.
	Critics int `yaml:"n_critics"`
	// CriticHidden are the hidden layers of each critic; none are those of the actor.
	CriticHidden []int `yaml:"critic_hidden,flow,omitempty"`
}

// Validate reports all problems of the settings.
func (c CriticSettings) Validate() error {
	var p configs.Problems
	p.NonNegative("critic_learning_rate", c.CriticLearningRate)
	p.AtLeast("n_critics", c.Critics, 1)
	for _, width := range c.CriticHidden {
		p.AtLeast("critic_hidden", width, 1)
	}
	return p.Err()
}

// Layers returns the hidden layers of a critic, given the actor's.
func (c CriticSettings) Layers(actor []int) []int {
	if len(c.CriticHidden) > 0 {
		return c.CriticHidden
	}
	return actor
}

// BC keeps an actor near recorded actions, as TD3+BC does (Fujimoto & Gu 2021, arXiv 2106.06860).
type BC struct {
	// Alpha weighs the values, which are divided by the mean of their sizes, against the squared
	// distance to the recorded actions. 0 clones alone.
	Alpha float64 `yaml:"alpha"`
}

// SetDefaults implements configs.Defaulter: the paper's weight.
func (c *BC) SetDefaults() { *c = BC{Alpha: 2.5} }

// Validate implements configs.Validator.
func (c BC) Validate() error {
	var p configs.Problems
	p.NonNegative("alpha", c.Alpha)
	return p.Err()
}

// Lambda is the weight of values such as these: alpha over the mean of their sizes.
func (c *BC) Lambda(values []float32) float32 {
	sum := 0.0
	for _, x := range values {
		sum += math.Abs(float64(x))
	}
	if sum == 0 {
		return 0
	}
	return float32(c.Alpha * float64(len(values)) / sum)
}
