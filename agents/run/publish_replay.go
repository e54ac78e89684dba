package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// ReplayOptions say how a replay is published.
type ReplayOptions struct {
	// Name is what the artefact is called, empty for the name of the run, or the search, and
	// "-replay". Description is free text.
	Name, Description string
	// Aliases are what the version is called besides, and Parents the digests of versions that it
	// comes of beside those that are known.
	Aliases, Parents []string
	// Share is the directory of an artefact store that the version is copied into, with what it
	// descends from; empty copies none.
	Share string
	// Program is the version of the code.
	Program string
}

// PublishReplay publishes the replay that a run's learner has in a checkpoint, the newest where the
// path is that of a run, into the run's store. It descends from the newest policy that the run had
// published by then, or from what it began with.
func PublishReplay(ctx context.Context, path string, o ReplayOptions) (artifact.Version, error) {
	dir, from, err := Point(path)
	if err != nil {
		return artifact.Version{}, err
	}
	var l Lineage
	if err := ReadJSON(filepath.Join(dir, LineageFile), &l); err != nil {
		return artifact.Version{}, err
	}
	c, err := opened(dir, from)
	if err != nil {
		return artifact.Version{}, err
	}
	defer c.Close()
	m := artifact.Manifest{Name: l.Name, ConfigDigest: "sha256:" + l.ConfigSHA256}
	if len(l.Seeds) == 1 {
		m.Seed = &l.Seeds[0]
	}
	if d := l.Sources[dataDigest]; d != "" {
		m.DataDigest = "sha256:" + strings.TrimPrefix(d, "sha256:")
	}
	store := filepath.Join(dir, publish.StoreDir)
	s, err := artifact.Open(store, artifact.Options{Now: time.Now})
	if err != nil {
		return artifact.Version{}, err
	}
	versions, _, err := publishedBy(s, c.Step)
	if err := errors.Join(err, s.Close()); err != nil {
		return artifact.Version{}, err
	}
	switch n := len(versions); {
	case n > 0:
		m.Parents = []string{versions[n-1].Digest}
	case l.Init != nil && l.Init.Parent != "":
		m.Parents = []string{l.Init.Parent}
	}
	return PublishReplayOf(ctx, c, store, m, o)
}

// opened opens a checkpoint, or the newest of a run.
func opened(dir, from string) (*checkpoint.Checkpoint, error) {
	if from == "" {
		return checkpoint.Latest(filepath.Join(dir, CheckpointDir))
	}
	return checkpoint.Open(from)
}

// PublishReplayOf publishes the replay of a checkpoint into a store, described by what the manifest
// already says: its name is that of what the replay belongs to.
func PublishReplayOf(ctx context.Context, c *checkpoint.Checkpoint, store string, m artifact.Manifest, o ReplayOptions) (v artifact.Version, err error) {
	m.Name = cmp.Or(o.Name, publish.ArtefactName(m.Name)+"-replay")
	m.Description, m.CodeVersion = o.Description, o.Program
	for _, p := range o.Parents {
		if !slices.Contains(m.Parents, p) {
			m.Parents = append(m.Parents, p)
		}
	}
	s, err := artifact.Open(store, artifact.Options{Now: time.Now})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if v, err = replay.Publish(ctx, c, s, m, o.Aliases...); err != nil || o.Share == "" {
		return v, err
	}
	to, err := artifact.Open(o.Share, artifact.Options{Now: time.Now})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if v, err = to.CopyFrom(ctx, s, v.Digest, artifact.PullOptions{Aliases: append([]string{artifact.Latest}, o.Aliases...), Lineage: true}); err != nil {
		err = fmt.Errorf("copy it to %s: %w", o.Share, err)
	}
	return v, err
}
