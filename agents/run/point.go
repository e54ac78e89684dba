package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Point splits what is to be resumed, or evaluated: a run directory, or one of its checkpoints,
// from which the run is to go on. From is empty for the former.
func Point(path string) (run, from string, err error) {
	if isFile(filepath.Join(path, ConfigFile)) {
		return path, "", nil
	}
	// Parents by name: the path may be relative and short.
	run = filepath.Join(path, "..", "..")
	switch {
	case filepath.Base(path) == CheckpointDir && isFile(filepath.Join(path, "..", ConfigFile)):
		run, err = filepath.Join(path, ".."), errors.New("it holds the checkpoints of a run")
	case !isFile(filepath.Join(run, ConfigFile)):
		return path, "", nil // Opening it reports what it lacks to be a run.
	}
	list, lerr := checkpoint.List(filepath.Join(run, CheckpointDir))
	if lerr != nil {
		return "", "", lerr
	}
	var names []string
	for _, e := range list {
		if err == nil && sameFile(e.Path, path) {
			return run, e.Path, nil
		}
		names = append(names, filepath.Base(e.Path))
	}
	if err == nil {
		err = errors.New("there is no such checkpoint")
	}
	return "", "", fmt.Errorf("%s: %w; expected %s or one of its checkpoints: %s", path, err, run, strings.Join(names, ", "))
}

// later counts the checkpoints after a step, and says of which step the last one is.
func (d *Dir) later(step int64) (n int, last int64, err error) {
	list, err := checkpoint.List(filepath.Join(d.path, CheckpointDir))
	for _, e := range list {
		if e.Step > step {
			n, last = n+1, e.Step
		}
	}
	return n, last, err
}

// rewind removes the checkpoints after the one that the run goes on from, which has been loaded. It
// is said: the run writes them again, but whoever has named the wrong one is to know.
func (d *Dir) rewind(step int64) error {
	n, last, err := d.later(step)
	if err != nil || n == 0 {
		return err
	}
	if d.o.Note != nil {
		d.o.Note(fmt.Sprintf("note: the run goes back to step %d: its metrics from there on and %s, up to step %d, are removed and made again", step, checkpoints(n), last))
	}
	return d.store.DropAfter(step)
}

func checkpoints(n int) string {
	if n == 1 {
		return "1 later checkpoint"
	}
	return fmt.Sprintf("%d later checkpoints", n)
}
