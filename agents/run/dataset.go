package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// openDataset opens the data set of a section as a replay, and what judges policies by the episodes
// that are held out, nil where none are.
func openDataset(ctx context.Context, f envs.Factory, c *offline.Config) (s *offline.Store, j *offline.Judge, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", experiment.DatasetPath, err)
		}
	}()
	d, err := offline.Open(c.Path)
	if err != nil {
		return nil, nil, err
	}
	spec, err := offline.SpecOf(f, envs.Train, 0)
	if err != nil {
		return nil, nil, err
	}
	held := d.Split(c.Validation, c.Seed)
	if s, err = offline.NewStore(ctx, d, spec, held, c.Share); err != nil || c.Validation == 0 {
		return s, nil, err
	}
	j, err = offline.NewJudge(ctx, d, spec, held)
	return s, j, err
}

// dataset opens the data set of the document as the run's replay. Evaluations are told, too, how
// the policy does on the episodes that are held out. All seeds hold out the same ones.
func (r *Run) dataset(ctx context.Context, h *train.Hooks) (agents.Replay, error) {
	s, judge, err := openDataset(ctx, r.plan.factory, r.cfg.Dataset)
	if err != nil {
		return nil, err
	}
	if h.Evaluate == nil || judge == nil {
		return s, nil
	}
	inside := h.Evaluate
	h.Evaluate = func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		m, err := inside(ctx, a, at)
		if err != nil {
			return nil, err
		}
		own, err := judge.Metrics(ctx, a)
		if err != nil {
			return nil, err
		}
		maps.Copy(own, m)
		return own, nil
	}
	return s, nil
}

// manifest is that of a data set of a document's environments, without episodes.
func manifest(c experiment.Config, spec envs.Spec, program string) (offline.Manifest, error) {
	m := offline.Describe(spec)
	env, err := configs.Marshal(struct {
		Env      configs.Kinded `yaml:"env"`
		Wrappers wrap.Config    `yaml:"wrappers"`
	}{c.Env, c.Wrappers})
	if err != nil {
		return m, err
	}
	m.Environment.Kind, m.Environment.Config, m.Program = c.Env.Kind, string(env), program
	if s, ok := c.Agent.Lookup("gamma"); ok {
		err = s.Decode(&m.Gamma)
	}
	return m, err
}

// Origin is where an imported data set comes from: a document says what it is of.
type Origin struct {
	// Kinds are what the document can name; Config is its path, and Program what imports.
	Kinds   experiment.Kinds
	Config  string
	Program string
	// From is what the manifest calls the source.
	From string
}

// manifest describes the environments of the document and what acted.
func (o Origin) manifest(ctx context.Context) (m offline.Manifest, spec envs.Spec, err error) {
	c, _, err := o.Kinds.Load(o.Config, nil)
	if err != nil {
		return m, spec, err
	}
	c, f, _, err := o.Kinds.Open(ctx, c)
	if err != nil {
		return m, spec, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if n := c.Wrappers.Normalize; n.Obs || n.Reward {
		return m, spec, errors.New("wrappers.normalize: what was recorded has been normalised by statistics that changed meanwhile")
	}
	if spec, err = offline.SpecOf(f, envs.Train, c.Eval.MaxEpisodeSteps); err != nil {
		return m, spec, err
	}
	if m, err = manifest(c, spec, o.Program); err != nil {
		return m, spec, err
	}
	m.Behaviours = []offline.Behaviour{{Algorithm: c.Agent.Kind, Policy: o.From, Stochastic: true}}
	return m, spec, nil
}

// ImportReplay writes what a checkpoint of a run, or of a shared replay, has of transitions as a
// data set in a folder that must not exist.
func (o Origin) ImportReplay(ctx context.Context, path, to string, told func(episodes, of int64)) (*offline.Manifest, error) {
	return o.importReplay(ctx, path, to, told)
}

// importReplay notes in the manifest which versions the transitions are of.
func (o Origin) importReplay(ctx context.Context, path, to string, told func(episodes, of int64), parents ...string) (_ *offline.Manifest, err error) {
	m, spec, err := o.manifest(ctx)
	if err != nil {
		return nil, err
	}
	m.Parents = parents
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r, err := replay.In(c.Reader())
	if err != nil {
		return nil, err
	}
	return offline.ImportReplay(ctx, r, spec, m, to, told)
}

// ImportSnapshot is ImportReplay of a version of an artefact that a replay was published as, which the manifest
// names among its parents.
func (o Origin) ImportSnapshot(ctx context.Context, v artifact.Version, to string, told func(episodes, of int64)) (_ *offline.Manifest, err error) {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := replay.Extract(ctx, v, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v, err)
	}
	return o.importReplay(ctx, path, to, told, v.Digest)
}

// ImportDecisions writes what a server has logged of a model's decisions, with the rewards that are
// joined, as a data set in a folder that must not exist. Each version is a behaviour of its own.
func (o Origin) ImportDecisions(ctx context.Context, j offline.Join, to string, told func(episodes, of int64)) (*offline.Manifest, offline.JoinReport, error) {
	m, _, err := o.manifest(ctx)
	if err != nil {
		return nil, offline.JoinReport{}, err
	}
	return offline.ImportDecisions(ctx, j, m, to, told)
}

// ImportLog writes the episodes of a log of decisions, JSON lines of offline.LogStep, as a data set
// in a folder that must not exist.
func (o Origin) ImportLog(ctx context.Context, path, to string, told func(episodes, of int64)) (*offline.Manifest, offline.LogReport, error) {
	m, _, err := o.manifest(ctx)
	if err != nil {
		return nil, offline.LogReport{}, err
	}
	// Whoever acted need not be the agent of the document.
	m.Behaviours[0].Algorithm = "logged"
	return offline.ImportLog(ctx, path, m, to, told)
}
