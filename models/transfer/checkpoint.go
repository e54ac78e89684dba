package transfer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The files of directories.
const (
	checkpointDir  = "checkpoints" // of a run directory
	checkpointFile = "manifest.json"
)

// loadDir reads a checkpoint, or chooses one of a store of checkpoints or of a run.
func loadDir(dir string) (*Source, error) {
	if _, err := os.Stat(filepath.Join(dir, checkpointFile)); err == nil {
		return loadCheckpoint(dir)
	}
	for _, store := range []string{dir, filepath.Join(dir, checkpointDir)} {
		path, err := choose(store)
		if err != nil {
			return nil, err
		}
		if path != "" {
			return loadCheckpoint(path)
		}
	}
	if err := artifact.Unnamed(dir); err != nil {
		return nil, err
	}
	runs, err := filepath.Glob(filepath.Join(dir, "*", checkpointDir))
	if err != nil || len(runs) == 0 {
		return nil, errors.New("the directory holds no checkpoint")
	}
	for i := range runs {
		runs[i] = filepath.Dir(runs[i])
	}
	return nil, fmt.Errorf("the directory holds several runs: choose one of %s", strings.Join(runs, ", "))
}

// choose returns the checkpoint of a store with the highest score or, where none has a score, the
// newest; empty where there is none. Of equal scores the newest counts.
func choose(store string) (string, error) {
	list, err := checkpoint.List(store)
	if err != nil || len(list) == 0 {
		return "", err
	}
	best, score := list[len(list)-1].Path, 0.0
	scored := false
	for _, e := range list {
		c, err := checkpoint.Open(e.Path)
		if err != nil {
			return "", err
		}
		if s := c.Score; s != nil && (!scored || *s >= score) {
			best, score, scored = e.Path, *s, true
		}
		if err := c.Close(); err != nil {
			return "", err
		}
	}
	return best, nil
}

// parameter matches the name of a parameter's array: scope, role and name.
var parameter = regexp.MustCompile(`^((?:.*?/)?)params/(?:trainable|frozen|buffer|base)/(.+)$`)

// loadCheckpoint reads the parameters of a checkpoint into memory. Where several parts of it have
// parameters, those of the part that is least deep are meant.
func loadCheckpoint(path string) (_ *Source, err error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := c.Reader()
	type named struct{ full, name string }
	scopes := map[string][]named{}
	var order []string
	for _, full := range r.Names() {
		m := parameter.FindStringSubmatch(full)
		if m == nil {
			continue
		}
		if _, isArray := r.Shape(full); !isArray {
			continue
		}
		if scopes[m[1]] == nil {
			order = append(order, m[1])
		}
		scopes[m[1]] = append(scopes[m[1]], named{full, m[2]})
	}
	slices.SortStableFunc(order, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	if len(order) > 1 && strings.Count(order[0], "/") == strings.Count(order[1], "/") {
		return nil, fmt.Errorf("checkpoint %s has parameters of several networks, in %q: none is the one that is meant", path, order)
	}
	s := &Source{Kind: "checkpoint", Name: path}
	if len(order) == 0 {
		return s, nil
	}
	for _, n := range scopes[order[0]] {
		data, shape, err := r.Float32s(n.full)
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", path, err)
		}
		t := tensor.Of(data, shape...)
		s.arrays = append(s.arrays, array{name: n.name, shape: shape, read: func() (*tensor.Tensor, error) { return t, nil }})
	}
	return s, nil
}
