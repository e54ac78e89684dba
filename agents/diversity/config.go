package diversity

import (
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Config describes the bonus of skills that can be told apart.
type Config struct {
	// Kind is diayn or infonce; none pays nothing, as without the section.
	Kind string `yaml:"kind"`
	// Beta multiplies the bonus in rewards. It is what BetaSchedule begins with, which counts env
	// steps; without steps of its own it lasts as long as the run.
	Beta         float64        `yaml:"beta"`
	BetaSchedule optim.Schedule `yaml:"beta_schedule,omitempty"`
	// Features are the inputs by which skills are recognised: fields of the next observation, and action.
	Features []string `yaml:"features,flow"`
	// Hidden are the layers of relu of the discriminator, or of each side of the critic.
	Hidden []int `yaml:"hidden,flow"`
	// LearningRate is that of its Adam.
	LearningRate float64 `yaml:"learning_rate"`
	// BatchSize is the number of transitions that infonce contrasts with each other, of which the
	// agent's batch_size is a multiple; 0 is all of them.
	BatchSize int `yaml:"batch_size"`
	// Embedding is the number of dimensions in which infonce compares features and skills.
	Embedding int `yaml:"embedding"`
	// Concentration is the largest concentration of diayn's densities of skills on the sphere.
	Concentration float64 `yaml:"concentration"`
	// Normalize divides the bonus by its running scale.
	Normalize bool `yaml:"normalize"`
}

// The kinds, and the feature that is no field of the observation.
const (
	DIAYN   = "diayn"
	InfoNCE = "infonce"
	None    = "none"

	ActionFeature = "action"
)

// Defaults returns DIAYN's discriminator with the layers of Stable-Baselines3's actors, and the
// critic of Poole et al. (2019, arXiv 1905.06922).
func Defaults() Config {
	return Config{Kind: DIAYN, Beta: 0.5, BetaSchedule: optim.Schedule{Relative: true}, Hidden: []int{256, 256}, LearningRate: 3e-4, Embedding: 32, Concentration: 10, Normalize: true}
}

// SetDefaults implements configs.Defaulter.
func (c *Config) SetDefaults() { *c = Defaults() }

// Editable are the keys that a learner takes while it lives.
var Editable = []string{"diversity.beta", "diversity.beta_schedule", "diversity.learning_rate", "diversity.normalize"}

// Validate implements configs.Validator. Whether the environment has skill and features is found
// out by [New].
func (c Config) Validate() error {
	var p configs.Problems
	if p.OneOf("kind", c.Kind, DIAYN, InfoNCE, None); c.Kind == None {
		return p.Err()
	}
	p.NonNegative("beta", c.Beta)
	p.Check(c.BetaSchedule.Follows(), "beta_schedule.initial", "is %g, but the schedule begins with beta", c.BetaSchedule.Initial)
	p.NotEmpty("features", c.Features)
	for _, width := range c.Hidden {
		p.AtLeast("hidden", width, 1)
	}
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.BatchSize == 0 || c.BatchSize >= 2 && c.Kind == InfoNCE, "batch_size", "is %d, expected 0 or, with kind %s, at least 2", c.BatchSize, InfoNCE)
	p.AtLeast("embedding", c.Embedding, 1)
	p.Positive("concentration", c.Concentration)
	p.Check(!(c.Concentration > 50), "concentration", "is %g, expected at most 50", c.Concentration)
	return p.Err()
}

// On reports whether there is a bonus. It is false where there is no section.
func (c *Config) On() bool { return c != nil && c.Kind != None }

// Fits reports what does not go together with an agent's batch_size and n_steps. It is nil where
// there is no section.
func (c *Config) Fits(p *configs.Problems, batchSize, nSteps int) {
	if !c.On() {
		return
	}
	p.Check(nSteps == 1, "n_steps", "is %d, but the bonus of diversity is known of single transitions", nSteps)
	p.Check(c.BatchSize == 0 || batchSize%c.BatchSize == 0, "diversity.batch_size", "is %d, and the batch_size of %d is no multiple of it", c.BatchSize, batchSize)
	p.Check(c.Kind != InfoNCE || batchSize >= 2, "batch_size", "is %d, and diversity contrasts transitions with each other", batchSize)
}
