package onpolicy

import "github.com/onnxrl/onnxrl/configs"

// VTraceConfig holds the thresholds of the importance weights; see rlmath.VTraceConfig. λ is
// gae_lambda.
type VTraceConfig struct {
	// ClipRho limits the ratios of probabilities in the errors of the values, ClipC those that
	// carry them back, and ClipPGRho those of the policy's gradient, which a surrogate does not
	// have.
	ClipRho   float64 `yaml:"clip_rho"`
	ClipC     float64 `yaml:"clip_c"`
	ClipPGRho float64 `yaml:"clip_pg_rho"`
}

// Validate implements configs.Validator.
func (c VTraceConfig) Validate() error {
	var p configs.Problems
	p.Positive("clip_rho", c.ClipRho)
	p.Positive("clip_c", c.ClipC)
	p.Positive("clip_pg_rho", c.ClipPGRho)
	return p.Err()
}
