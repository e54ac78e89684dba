package offline

import "github.com/onnxrl/onnxrl/configs"

// Config is the section dataset of a document.
type Config struct {
	// Path is the folder of the data set.
	Path string `yaml:"path"`
	// Share is the part of each batch that is drawn from it. 1 is offline: no environment is
	// stepped but in validation, train.num_envs is 1, and train.total_env_steps counts rounds, that
	// is updates for each train_freq. Below 1 the agent acts in the environment, and draws the rest
	// from its own replay.
	Share float64 `yaml:"share"`
	// Validation is the share of the episodes that are held out, drawn by Seed; evaluations have
	// action_diff, or action_match, and action_score on them.
	Validation float64 `yaml:"validation"`
	Seed       uint64  `yaml:"seed"`
}

// SetDefaults implements configs.Defaulter: a section that is given asks for learning offline.
func (c *Config) SetDefaults() { *c = Config{Share: 1} }

// Validate implements configs.Validator.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Path != "", "path", "required: the folder of a data set, such as onnxrl record makes")
	p.Check(c.Share > 0 && c.Share <= 1, "share", "is %g, expected a share of each batch above 0 and at most 1", c.Share)
	p.Check(c.Validation >= 0 && c.Validation < 1, "validation", "is %g, expected a share of the episodes from 0 to below 1", c.Validation)
	return p.Err()
}
