package run

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
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Files of a run directory.
const (
	ConfigFile     = "config.yaml"
	SourcesFile    = "sources.json"
	MetricsFile    = "metrics.jsonl"
	TensorBoardDir = "tensorboard"
	CheckpointDir  = "checkpoints"
	// LineageFile describes how a run came to be; see Lineage.
	LineageFile = "lineage.json"
	// FinishedFile is the summary of a finished run. It is written when everything else is, and a
	// run that has it is not continued.
	FinishedFile = "finished.json"
	// SummaryFile is the summary of several seeds, in the directory that holds theirs.
	SummaryFile = "summary.json"
	// StudyFile says what the runs of a study mean, in the directory that holds its cells; see
	// package study.
	StudyFile = "plan.yaml"
)

// DirOptions say what a run directory is for.
type DirOptions struct {
	// Kind is what checkpoints are called by, such as train, and Program what they say has written
	// them.
	Kind, Program string
	// Path is a new directory; Resume, unless empty, the one of a run to continue. Both empty keeps
	// nothing.
	Path, Resume string
	// From is the checkpoint that the run is to go on from, empty for the newest: what is after it
	// is removed, and Note says so.
	From string
	Note func(text string)
	// Sources are the digests of what the run reads.
	Sources map[string]string
	// Changes lists what differs from the configuration that the run in a directory was started
	// with, without what may differ.
	Changes func(dir string) ([]configs.Change, error)
	Keep    checkpoint.Options
	// Watch, unless nil, receives the metrics too, also where nothing is kept.
	Watch metrics.Sink
}

// Dir is a run's directory: effective configuration, digests of what is read, metrics and
// checkpoints, whose store locks it. The empty path keeps nothing.
type Dir struct {
	o       DirOptions
	path    string
	resumed bool
	store   *checkpoint.Store
	sink    metrics.Sink
	// lost is the first error of recording metrics, which does not end a run.
	lost error
}

// OpenDir makes a new run directory, or opens the one to resume. A directory that holds a run is
// refused unless it is resumed, and a resumed run must have the configuration and the sources it
// was started with. Nothing is written before the directory is locked.
func OpenDir(o DirOptions) (*Dir, error) {
	d := &Dir{o: o, path: o.Path}
	if o.Resume != "" {
		d.path, d.resumed = o.Resume, true
	}
	if d.path == "" {
		return d, nil
	}
	if objects.IsCopy(d.path) {
		return nil, fmt.Errorf("run directory %s: what a reference names is only read", objects.Named(d.path))
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	var err error
	if d.store, err = checkpoint.OpenStore(filepath.Join(d.path, CheckpointDir), o.Keep); err != nil {
		return nil, err
	}
	return d, nil
}

// ErrExists says that a directory that was to be new holds a run.
var ErrExists = errors.New("holds a run already")

// Holds reports whether a directory holds a run.
func Holds(path string) bool { return Existing(path) == nil }

// Existing is the error of a directory that is to be resumed and holds no run.
func Existing(path string) error {
	if _, err := os.Stat(filepath.Join(path, ConfigFile)); err != nil {
		return fmt.Errorf("resume %s: it holds no run: %w", path, err)
	}
	return nil
}

// Free is the error of a directory that is to be new and holds a run: ErrExists.
func Free(path string) error {
	if Holds(path) {
		return fmt.Errorf("run directory %s %w", path, ErrExists)
	}
	return nil
}

// Reached returns the step of the newest checkpoint in a run's directory, 0 where there is none.
func Reached(path string) (int64, error) {
	list, err := checkpoint.List(filepath.Join(path, CheckpointDir))
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[len(list)-1].Step, nil
}

// Path is the directory; empty keeps nothing.
func (d *Dir) Path() string { return d.path }

// Resumed reports whether the run is continued.
func (d *Dir) Resumed() bool { return d.resumed }

// check refuses what cannot be the directory of the run.
func (d *Dir) check() error {
	if !d.resumed {
		return Free(d.path)
	}
	if err := Existing(d.path); err != nil {
		return err
	}
	if err := d.checkResume(); err != nil {
		return fmt.Errorf("resume %s: %w", d.path, err)
	}
	return nil
}

// checkResume compares configuration and sources with those of the stopped run.
func (d *Dir) checkResume() error {
	changes, err := d.o.Changes(d.path)
	if err != nil {
		return err
	}
	if err := RefuseChanges(changes); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(d.path, SourcesFile))
	if err != nil {
		return err
	}
	var was map[string]string
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("%s: %w", SourcesFile, err)
	}
	for _, k := range slices.Sorted(maps.Keys(was)) {
		if was[k] != d.o.Sources[k] {
			return fmt.Errorf("the %s has changed since the run was started: SHA-256 %s, was %s", strings.TrimSuffix(k, "_sha256"), short(d.o.Sources[k]), short(was[k]))
		}
	}
	return nil
}

// RefuseChanges is the error that names the keys that have changed; nil without any.
func RefuseChanges(changes []configs.Change) error {
	if len(changes) == 0 {
		return nil
	}
	var keys []string
	for _, c := range changes {
		keys = append(keys, c.String())
	}
	return fmt.Errorf("the configuration has changed: %s", strings.Join(keys, "; "))
}

// short shortens a SHA-256 in hexadecimal for people; none is said where it is empty.
func short(digest string) string {
	if digest == "" {
		return "none"
	}
	return digest[:min(12, len(digest))] + "…"
}

// Restore loads the newest checkpoint of a resumed run, or that which it goes on from, into s and
// returns its step. A new run, and one that was stopped before its first checkpoint, begins with
// whole false.
func (d *Dir) Restore(s checkpoint.Stater) (step int64, whole bool, err error) {
	if !d.resumed {
		return 0, false, nil
	}
	c, err := d.checkpoint()
	if errors.Is(err, checkpoint.ErrNone) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err = c.Load(s); err == nil && d.o.From != "" {
		err = d.rewind(c.Step)
	}
	return c.Step, true, err
}

func (d *Dir) checkpoint() (*checkpoint.Checkpoint, error) {
	if d.o.From != "" {
		return checkpoint.Open(d.o.From)
	}
	return checkpoint.Latest(filepath.Join(d.path, CheckpointDir))
}

// Record opens the metrics behind a step; what was recorded after it is forgotten.
func (d *Dir) Record(step int64) error {
	if d.path == "" {
		d.sink = d.o.Watch
		return nil
	}
	lines, err := metrics.ResumeJSONLines(filepath.Join(d.path, MetricsFile), step, time.Now)
	if err != nil {
		return err
	}
	board, err := metrics.ResumeTensorBoard(filepath.Join(d.path, TensorBoardDir), max(step, 0), time.Now)
	if err != nil {
		return errors.Join(err, lines.Close())
	}
	d.sink = metrics.Tee(lines, board)
	if d.o.Watch != nil {
		d.sink = metrics.Tee(lines, board, d.o.Watch)
	}
	return nil
}

// Describe writes the digests of the sources and then the effective configuration, whose presence
// makes the directory a run: running that file again is the recipe.
func (d *Dir) Describe(cfg any) error {
	if d.path == "" {
		return nil
	}
	if err := WriteJSON(filepath.Join(d.path, SourcesFile), d.o.Sources); err != nil {
		return err
	}
	return WriteConfig(d.path, cfg)
}

// WriteConfig writes the configuration of a run.
func WriteConfig(dir string, cfg any) error {
	text, err := configs.Marshal(cfg)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(dir, ConfigFile), text)
}

// WriteJSON writes an indented JSON file.
func WriteJSON(path string, v any) error {
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	})
}

// ReadJSON reads a file that WriteJSON has written.
func ReadJSON(path string, v any) error {
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
func (d *Dir) Scalars(step int64, values map[string]float64) {
	if d.sink == nil || d.lost != nil {
		return
	}
	if err := d.sink.Scalars(step, values); err != nil {
		d.lost = fmt.Errorf("metrics end before step %d: %w", step, err)
	}
}

// Save publishes a checkpoint.
func (d *Dir) Save(step int64, score *float64, s checkpoint.Stater) error {
	if d.store == nil {
		return nil
	}
	_, err := d.store.Save(checkpoint.Meta{Kind: d.o.Kind, Step: step, Score: score, Info: map[string]string{"program": d.o.Program}}, s)
	return err
}

// ResumableError is what ended a run of which there is a checkpoint to continue from.
type ResumableError struct {
	Err error
	// Step is that of the newest checkpoint.
	Step int64
}

func (e *ResumableError) Error() string {
	return fmt.Sprintf("%v\nthe checkpoint of step %d is kept", e.Err, e.Step)
}

func (e *ResumableError) Unwrap() error { return e.Err }

// Explain adds to an error from which step the run can be continued, as a [ResumableError] where it
// can.
func (d *Dir) Explain(err error) error {
	if d.path == "" || !Holds(d.path) {
		return err
	}
	list, lerr := checkpoint.List(filepath.Join(d.path, CheckpointDir))
	if lerr != nil || len(list) == 0 {
		return err
	}
	return &ResumableError{Err: err, Step: list[len(list)-1].Step}
}

// Close ends metrics and unlocks the checkpoints.
func (d *Dir) Close() error {
	errs := []error{d.lost}
	if d.sink != nil {
		errs = append(errs, d.sink.Close())
	}
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	return errors.Join(errs...)
}
