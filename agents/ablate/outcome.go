package ablate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

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

// outcomeFile is in a run's directory.
const outcomeFile = "outcome.json"

// readOutcome returns nil where the directory has none.
func readOutcome(dir string) (*Outcome, error) {
	path := filepath.Join(dir, outcomeFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var o Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, fmt.Errorf("%s: %w; delete the file to evaluate the run again", path, err)
	}
	return &o, nil
}

func writeOutcome(dir string, o *Outcome) error { return writeJSON(filepath.Join(dir, outcomeFile), o) }

func writeJSON(path string, v any) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	})
}
