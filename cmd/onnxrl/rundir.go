package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	lineageFile    = "lineage.json"
	metricsFile    = "metrics.jsonl"
	tensorBoardDir = "tensorboard"
	checkpointDir  = "checkpoints"
)

// runDir is a run's directory: effective configuration, lineage, metrics and checkpoints. The zero path keeps nothing.
type runDir struct {
	path    string
	resumed bool
	store   *checkpoint.Store
	sink    metrics.Sink
	lineage map[string]string
	err     error
}

// openRun makes a new run directory or opens one to resume. A directory that already holds a run is refused unless it is resumed, and a resumed run must have the configuration, model and data
// it was started with.
func openRun(path string, resume bool, cfg fit.Config, lineage map[string]string) (*runDir, error) {
	r := &runDir{path: path, resumed: resume, lineage: lineage}
	if path == "" {
		return r, nil
	}
	_, err := os.Stat(filepath.Join(path, configFile))
	switch {
	case err == nil && !resume:
		return nil, fmt.Errorf("run directory %s holds a run already: continue it with --resume, or choose another --dir", path)
	case err != nil && resume:
		return nil, fmt.Errorf("resume %s: it holds no run: %w", path, err)
	}
	if resume {
		if err := r.checkResume(cfg); err != nil {
			return nil, fmt.Errorf("resume %s: %w", path, err)
		}
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if r.store, err = checkpoint.OpenStore(filepath.Join(path, checkpointDir), checkpoint.Options{KeepLast: cfg.Checkpoint.Keep}); err != nil {
		return nil, err
	}
	if !resume {
		if err := r.writeJSON(lineageFile, lineage); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// checkResume compares configuration and lineage with those of the stopped run.
func (r *runDir) checkResume(cfg fit.Config) error {
	old := fit.Defaults()
	if _, err := configs.Load(filepath.Join(r.path, configFile), nil, &old); err != nil {
		return err
	}
	changes, err := configs.Diff(old, cfg)
	if err != nil {
		return err
	}
	// More epochs or other checkpoint intervals do not change what has been computed.
	changes = slices.DeleteFunc(changes, func(c configs.Change) bool { return strings.HasPrefix(c.Path, "checkpoint.") })
	if len(changes) > 0 {
		var keys []string
		for _, c := range changes {
			keys = append(keys, c.String())
		}
		return fmt.Errorf("the configuration has changed: %s", strings.Join(keys, "; "))
	}
	data, err := os.ReadFile(filepath.Join(r.path, lineageFile))
	if err != nil {
		return err
	}
	var was map[string]string
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("%s: %w", lineageFile, err)
	}
	for _, k := range []string{"model_sha256", "data_sha256"} {
		if was[k] != r.lineage[k] {
			return fmt.Errorf("the %s has changed since the run was started", strings.TrimSuffix(k, "_sha256"))
		}
	}
	return nil
}

// Restore loads the newest checkpoint into s and opens the metrics behind it. It returns the step that the run continues from.
func (r *runDir) Restore(s checkpoint.Stater) (step int64, err error) {
	if r.path == "" {
		return 0, nil
	}
	if r.resumed {
		c, err := checkpoint.Latest(filepath.Join(r.path, checkpointDir))
		switch {
		case errors.Is(err, checkpoint.ErrNone):
		case err != nil:
			return 0, err
		default:
			defer c.Close()
			if err := c.Load(s); err != nil {
				return 0, err
			}
			step = c.Step
		}
	}
	open := func() (metrics.Sink, error) {
		lines, err := metrics.ResumeJSONLines(filepath.Join(r.path, metricsFile), step, time.Now)
		if err != nil {
			return nil, err
		}
		tb, err := metrics.ResumeTensorBoard(filepath.Join(r.path, tensorBoardDir), step, time.Now)
		if err != nil {
			return nil, errors.Join(err, lines.Close())
		}
		return metrics.Tee(lines, tb), nil
	}
	r.sink, err = open()
	return step, err
}

// Scalars records metrics; the first error is kept for Err.
func (r *runDir) Scalars(step int64, values map[string]float64) {
	if r.sink == nil {
		return
	}
	if err := r.sink.Scalars(step, values); err != nil && r.err == nil {
		r.err = err
	}
}

// Err returns the first error of recording metrics.
func (r *runDir) Err() error { return r.err }

// Save publishes a checkpoint.
func (r *runDir) Save(kind string, step int64, score *float64, s checkpoint.Stater) error {
	if r.store == nil {
		return nil
	}
	_, err := r.store.Save(checkpoint.Meta{Kind: kind, Step: step, Score: score, Info: map[string]string{"program": r.lineage["program"]}}, s)
	return err
}

// WriteConfig writes the effective configuration: running that file again is the recipe of the run.
func (r *runDir) WriteConfig(cfg any) error {
	if r.path == "" || r.resumed {
		return nil
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

func (r *runDir) writeJSON(name string, v any) error {
	return atomicfile.WriteFile(filepath.Join(r.path, name), func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	})
}

// Close ends metrics and unlocks the checkpoints.
func (r *runDir) Close() error {
	var errs []error
	if r.sink != nil {
		errs = append(errs, r.sink.Close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}

// fileDigest returns the SHA-256 of a file in hexadecimal.
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// dataDigest returns one digest for a file, a folder or a glob pattern: of the one file, or of the sorted list of names and digests.
func dataDigest(path string) (string, error) {
	files, err := filepath.Glob(path)
	if err != nil || len(files) == 0 {
		files = []string{path}
	}
	if info, err := os.Stat(files[0]); err == nil && info.IsDir() && len(files) == 1 {
		files = nil
		err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	slices.Sort(files)
	if len(files) == 1 {
		return fileDigest(files[0])
	}
	h := sha256.New()
	for _, f := range files {
		d, err := fileDigest(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s  %s\n", d, filepath.Base(f))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
