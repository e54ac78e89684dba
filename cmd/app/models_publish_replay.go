package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// replaySource is where a directory has a replay: in a run or one of its checkpoints, in a search, or
// in checkpoints that belong to neither, of which this is one.
type replaySource struct {
	run, search, checkpoint string
}

// findReplay finds out what a directory has a replay in. asked says that the replay is what
// is asked for, of what has a policy, too.
func findReplay(dir string, asked bool) (s replaySource, err error) {
	switch above := filepath.Dir(filepath.Clean(dir)); {
	case asked && isFile(filepath.Join(dir, population.ConfigFile)):
		return replaySource{search: filepath.Join(dir, population.ExpertsDir)}, nil
	case asked && isFile(filepath.Join(dir, evolve.ConfigFile)):
		return replaySource{search: dir}, nil
	case filepath.Base(dir) == evolve.ReplayDir && isFile(filepath.Join(above, evolve.ConfigFile)):
		return replaySource{search: above}, nil
	case asked && run.Holds(dir):
		return replaySource{run: dir}, nil
	}
	if asked {
		if _, from, err := run.Point(dir); err != nil || from != "" {
			return replaySource{run: dir}, err
		}
	}
	if isFile(filepath.Join(dir, checkpointManifest)) {
		return replaySource{checkpoint: dir}, nil
	}
	for _, in := range []string{dir, filepath.Join(dir, run.CheckpointDir)} {
		if list, err := checkpoint.List(in); err != nil {
			return s, err
		} else if n := len(list); n > 0 && !run.Holds(dir) {
			return replaySource{checkpoint: list[n-1].Path}, nil
		}
	}
	return s, nil
}

// isSearch reports whether a directory is a search or a population.
func isSearch(dir string) bool {
	return isFile(filepath.Join(dir, population.ConfigFile)) || isFile(filepath.Join(dir, evolve.ConfigFile))
}

// checkpointManifest is in every checkpoint.
const checkpointManifest = "manifest.json"

// publishReplay publishes the replay of a run or a search, which describe it themselves, or of
// another checkpoint.
func (a *app) publishReplay(ctx context.Context, dir string, s replaySource, f *publishFlags) (v artifact.Version, err error) {
	o := run.ReplayOptions{Name: f.name, Description: f.description, Aliases: f.aliases, Share: f.store.dir, Program: a.program()}
	if o.Parents, err = f.parentDigests(); err != nil {
		return v, err
	}
	switch {
	case s.run != "":
		v, err = run.PublishReplay(ctx, s.run, o)
	case s.search != "":
		v, err = evolve.PublishReplay(ctx, s.search, o)
	default:
		o.Share = ""
		v, err = publishCheckpoint(ctx, s.checkpoint, f.store.target(), experiment.Name(dir), o)
	}
	var elsewhere *replay.ElsewhereError
	if errors.As(err, &elsewhere) {
		err = fmt.Errorf("%w: the transitions are there, and not in the checkpoint", err)
	}
	return v, err
}

// publishCheckpoint publishes the replay of a checkpoint that belongs to no run and no search.
func publishCheckpoint(ctx context.Context, path, store, name string, o run.ReplayOptions) (v artifact.Version, err error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return run.PublishReplayOf(ctx, c, store, artifact.Manifest{Name: name}, o)
}
