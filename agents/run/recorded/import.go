package recorded

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

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
	// Another policy than the document's agent may have acted.
	m.Behaviours[0].Algorithm = "logged"
	return offline.ImportLog(ctx, path, m, to, told)
}
