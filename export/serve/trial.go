package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Trial is what [Options.Prove] tries before a version is compiled in the server's process.
type Trial struct {
	Model   *onnx.Model
	Options engine.Options
	// Rows are the sizes of batches to run: one row, the most that are combined, and those of
	// warm-ups.
	Rows []int
}

// CrashError says that trying a version ended the process in which it was tried.
type CrashError struct {
	// How names the signal, or says how else the process ended; Stage what it was doing.
	How, Stage string
	// Killed says that the process was killed from outside, as the system does where memory runs
	// out.
	Killed bool
}

func (e *CrashError) Error() string {
	return fmt.Sprintf("loading it would have ended this process: %s while %s, in a process of its own that tried it first", e.How, e.Stage)
}

// prove has a version tried elsewhere, where the server's options say how.
func (v *version) prove(ctx context.Context, l *loading, o engine.Options) error {
	s := v.model.server
	if s.options.Prove == nil {
		return nil
	}
	l.at("trying it in a process of its own")
	most := v.config.MaxBatch
	if most == 0 {
		most = s.options.MaxBatch
	}
	rows := []int{1, most}
	for _, w := range v.config.WarmUps {
		rows = append(rows, max(w.Batch, 1))
	}
	slices.Sort(rows)
	err := s.options.Prove(ctx, Trial{Model: v.content.Model, Options: o, Rows: slices.Compact(rows)})
	if errors.As(err, new(*CrashError)) {
		s.crashes.Add(1)
	}
	return err
}

// Crashes implements [Service].
func (s *Server) Crashes() int { return int(s.crashes.Load()) }
