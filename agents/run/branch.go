package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// branch makes the plan's new directory a run that has come as far as the checkpoint it goes on
// from: a copy of what its run had then. The run itself stays as it is.
func (p *Plan) branch(ctx context.Context) (err error) {
	if p.branches == "" {
		return nil
	}
	run, dir := p.dir, p.branches
	step, _, err := stepOf(p.from)
	if err != nil {
		return err
	}
	_, serr := os.Stat(dir)
	fresh := errors.Is(serr, os.ErrNotExist)
	defer func() {
		switch {
		case err != nil && fresh:
			err = errors.Join(fmt.Errorf("run directory %s: %w", dir, err), os.RemoveAll(dir))
		case err != nil:
			err = fmt.Errorf("run directory %s: %w", dir, err)
		}
	}()
	from := filepath.Join(dir, CheckpointDir, filepath.Base(p.from))
	if err := os.CopyFS(from, os.DirFS(p.from)); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, TensorBoardDir), os.DirFS(filepath.Join(run, TensorBoardDir))); err != nil {
		return err
	}
	for _, name := range []string{SourcesFile, MetricsFile} {
		text, err := os.ReadFile(filepath.Join(run, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := copyPublished(ctx, run, dir, step); err != nil {
		return err
	}
	var l Lineage
	if err := ReadJSON(filepath.Join(run, LineageFile), &l); err != nil {
		return err
	}
	if err := p.continues(&l, p.from); err != nil {
		return err
	}
	p.changes = l.Changes
	if err := WriteJSON(filepath.Join(dir, LineageFile), l); err != nil {
		return err
	}
	// Last, because it makes the directory a run.
	text, err := os.ReadFile(filepath.Join(run, ConfigFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ConfigFile), text, 0o644)
	}
	p.dir, p.from, p.claimed = dir, from, fresh
	return err
}

// copyPublished copies what a run had published by a step: the newest file and the versions of its
// store.
func copyPublished(ctx context.Context, run, dir string, step int64) (err error) {
	if at, ok, err := publish.StepsOf(filepath.Join(run, publish.BestFile)); err != nil {
		return err
	} else if ok && at <= step {
		text, err := os.ReadFile(filepath.Join(run, publish.BestFile))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, publish.BestFile), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	store := filepath.Join(run, publish.StoreDir)
	if _, err := os.Stat(store); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	from, err := artifact.Open(store, artifact.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	versions, _, err := publishedBy(from, step)
	if err != nil || len(versions) == 0 {
		return err
	}
	to, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for _, v := range versions {
		if _, err := to.CopyFrom(ctx, from, v.String(), artifact.PullOptions{Aliases: []string{artifact.Latest, publish.BestAlias}}); err != nil {
			return err
		}
	}
	return nil
}

// publishedBy lists the versions of a run's store of up to a step, by step, and says whether there
// are later ones.
func publishedBy(s *artifact.Store, step int64) (versions []artifact.Version, later bool, err error) {
	all, err := s.List()
	for _, v := range all {
		if !v.HasModel() {
			continue // It is data, such as the run's replay.
		}
		if v.Manifest.EnvStep <= step {
			versions = append(versions, v)
		} else {
			later = true
		}
	}
	slices.SortStableFunc(versions, func(a, b artifact.Version) int { return int(a.Manifest.EnvStep - b.Manifest.EnvStep) })
	return versions, later, err
}

// unpublishAfter makes a run that goes back to a step have as its best policy what it had then. A
// later file is removed, for the checkpoint has the policy, and the aliases of its store move back.
// Later versions stay in the store, as versions do.
func unpublishAfter(ctx context.Context, dir string, step int64) (err error) {
	best := filepath.Join(dir, publish.BestFile)
	if at, ok, err := publish.StepsOf(best); err != nil {
		return err
	} else if ok && at > step {
		if err := os.Remove(best); err != nil {
			return err
		}
	}
	s, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{MustExist: true})
	if errors.Is(err, artifact.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	versions, later, err := publishedBy(s, step)
	if err != nil || !later {
		return err
	}
	for _, alias := range []string{artifact.Latest, publish.BestAlias} {
		if n := len(versions); n > 0 {
			if _, err := s.Alias(ctx, versions[n-1].String(), alias); err != nil {
				return err
			}
			continue
		}
		all, err := s.List()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, artifact.Version.HasModel)
		if err := s.RemoveAlias(ctx, all[i].Manifest.Name, alias); err != nil && !errors.Is(err, artifact.ErrNotFound) {
			return err
		}
	}
	return nil
}
