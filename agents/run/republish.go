package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// PublishOptions say how a policy is published after its run.
type PublishOptions struct {
	// Newest publishes the policy of the newest checkpoint and not the best so far.
	Newest bool
	// AllowTies publishes a policy that is nearly undecided in more of its choices than exports
	// accept.
	AllowTies bool
	// Aliases are what the version is called besides.
	Aliases []string
	// Parents are the digests of versions that it was made from before those that the run knows of,
	// such as what a member of a population has taken over.
	Parents []string
}

// Publish publishes the best policy of the newest checkpoint of a run that is resumed, or its
// newest, as the run does itself when it ends, and copies it into the store of Job.Share where
// there is one.
func (p *Plan) Publish(ctx context.Context, o PublishOptions) (v artifact.Version, err error) {
	err = p.publishing(ctx, o, func(r *Run, pub *publish.Publisher, policy train.Policy) error {
		ref, err := pub.Version(ctx, policy)
		if err == nil {
			v, err = p.share(ctx, r, filepath.Join(r.path, publish.StoreDir), ref, o)
		}
		return err
	})
	return v, err
}

// Keep writes the policy of the newest checkpoint of a run that is resumed into publish.PolicyFile,
// for others to act with: its parity check is short, and it is published nowhere.
func (p *Plan) Keep(ctx context.Context) error {
	return p.publishing(ctx, PublishOptions{Newest: true}, func(_ *Run, pub *publish.Publisher, policy train.Policy) error {
		return pub.Keep(ctx, policy, publish.PolicyFile)
	})
}

// publishing opens what publishes a policy of the newest checkpoint.
func (p *Plan) publishing(ctx context.Context, o PublishOptions, do func(*Run, *publish.Publisher, train.Policy) error) (err error) {
	if p.Group() {
		return errors.New("it is a group of seeds: publish one of its seed-N")
	}
	r := p.run(p.cfg.Seed)
	if p.init != nil {
		r.published["init_sha256"] = p.init.record().SHA256
	}
	policy, err := r.checkpointed(ctx, o.Newest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.tr.Close()) }()
	pub, err := r.publisher(p.o.Hooks.Log, o.AllowTies, o.Parents...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pub.Close()) }()
	return do(r, pub, policy)
}

// Restore makes the trainer of a seed as the newest checkpoint of its run has it, and returns the
// env step of that. It is for looking at: nothing that it does is kept. The caller closes it.
func (p *Plan) Restore(ctx context.Context, seed uint64) (_ *train.Trainer, step int64, err error) {
	r := p.run(seed)
	c, err := checkpoint.Latest(filepath.Join(r.path, CheckpointDir))
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	setup := r.setup()
	tr, err := r.restored(ctx, c, setup)
	if elsewhere := (*replay.ElsewhereError)(nil); errors.As(err, &elsewhere) {
		setup.Replay = replay.Elsewhere(elsewhere.Store)
		tr, err = r.restored(ctx, c, setup)
	}
	if err != nil {
		return nil, 0, err
	}
	return tr, c.Step, nil
}

// restored makes a trainer as a checkpoint has it.
func (r *Run) restored(ctx context.Context, c *checkpoint.Checkpoint, s agents.Setup) (*train.Trainer, error) {
	p := r.plan
	tr, err := train.New(ctx, p.factory, p.maker, s, r.cfg.Train, train.Hooks{Log: p.o.Hooks.Log})
	if err != nil {
		return nil, err
	}
	if err := c.Load(tr); err != nil {
		return nil, errors.Join(err, tr.Close())
	}
	return tr, nil
}

// checkpointed loads the run's newest checkpoint and returns its best policy, or its newest. A
// candidate that is newer than that policy would be lost, and is an error.
func (r *Run) checkpointed(ctx context.Context, newest bool) (policy train.Policy, err error) {
	if r.tr, _, err = r.plan.Restore(ctx, r.seed); err != nil {
		return policy, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.tr.Close())
		}
	}()
	if newest {
		policy = r.tr.Policy()
	} else if policy, err = r.tr.BestPolicy(ctx); err != nil {
		return policy, err
	}
	if policy.LearnerSteps == 0 {
		return policy, errors.New("its newest checkpoint is of before the first learner step")
	}
	best := filepath.Join(r.path, publish.BestFile)
	if at, ok, err := publish.StepsOf(best); err != nil {
		return policy, err
	} else if ok && at > policy.EnvSteps {
		return policy, fmt.Errorf("%s is the policy of env step %d, and the best in the newest checkpoint that of %d: resume the run, which makes it again", best, at, policy.EnvSteps)
	}
	return policy, nil
}

// PublishWhole publishes the router of a run that is resumed, whose best policy is published, and
// its experts as one model: see publish.Whole. The version is copied into the store of
// Job.Share where there is one.
func (p *Plan) PublishWhole(ctx context.Context, o PublishOptions) (_ artifact.Version, err error) {
	if p.Group() {
		return artifact.Version{}, errors.New("it is a group of seeds: publish one of its seed-N")
	}
	r := p.run(p.cfg.Seed)
	cfg, err := publish.InsideOf(r.cfg, p.factory)
	if err != nil {
		return artifact.Version{}, err
	}
	cfg, inside, _, err := p.kinds.On(p.o.Engine).Open(ctx, cfg)
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, inside.Close()) }()
	ref, err := publish.Whole(ctx, publish.WholeOptions{
		Router: r.cfg, Environments: p.factory, Dir: r.path, Config: cfg, Factory: inside, Engine: p.o.Engine, Name: p.name + "-whole", Program: p.o.Program, AllowTies: o.AllowTies, Now: time.Now,
	})
	if err != nil {
		return artifact.Version{}, err
	}
	dir := filepath.Join(r.path, publish.WholeDir)
	if err := WriteConfig(dir, cfg); err != nil {
		return artifact.Version{}, err
	}
	return p.share(ctx, r, filepath.Join(dir, publish.StoreDir), ref, o)
}

// share names a version of a store besides, and copies it into that of Job.Share where there is
// one.
func (p *Plan) share(ctx context.Context, r *Run, dir, ref string, o PublishOptions) (_ artifact.Version, err error) {
	s, err := artifact.Open(dir, artifact.Options{Now: time.Now})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, alias := range o.Aliases {
		if _, err := s.Alias(ctx, ref, alias); err != nil {
			return artifact.Version{}, err
		}
	}
	if p.job.Share == "" {
		return s.Resolve(ref)
	}
	to, err := artifact.Open(p.job.Share, artifact.Options{Now: time.Now})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return to.CopyFrom(ctx, s, ref, artifact.PullOptions{Aliases: append([]string{artifact.Latest, r.sharedAlias()}, o.Aliases...)})
}
