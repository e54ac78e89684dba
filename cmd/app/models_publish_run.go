package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// publishRun publishes the best policy of a run's newest checkpoint, as the run does itself when it
// ends, and copies it into the store where one is given.
func (a *app) publishRun(ctx context.Context, dir string, f *publishFlags) (_ artifact.Version, err error) {
	p, err := a.openPlan(ctx, "", &trainFlags{resume: dir, parallel: 1})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.group() {
		return artifact.Version{}, errors.New("it is a group of seeds: publish one of its seed-N")
	}
	seed := p.seeds()[0]
	r := &trainRun{plan: p, seed: seed, cfg: p.forSeed(seed), path: dir, published: p.sources}
	if p.init != nil {
		r.published["init_sha256"] = p.init.record().SHA256
	}
	policy, err := r.checkpointed(ctx, a)
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, r.tr.Close()) }()
	pub, err := r.publisher(a.log, f.allowTies)
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, pub.Close()) }()
	ref, err := pub.Version(ctx, policy)
	if errors.Is(err, bake.ErrTies) {
		err = fmt.Errorf("%w: --allow-ties accepts them", err)
	}
	if err != nil {
		return artifact.Version{}, err
	}
	s, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{Now: time.Now})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, alias := range f.aliases {
		if _, err := s.Alias(ctx, ref, alias); err != nil {
			return artifact.Version{}, err
		}
	}
	if f.store.dir == "" {
		return s.Resolve(ref)
	}
	to, err := artifact.Open(f.store.dir, artifact.Options{Now: time.Now})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return to.CopyFrom(ctx, s, ref, artifact.PullOptions{Aliases: append([]string{artifact.Latest, r.sharedAlias()}, f.aliases...)})
}

// checkpointed loads the run's newest checkpoint and returns its best policy. A candidate that is
// newer than that policy would be lost, and is an error.
func (r *trainRun) checkpointed(ctx context.Context, a *app) (policy train.Policy, err error) {
	c, err := checkpoint.Latest(filepath.Join(r.path, checkpointDir))
	if err != nil {
		return policy, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if r.tr, err = train.New(ctx, r.plan.factory, r.plan.maker, agents.Setup{Engine: r.plan.engine, Encoders: a.kinds.Encoders, Key: rng.New(r.seed)}, r.cfg.Train, train.Hooks{Log: a.log}); err != nil {
		return policy, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.tr.Close())
		}
	}()
	if err := c.Load(r.tr); err != nil {
		return policy, err
	}
	if policy, err = r.tr.BestPolicy(ctx); err != nil {
		return policy, err
	}
	if policy.LearnerSteps == 0 {
		return policy, errors.New("its newest checkpoint is of before the first learner step")
	}
	best := filepath.Join(r.path, publish.BestFile)
	if at, ok, err := stepsOf(best); err != nil {
		return policy, err
	} else if ok && at > policy.EnvSteps {
		return policy, fmt.Errorf("%s is the policy of env step %d, and the best in the newest checkpoint that of %d: resume the run, which makes it again", best, at, policy.EnvSteps)
	}
	return policy, nil
}
