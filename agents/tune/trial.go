package tune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The states of a trial.
const (
	Running  = "running"
	Complete = "complete"
	Pruned   = "pruned"
	Failed   = "failed"
)

// Trial is one set of values and what came of it; its JSON is a line of the study's log, whose keys
// are stable.
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

// header is the first line of a log: what its trials are of.
type header struct {
	Format string `json:"format"`
	Seed   uint64 `json:"seed"`
	// Space is the digest of the search space.
	Space string `json:"space"`
}

const format = "onnxrl trials v1"

// study is the log of a search. Trials are in the order of their numbers.
type study struct {
	path   string
	head   header
	space  Space
	key    rng.Key
	trials []Trial
}

// save writes the whole log anew, at once.
func (s *study) save() error {
	return atomicfile.WriteFile(s.path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s.head); err != nil {
			return err
		}
		for _, t := range s.trials {
			if err := enc.Encode(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// load reads a log, which must be of the same search.
func (s *study) load(text []byte) error {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var h header
	if err := run.DecodeLine(lines[0], &h); err != nil {
		return fmt.Errorf("%s:1: %w", s.path, err)
	}
	if h != s.head {
		return fmt.Errorf("%s: it is the log of another search: %+v, expected %+v", s.path, h, s.head)
	}
	for i, line := range lines[1:] {
		var t Trial
		if err := run.DecodeLine(line, &t); err != nil {
			return fmt.Errorf("%s:%d: %w", s.path, i+2, err)
		}
		err := s.space.check(t.Values)
		switch {
		case err != nil:
		case t.Number != i:
			err = fmt.Errorf("it is number %d, expected %d", t.Number, i)
		case !slices.Contains([]string{Running, Complete, Pruned, Failed}, t.State):
			err = fmt.Errorf("its state is %q", t.State)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: the trial does not fit: %w", s.path, i+2, err)
		}
		s.trials = append(s.trials, t)
	}
	return nil
}
