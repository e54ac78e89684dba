package tune

import "github.com/onnxrl/onnxrl/export/report/performance"

// The states of a trial.
const (
	Running  = "running"
	Complete = "complete"
	Pruned   = "pruned"
	Failed   = "failed"
)

// Trial is one set of values and what came of it; its JSON is a line of the study's log, which has
// one when it begins and one when it is finished. The keys are stable.
type Trial struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	Values Values `json:"values"`
	// Value is the metric of the last evaluation, null where it is not a number or there was none,
	// and Intermediate are those of all, in order.
	Value        performance.Number   `json:"value"`
	Intermediate []performance.Number `json:"intermediate"`
	// Error says why the trial has failed.
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`

	// claimed says that this process runs it.
	claimed bool
}

// finished reports whether there is nothing left to do.
func (t *Trial) finished() bool { return t.State != Running }
