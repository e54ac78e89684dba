package evaluate

import "onnxrl/configs"

// Config is the eval section of a run.
type Config struct {
	// Deterministic takes the best action; otherwise actions are drawn from the policy.
	Deterministic bool `yaml:"deterministic"`
	// UseFee charges the environment's fees.
	UseFee bool `yaml:"use_fee"`
	// Metrics are those of the short table, in order.
	Metrics []string `yaml:"metrics"`
}

// Defaults returns the specification's values.
func Defaults() Config {
	return Config{Deterministic: true, UseFee: true, Metrics: []string{"total_return", "sharpe", "volatility", "max_drawdown"}}
}

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.NotEmpty("metrics", c.Metrics)
	return p.Err()
}
