package main

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

	"onnxrl/configs"
	"onnxrl/models/checkpoint"
	"onnxrl/models/fit"
	"onnxrl/runtime/atomicfile"
	"onnxrl/runtime/metrics"
)

// Files of a run directory.
const (
	configFile     = "config.yaml"
	sourcesFile    = "sources.json"
	metricsFile    = "metrics.jsonl"
	tensorBoardDir = "tensorboard"
	checkpointDir  = "checkpoints"
)

// runDir is a run's directory: effective configuration, digests of what is read, metrics and checkpoints. The empty path keeps nothing.
type runDir struct {
	path    string
	resumed bool
	sources map[string]string
	store   *checkpoint.Store
	sink    metrics.Sink
	// lost is the first error of recording metrics, which does not end a run.
	lost error
}

// openRun makes a new run directory, or opens the one to resume. A directory that holds a run is refused unless it is resumed, and a resumed run must have the configuration and
// the sources it was started with. Nothing is written before the directory is locked.
func openRun(path, resume string, cfg fit.Config, sources map[string]string) (_ *runDir, err error) {
	r := &runDir{path: path, sources: sources}
	if resume != "" {
		r.path, r.resumed = resume, true
	}
	if r.path == "" {
		return r, nil
	}
	_, err = os.Stat(filepath.Join(r.path, configFile))
	switch {
	case err == nil && !r.resumed:
		return nil, fmt.Errorf("run directory %s holds a run already: continue it with --resume %s, or choose another --dir", r.path, r.path)
	case err != nil && r.resumed:
		return nil, fmt.Errorf("resume %s: it holds no run: %w", r.path, err)
	}
	if r.resumed {
		if err := r.checkResume(cfg); err != nil {
			return nil, fmt.Errorf("resume %s: %w", r.path, err)
		}
	}
	if err := os.MkdirAll(r.path, 0o755); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	r.store, err = checkpoint.OpenStore(filepath.Join(r.path, checkpointDir), checkpoint.Options{KeepLast: cfg.Checkpoint.Keep})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// checkResume compares configuration and sources with those of the stopped run. How often checkpoints are saved may change.
func (r *runDir) checkResume(cfg fit.Config) error {
	old := fit.Defaults()
	if _, err := configs.Load(filepath.Join(r.path, configFile), nil, &old); err != nil {
		return err
	}
	changes, err := configs.Diff(old, cfg)
	if err != nil {
		return err
	}
	changes = slices.DeleteFunc(changes, func(c configs.Change) bool { return strings.HasPrefix(c.Path, "checkpoint.") })
	if len(changes) > 0 {
		var keys []string
		for _, c := range changes {
			keys = append(keys, c.String())
		}
		return fmt.Errorf("the configuration has changed: %s", strings.Join(keys, "; "))
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

func short(digest string) string { return digest[:min(12, len(digest))] + "…" }

// Begin loads the newest checkpoint of a resumed run into s, or writes the configuration of a new one, and opens the metrics behind it. It returns the step that the run
// continues from.
func (r *runDir) Begin(s checkpoint.Stater, cfg any) (step int64, err error) {
	if r.path == "" {
		return 0, nil
	}
	if r.resumed {
		step, err = r.restore(s)
	} else {
		err = r.describe(cfg)
	}
	if err != nil {
		return 0, err
	}
	lines, err := metrics.ResumeJSONLines(filepath.Join(r.path, metricsFile), step, time.Now)
	if err != nil {
		return 0, err
	}
	board, err := metrics.ResumeTensorBoard(filepath.Join(r.path, tensorBoardDir), step, time.Now)
	if err != nil {
		return 0, errors.Join(err, lines.Close())
	}
	r.sink = metrics.Tee(lines, board)
	return step, nil
}

// restore loads the newest checkpoint. A run that was stopped before its first one begins anew.
func (r *runDir) restore(s checkpoint.Stater) (step int64, err error) {
	c, err := checkpoint.Latest(filepath.Join(r.path, checkpointDir))
	if errors.Is(err, checkpoint.ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Step, c.Load(s)
}

// describe writes the digests of the sources and then the effective configuration, whose presence makes the directory a run: running that file again is the recipe.
func (r *runDir) describe(cfg any) error {
	err := atomicfile.WriteFile(filepath.Join(r.path, sourcesFile), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r.sources)
	})
	if err != nil {
		return err
	}
	text, err := configs.Marshal(cfg)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(r.path, configFile), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// Scalars records metrics. A run does not end because they cannot be written: the first error is kept and told by Close.
func (r *runDir) Scalars(step int64, values map[string]float64) {
	if r.sink == nil || r.lost != nil {
		return
	}
	if err := r.sink.Scalars(step, values); err != nil {
		r.lost = fmt.Errorf("metrics end before step %d: %w", step, err)
	}
}

// Save publishes a checkpoint.
func (r *runDir) Save(kind string, step int64, score *float64, s checkpoint.Stater) error {
	if r.store == nil {
		return nil
	}
	_, err := r.store.Save(checkpoint.Meta{Kind: kind, Step: step, Score: score, Info: map[string]string{"program": "onnxrl " + version()}}, s)
	return err
}

// explain adds to an error from which step a run can be continued.
func (r *runDir) explain(err error) error {
	if r.path == "" {
		return err
	}
	list, lerr := checkpoint.List(filepath.Join(r.path, checkpointDir))
	if lerr != nil || len(list) == 0 {
		return err
	}
	return fmt.Errorf("%w\nthe checkpoint of step %d is kept; continue from it with: onnxrl fit --resume %s", err, list[len(list)-1].Step, r.path)
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
