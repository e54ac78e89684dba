package gymnasium

import (
	"errors"
	"fmt"
	"strings"
)

// PythonError is an error that the worker process reports: it is well, but an environment, a
// package or an id is not.
type PythonError struct {
	// Kind is "exception" where Text ends with a Python traceback, else what was refused:
	// "package", "id", "lacks" (a package that the environment needs), "open", "space", "answer" or
	// "load".
	Kind string `json:"kind"`
	// Env is the environment in which it happened, counted within the worker; -1 when in none.
	Env  int    `json:"env"`
	Text string `json:"text"`
}

func (e *PythonError) Error() string {
	if e.Kind == "exception" {
		return "python raised an exception:\n" + indented(e.Text)
	}
	return e.Text
}

// WorkerError says that a worker process has ended, or was ended because it did not answer in time.
type WorkerError struct {
	// Pid is the process.
	Pid int
	// Reason says how it ended.
	Reason string
	// Output is the end of what it wrote to its standard output and error.
	Output string
}

func (e *WorkerError) Error() string {
	s := fmt.Sprintf("python process %d %s", e.Pid, e.Reason)
	if e.Output == "" {
		return s + "; it had written nothing"
	}
	return s + "; its last output was\n" + indented(e.Output)
}

func indented(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }

// ended reports whether err says that a worker process is gone.
func ended(err error) bool {
	var w *WorkerError
	return errors.As(err, &w)
}
