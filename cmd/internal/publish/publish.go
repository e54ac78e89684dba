package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"onnxrl/agents/served"
	"onnxrl/agents/train"
	"onnxrl/cmd/internal/experiment"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/envs/market/trading"
	"onnxrl/export/bake"
	"onnxrl/models/artifact"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/rng"
)

// What is found in a run directory.
const (
	// BestFile is the newest publication.
	BestFile = "best.onnx"
	// StoreDir is the artefact store with all of them.
	StoreDir = "artifacts"
	// BestAlias is the alias of the newest publication, beside artifact.Latest.
	BestAlias = "best"
)

// Options say what is published and where.
type Options struct {
	// Config is the effective document of the run.
	Config experiment.Config
	// Factory makes the run's environments, Engine runs the proof. Both must outlive the publisher.
	Factory envs.Factory
	Engine  engine.Compiler
	// Dir is the run directory, which must exist.
	Dir string
	// Name is what the artefact is called; other letters than those of artefact names become dashes.
	Name string
	// Sources are digests of what the run reads, by name such as data_sha256. They are looked up at each publication, so what is only known once the agent is made may be added until then.
	Sources map[string]string
	// Parents are the digests of the artefacts that the run's parameters began as.
	Parents []string
	// Program is the version of the code.
	Program string
	// Now is the clock that publications are dated by; without one they have no date.
	Now func() time.Time
	// Log may be nil.
	Log *slog.Logger
}

// Publisher implements train.Publisher for one run. It is not safe for concurrent use.
type Publisher struct {
	o       Options
	digest  string // of the document
	name    string
	market  market
	store   *artifact.Store
	env     envs.Env
	samples *recorder // of the network that was published last
}

var _ train.Publisher = (*Publisher)(nil)

// New opens the store of a run and prepares what all its publications share.
func New(o Options) (*Publisher, error) {
	p, err := newPublisher(o)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", o.Dir, err)
	}
	return p, nil
}

func newPublisher(o Options) (_ *Publisher, err error) {
	p := &Publisher{o: o, name: artefactName(o.Name)}
	if o.Log == nil {
		p.o.Log = slog.New(slog.DiscardHandler)
	}
	if p.digest, err = configs.Digest(o.Config); err != nil {
		return nil, err
	}
	if t, ok := o.Factory.(trading.Opened); ok {
		if err := check(t.Data()); err != nil {
			return nil, err
		}
	}
	if p.market, err = newMarket(o.Factory); err != nil {
		return nil, err
	}
	if p.env, err = recorded(o.Factory); err != nil {
		return nil, err
	}
	if p.store, err = artifact.Open(filepath.Join(o.Dir, StoreDir), artifact.Options{Now: o.Now}); err != nil {
		return nil, errors.Join(err, p.env.Close())
	}
	return p, nil
}

// Close ends the use of store and environment. Close it before the factory.
func (p *Publisher) Close() error { return errors.Join(p.store.Close(), p.env.Close()) }

// Publish implements train.Publisher: it bakes the policy, proves it, replaces BestFile and publishes the same bytes. The reference is that of the version, in the run's store.
func (p *Publisher) Publish(ctx context.Context, policy train.Policy) (string, error) {
	ref, err := p.publish(ctx, policy)
	if err != nil {
		return "", fmt.Errorf("publish the policy of env step %d: %w", policy.EnvSteps, err)
	}
	return ref, nil
}

func (p *Publisher) publish(ctx context.Context, policy train.Policy) (ref string, err error) {
	m, err := bake.Agent(policy.Network, policy.Params.View, nil, p.market.wrappers()...)
	if err != nil {
		return "", err
	}
	one, err := served.New(ctx, m, p.o.Engine, 1)
	if err != nil {
		return "", err
	}
	actor, err := served.NewActor(one, p.env.Spec(), served.Options{Tables: p.market.tables})
	if err != nil {
		return "", errors.Join(err, one.Close())
	}
	defer func() { err = errors.Join(err, actor.Close()) }()
	if p.samples == nil || !slices.Equal(p.samples.inputs, policy.Network.Inputs) {
		if p.samples, err = newRecorder(p.env.Spec(), policy.Network.Inputs, p.market.tables, sampled); err != nil {
			return "", err
		}
	}
	key := rng.New(p.o.Config.Seed).Split("publish", int(policy.EnvSteps))
	if err := p.samples.record(p.env, actor, key); err != nil {
		return "", err
	}

	pair := bake.Pair{Network: policy.Network, Params: policy.Params, Baked: m, Samples: p.samples.samples, Raw: p.samples.unscaled, AllowTies: true}
	pair.Choices = choicesOf(p.env.Spec(), policy.Network.Outputs)
	path := filepath.Join(p.o.Dir, BestFile)
	report, err := bake.Write(ctx, path, p.o.Engine, pair, p.lineage(policy))
	if err != nil {
		return "", err
	}
	if float64(report.Ties) > bake.MaxTies*float64(report.Choices) {
		p.o.Log.Warn("the policy is undecided", "ties", report.Ties, "choices", report.Choices, "margin", bake.Margin)
	}
	draft := artifact.Draft{Manifest: p.manifest(policy, m), Model: path, Aliases: []string{BestAlias}}
	if draft.Golden, err = golden(one, p.samples, heads(p.env.Spec().Action)); err != nil {
		return "", err
	}
	if t, ok := p.o.Factory.(trading.Opened); ok {
		if draft.Files, err = p.market.goldenBars(t, one, heads(p.env.Spec().Action)); err != nil {
			return "", err
		}
	}
	v, err := p.store.Publish(ctx, draft)
	if err != nil {
		return "", err
	}
	p.o.Log.Debug("published", "version", v.String(), "env_steps", policy.EnvSteps, "max_error", report.MaxError, "rows", report.Rows)
	return v.String(), nil
}

// lineage is the metadata of the ONNX file.
func (p *Publisher) lineage(policy train.Policy) map[string]string {
	out := map[string]string{
		"task": "agent", "name": p.name, "agent": p.o.Config.Agent.Kind, "env": p.o.Config.Env.Kind, "config_sha256": p.digest, "seed": strconv.FormatUint(p.o.Config.Seed, 10),
		"env_steps": strconv.FormatInt(policy.EnvSteps, 10), "learner_steps": strconv.FormatInt(policy.LearnerSteps, 10), "engine": p.o.Engine.Name(),
	}
	if h := heads(p.env.Spec().Action); h != nil {
		out[headsKey] = headsText(h)
	}
	if p.o.Program != "" {
		out["program"] = p.o.Program
	}
	if len(p.o.Parents) > 0 {
		out["parents"] = strings.Join(p.o.Parents, ",")
	}
	if policy.Metric != "" {
		out["metric"], out["score"] = policy.Metric, strconv.FormatFloat(policy.Score, 'g', -1, 64)
	}
	maps.Copy(out, p.market.info)
	maps.Copy(out, p.o.Sources)
	return out
}

// manifest is the description of the version.
func (p *Publisher) manifest(policy train.Policy, m *onnx.Model) artifact.Manifest {
	seed := p.o.Config.Seed
	out := artifact.Manifest{
		Name: p.name, Kind: "agent", Seed: &seed, EnvStep: policy.EnvSteps, LearnerStep: policy.LearnerSteps, ConfigDigest: "sha256:" + p.digest, Parents: p.o.Parents,
		CodeVersion: p.o.Program, Features: p.market.pipeline, Metrics: map[string]float64{}, Info: maps.Clone(p.o.Sources),
		Description: fmt.Sprintf("%s agent for %s, unscaled observations to actions", p.o.Config.Agent.Kind, p.o.Config.Env.Kind),
	}
	if d := p.o.Sources["data_sha256"]; d != "" {
		out.DataDigest = "sha256:" + strings.TrimPrefix(d, "sha256:")
	}
	for k, v := range policy.Metrics {
		if v-v == 0 { // A ratio may have nothing to divide by.
			out.Metrics["validation/"+k] = v
		}
	}
	in, outs := artifact.PortsOf(m)
	for _, port := range in {
		out.Inputs = append(out.Inputs, p.market.port(port, p.env.Spec()))
	}
	for _, port := range outs {
		out.Outputs = append(out.Outputs, p.market.port(port, p.env.Spec()))
	}
	return out
}
