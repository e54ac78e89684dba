package ablate

import "github.com/onnxrl/onnxrl/export/report/performance"

// Outcome is how a trained run did on the validation split. The JSON keys are stable.
type Outcome struct {
	// From and To are the dates of the first and last bar, Bars their number.
	From string `json:"from"`
	To   string `json:"to"`
	Bars int    `json:"bars"`
	// Metrics are the policy's; Reference those of the bar to beat in the same environment, and
	// ReferenceName what it is.
	Metrics       map[string]performance.Number `json:"metrics"`
	ReferenceName string                        `json:"reference_name,omitempty"`
	Reference     map[string]performance.Number `json:"reference,omitempty"`
	// LookAhead says what in the run knows the future, one sentence each.
	LookAhead []string `json:"look_ahead,omitempty"`
	// EnvSteps is how many were trained, and ConfigSHA256 identifies the run's effective
	// experiment.
	EnvSteps     int64  `json:"env_steps"`
	ConfigSHA256 string `json:"config_sha256"`
	// StepsPerSecond is the speed of the process that finished the run, from its start to the end
	// of the evaluation; 0 where it had nothing left to train.
	StepsPerSecond performance.Number `json:"env_steps_per_second"`
}
