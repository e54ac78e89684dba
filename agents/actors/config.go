package actors

import "github.com/onnxrl/onnxrl/configs"

// Config is the part of a run's document that says who acts.
type Config struct {
	// Count is the number of actors, each with as many of the environments, that act while the
	// learner learns: RLlib's num_env_runners, Sample Factory's num_workers. 0 acts and learns in
	// turns.
	Count int `yaml:"count"`
	// MaxPolicyLag is how many updates the parameters that act may be behind those that learn from
	// what they did. 0 lets actors wait for the learner, and has the same results each time.
	MaxPolicyLag int `yaml:"max_policy_lag"`
	// Processes gives each actor a process of its own, for environments that use a processor's time
	// or may crash: one that ends is started again, up to three times in a row, and the unroll that
	// it was playing is lost. Without, actors share the process of the learner.
	Processes bool `yaml:"processes"`
}

// Defaults returns no actors; if there were some, they would be one update behind at most.
func Defaults() Config { return Config{MaxPolicyLag: 1} }

// On reports whether there are actors.
func (c Config) On() bool { return c.Count > 0 }

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("count", c.Count)
	p.NonNegative("max_policy_lag", c.MaxPolicyLag)
	return p.Err()
}
