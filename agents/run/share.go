package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// sharedPublisher copies what a run publishes into a store that runs share, where lineage leads
// from one to the next.
type sharedPublisher struct {
	*publish.Publisher
	// run is the directory of the run's own store.
	run   string
	to    *artifact.Store
	alias string
}

// openShared opens the plan's shared store; the run's own publisher is still to be set.
func (r *Run) openShared() (*sharedPublisher, error) {
	s, err := artifact.Open(r.plan.job.Share, artifact.Options{Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("share in %s: %w", r.plan.job.Share, err)
	}
	return &sharedPublisher{run: filepath.Join(r.path, publish.StoreDir), to: s, alias: r.sharedAlias()}, nil
}

// sharedAlias is the run's directory, with that of the group for one of several seeds. The alias
// best would be that of whichever run published last, and without one of its own nothing keeps a
// run's policy.
func (r *Run) sharedAlias() string {
	if r.plan.job.Alias != "" {
		return r.plan.job.Alias
	}
	name := filepath.Base(filepath.Clean(r.plan.dir))
	if r.plan.Group() {
		name += "-" + filepath.Base(r.path)
	}
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, name)
	name = strings.TrimLeft(name, ".-")
	if name = name[:min(len(name), 128)]; name == "" {
		return "run"
	}
	return name
}

// Publish implements train.Publisher.
func (p *sharedPublisher) Publish(ctx context.Context, policy train.Policy) (string, error) {
	ref, err := p.Publisher.Publish(ctx, policy)
	if err != nil || ref == "" {
		return "", err
	}
	return ref, p.share(ctx, ref)
}

// Version implements versioner.
func (p *sharedPublisher) Version(ctx context.Context, policy train.Policy) (string, error) {
	ref, err := p.Publisher.Version(ctx, policy)
	if err != nil {
		return "", err
	}
	return ref, p.share(ctx, ref)
}

// share copies a version of the run's store. A run that is killed between the two stores publishes
// the same version again when it is resumed.
func (p *sharedPublisher) share(ctx context.Context, ref string) (err error) {
	from, err := artifact.Open(p.run, artifact.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := p.to.CopyFrom(ctx, from, ref, artifact.PullOptions{Aliases: []string{artifact.Latest, p.alias}}); err != nil {
		return fmt.Errorf("copy %s to %s: %w", ref, p.to.Dir(), err)
	}
	return nil
}
