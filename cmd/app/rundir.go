package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// Files of a run directory.
const (
	configFile     = "config.yaml"
	sourcesFile    = "sources.json"
	metricsFile    = "metrics.jsonl"
	tensorBoardDir = "tensorboard"
	checkpointDir  = "checkpoints"
)

// runOptions say what a run directory is for.
type runOptions struct {
	// command is the subcommand that the run belongs to, and flag the one that names a new
	// directory: messages say how to go on.
	command, flag string
	// path is a new directory; resume, unless empty, the one of a run to continue, which again
	// names in a command line when it is part of something larger. Both empty keeps nothing.
	path, resume, again string
	// from is the checkpoint that the run is to go on from, empty for the newest: what is after it
	// is removed, which notes are told.
	from  string
	notes io.Writer
	// sources are the digests of what the run reads.
	sources map[string]string
	// changes lists what differs from the configuration that the run in a directory was started
	// with, without what may differ.
	changes func(dir string) ([]configs.Change, error)
	keep    checkpoint.Options
}

// runDir is a run's directory: effective configuration, digests of what is read, metrics and
// checkpoints. The empty path keeps nothing.
type runDir struct {
	runOptions
	resumed bool
	store   *checkpoint.Store
	sink    metrics.Sink
	// lost is the first error of recording metrics, which does not end a run.
	lost error
}

// openRun makes a new run directory, or opens the one to resume. A directory that holds a run is
// refused unless it is resumed, and a resumed run must have the configuration and the sources it
// was started with. Nothing is written before the directory is locked.
func openRun(o runOptions) (_ *runDir, err error) {
	r := &runDir{runOptions: o}
	if o.resume != "" {
		r.path, r.resumed = o.resume, true
	}
	if r.again == "" {
		r.again = r.path
	}
	if r.path == "" {
		return r, nil
	}
	if err := refuseRun(r.path, r.resumed, r.flag); err != nil {
		return nil, err
	}
	if r.resumed {
		if err := r.checkResume(); err != nil {
			return nil, fmt.Errorf("resume %s: %w", r.path, err)
		}
	}
	if err := os.MkdirAll(r.path, 0o755); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if r.store, err = checkpoint.OpenStore(filepath.Join(r.path, checkpointDir), o.keep); err != nil {
		return nil, err
	}
	return r, nil
}

// refuseRun returns an error when a directory that is to be new holds a run, or one that is to be
// resumed does not.
func refuseRun(path string, resumed bool, flag string) error {
	_, err := os.Stat(filepath.Join(path, configFile))
	switch {
	case err == nil && !resumed:
		return fmt.Errorf("run directory %s holds a run already: continue it with --resume %s, or choose another %s", path, path, flag)
	case err != nil && resumed:
		return fmt.Errorf("resume %s: it holds no run: %w", path, err)
	}
	return nil
}

// checkResume compares configuration and sources with those of the stopped run.
func (r *runDir) checkResume() error {
	changes, err := r.changes(r.path)
	if err != nil {
		return err
	}
	if err := refuseChanges(changes); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.path, sourcesFile))
	if err != nil {
		return err
	}
	var was map[string]string
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s: %w", sourcesFile, err)
	}
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if was[k] != r.sources[k] {
			return fmt.Errorf("the %s has changed since the run was started: SHA-256 %s, was %s", strings.TrimSuffix(k, "_sha256"), short(r.sources[k]), short(was[k]))
		}
	}
	return nil
}

// refuseChanges is the error that names the keys that have changed; nil without any.
func refuseChanges(changes []configs.Change) error {
	if len(changes) == 0 {
		return nil
	}
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.String())
	}
	return fmt.Errorf("the configuration has changed: %s", strings.Join(keys, "; "))
}

func short(digest string) string {
	if digest == "" {
		return "none"
	}
	return digest[:min(12, len(digest))] + "…"
}

// Restore loads the newest checkpoint of a resumed run, or that which it goes on from, into s and
// returns its step. A new run, and one that was stopped before its first checkpoint, begins with
// whole false.
func (r *runDir) Restore(s checkpoint.Stater) (step int64, whole bool, err error) {
	if !r.resumed {
		return 0, false, nil
	}
	c, err := r.checkpoint()
	if errors.Is(err, checkpoint.ErrNone) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err = c.Load(s); err == nil && r.from != "" {
		err = r.rewind(c.Step)
	}
	return c.Step, true, err
}

func (r *runDir) checkpoint() (*checkpoint.Checkpoint, error) {
	if r.from != "" {
		return checkpoint.Open(r.from)
	}
	return checkpoint.Latest(filepath.Join(r.path, checkpointDir))
}

// Record opens the metrics behind a step; what was recorded after it is forgotten.
func (r *runDir) Record(step int64) error {
	if r.path == "" {
		return nil
	}
	lines, err := metrics.ResumeJSONLines(filepath.Join(r.path, metricsFile), step, time.Now)
	if err != nil {
		return err
	}
	board, err := metrics.ResumeTensorBoard(filepath.Join(r.path, tensorBoardDir), max(step, 0), time.Now)
	if err != nil {
		return errors.Join(err, lines.Close())
	}
	r.sink = metrics.Tee(lines, board)
	return nil
}

// Describe writes the digests of the sources and then the effective configuration, whose presence
// makes the directory a run: running that file again is the recipe.
func (r *runDir) Describe(cfg any) error {
	if r.path == "" {
		return nil
	}
	if err := writeJSON(filepath.Join(r.path, sourcesFile), r.sources); err != nil {
		return err
	}
	return writeConfig(r.path, cfg)
}

// writeConfig writes the configuration of a run.
func writeConfig(dir string, cfg any) error {
	text, err := configs.Marshal(cfg)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, configFile), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// writeJSON writes an indented JSON file.
func writeJSON(path string, v any) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	})
}

// readJSON reads a file that writeJSON has written.
func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Scalars records metrics. A run does not end because they cannot be written: the first error is
// kept and told by Close.
func (r *runDir) Scalars(step int64, values map[string]float64) {
	if r.sink == nil || r.lost != nil {
		return
	}
	if err := r.sink.Scalars(step, values); err != nil {
		r.lost = fmt.Errorf("metrics end before step %d: %w", step, err)
	}
}

// Save publishes a checkpoint.
func (r *runDir) Save(step int64, score *float64, s checkpoint.Stater) error {
	if r.store == nil {
		return nil
	}
	_, err := r.store.Save(checkpoint.Meta{Kind: r.command, Step: step, Score: score, Info: map[string]string{"program": "onnxrl " + version()}}, s)
	return err
}

// explain adds to an error from which step a run can be continued.
func (r *runDir) explain(err error) error {
	if r.path == "" {
		return err
	}
	list, lerr := checkpoint.List(filepath.Join(r.path, checkpointDir))
	if lerr != nil || len(list) == 0 || refuseRun(r.path, true, "") != nil {
		return err
	}
	return fmt.Errorf("%w\nthe checkpoint of step %d is kept; continue from it with: onnxrl %s --resume %s", err, list[len(list)-1].Step, r.command, r.again)
}

// Close ends metrics and unlocks the checkpoints.
func (r *runDir) Close() error {
	errs := []error{r.lost}
	if r.sink != nil {
		errs = append(errs, r.sink.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}
