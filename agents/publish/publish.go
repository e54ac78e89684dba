package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The files of a run directory.
const (
	// BestFile is the newest publication.
	BestFile = "best.onnx"
	// PolicyFile is a policy that others act with before it is published, see [Publisher.Keep].
	PolicyFile = "policy.onnx"
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
	// Dir is the run directory, which must exist. Root, unless empty, is the directory of what the
	// run is a part of: see experiment.Digest.
	Dir  string
	Root string
	// Name is what the artefact is called; other letters than those of artefact names become
	// dashes.
	Name string
	// Sources are digests of what the run reads, by name such as data_sha256. They are looked up at
	// each publication, so what is only known once the agent is made may be added until then.
	Sources map[string]string
	// Parents are the digests of the artefacts that the run's policies are made from.
	Parents []string
	// Runs is the number of runs of the same configuration, of which this is one; 0 is 1.
	Runs int
	// Inherited is the past of what the run's parameters began as; of it, data count as seen by the
	// run, too.
	Inherited Past
	// AllowTies publishes a policy that is undecided too often, whatever the document says.
	AllowTies bool
	// Program is the version of the code.
	Program string
	// Now is the clock that publications are dated by; without one they have no date.
	Now func() time.Time
	// Log may be nil.
	Log *slog.Logger
}

// Publisher implements train.Publisher for one run. It is not safe for concurrent use.
type Publisher struct {
	o             Options
	digest        string // of the document
	name          string
	preprocessing preprocessing
	store         *artifact.Store
	env           envs.Env
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
	p := &Publisher{o: o, name: ArtefactName(o.Name)}
	if o.Log == nil {
		p.o.Log = slog.New(slog.DiscardHandler)
	}
	if p.digest, err = experiment.Digest(o.Config, o.Root); err != nil {
		return nil, err
	}
	if p.env, err = openEnv(o.Factory); err != nil {
		return nil, err
	}
	if p.preprocessing, err = newPreprocessing(o.Factory, p.env); err != nil {
		return nil, errors.Join(err, p.env.Close())
	}
	if p.store, err = artifact.Open(filepath.Join(o.Dir, StoreDir), artifact.Options{Now: o.Now}); err != nil {
		return nil, errors.Join(err, p.env.Close())
	}
	return p, nil
}

// Close ends the use of store and environment. Close it before the factory.
func (p *Publisher) Close() error {
	errs := []error{p.store.Close()}
	if p.env != nil {
		errs = append(errs, p.env.Close())
	}
	return errors.Join(errs...)
}

// Publish implements train.Publisher. Where the document publishes at the end it keeps the policy
// as the run's candidate, and nothing is published yet: the reference is empty. So it is where a
// policy cannot be published at improvements because it is too undecided, the environment fails, or
// ctx ends: none of it ends a run. A policy of which not even a candidate can be made leaves none,
// not that of an older one.
func (p *Publisher) Publish(ctx context.Context, policy train.Policy) (string, error) {
	var ref string
	var err error
	if p.o.Config.Publish.When == experiment.AtImprovements {
		ref, err = p.Version(ctx, policy)
	}
	if ref == "" && (err == nil || postponed(ctx, err)) {
		if err != nil {
			p.o.Log.Warn("an improvement is not published", "env_steps", policy.EnvSteps, "reason", err)
		}
		if err = p.Keep(ctx, policy, BestFile); err != nil && postponed(ctx, err) {
			if ctx.Err() == nil {
				p.o.Log.Warn("an improvement is not kept as a file", "env_steps", policy.EnvSteps, "reason", err)
			}
			err = p.dropCandidate()
		}
	}
	if err != nil {
		return "", fmt.Errorf("publish the policy of env step %d: %w", policy.EnvSteps, err)
	}
	return ref, nil
}

// Version publishes a policy: it bakes it, proves it on as many observations as the document asks
// for, replaces BestFile and publishes the same bytes. The reference is that of the version, in the
// run's store. A policy that is undecided too often is bake.ErrTies unless the document allows it;
// nothing has changed then.
func (p *Publisher) Version(ctx context.Context, policy train.Policy) (ref string, err error) {
	b, err := p.bake(ctx, policy, p.o.Config.Publish.Observations, p.o.AllowTies || p.o.Config.Publish.AllowTies)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	path := filepath.Join(p.o.Dir, BestFile)
	if err := onnx.Save(path, bake.Describe(b.model, b.report, p.lineage(policy)), onnx.SaveOptions{}); err != nil {
		return "", err
	}
	draft := artifact.Draft{Manifest: p.manifest(policy, b.model), Model: path, Aliases: []string{BestAlias}}
	heads := envs.Heads(p.preprocessing.spec.Action)
	if draft.Golden, err = golden(b.actor.Policy(), b.rows, heads); err != nil {
		return "", err
	}
	if draft.Files, err = p.preprocessing.files(b.actor.Policy(), heads); err != nil {
		return "", err
	}
	v, err := p.store.Publish(ctx, draft)
	if err != nil {
		return "", err
	}
	p.o.Log.Debug("published", "version", v.String(), "env_steps", policy.EnvSteps, "max_error", b.report.MaxError, "rows", b.report.Rows)
	return v.String(), nil
}

// Keep replaces a file of the run directory by the policy, after a brief proof, as a candidate: it
// is no version.
func (p *Publisher) Keep(ctx context.Context, policy train.Policy, file string) (err error) {
	b, err := p.bake(ctx, policy, sampled, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	report := b.report
	if float64(report.Ties) > bake.MaxTies*float64(report.Choices) {
		p.o.Log.Debug("the policy is undecided", "env_steps", policy.EnvSteps, "ties", report.Ties, "choices", report.Choices, "margin", bake.Margin)
	}
	about := p.lineage(policy)
	about[candidateKey] = "true"
	return onnx.Save(filepath.Join(p.o.Dir, file), bake.Describe(b.model, report, about), onnx.SaveOptions{})
}

// rehearsed is the number of observations that a rehearsal proves.
const rehearsed = 2 * stretches

// Rehearse does with a policy, on a few observations, what a publication does, and writes nothing:
// what refuses the policies of a run says so before any is trained. Ties, and an environment that
// fails, are for the publication itself, and so is a last digit: observations are not normalised yet,
// so that what is small in the end may be a difference of large numbers.
func (p *Publisher) Rehearse(ctx context.Context, policy train.Policy) (err error) {
	if err := p.rehearse(ctx, policy); err != nil && !postponed(ctx, err) && !errors.As(err, new(*bake.ParityError)) {
		return fmt.Errorf("the run's policies cannot be published, and it is not trained: %w", err)
	}
	return nil
}

func (p *Publisher) rehearse(ctx context.Context, policy train.Policy) (err error) {
	b, err := p.bake(ctx, policy, rehearsed, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if _, err := golden(b.actor.Policy(), b.rows, envs.Heads(p.preprocessing.spec.Action)); err != nil {
		return err
	}
	m := p.manifest(policy, bake.Describe(b.model, b.report, p.lineage(policy)))
	return m.Validate()
}

// postponed reports whether an error of a publication says that it is to be done later, or by hand.
func postponed(ctx context.Context, err error) bool {
	return errors.Is(err, bake.ErrTies) || errors.Is(err, ErrObservations) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// dropCandidate removes BestFile where it is the candidate of an older policy.
func (p *Publisher) dropCandidate() error {
	path := filepath.Join(p.o.Dir, BestFile)
	m, err := onnx.Load(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !IsCandidate(m):
		return nil
	}
	return os.Remove(path)
}

// candidateKey is the metadata key, below bake.MetaPrefix, of a model that is not published.
const candidateKey = "candidate"

// IsCandidate reports whether a model was kept by a run and not published.
func IsCandidate(m *onnx.Model) bool {
	_, ok := m.Meta(bake.MetaPrefix + candidateKey)
	return ok
}

// Checked returns a candidate as the model that a longer parity check makes of it.
func Checked(m *onnx.Model, r bake.Report) *onnx.Model {
	m = bake.Describe(m, r, nil)
	m.MetadataProps = slices.DeleteFunc(slices.Clone(m.MetadataProps), func(kv *onnx.MetadataProp) bool { return kv.Key == bake.MetaPrefix+candidateKey })
	return m
}

// baked is a policy on its way to a file: the model, whose parity has been checked, acting, and
// recorded rows.
type baked struct {
	model  *onnx.Model
	actor  *served.Actor
	rows   *recorder
	report bake.Report
}

// close frees the actor, unless an environment that does not answer may still come back to it.
func (b *baked) close() error {
	if b.actor == nil {
		return nil
	}
	return b.actor.Close()
}

// bake makes the served form of a policy and proves it on at least that many recorded observations.
// The caller closes the actor.
func (p *Publisher) bake(ctx context.Context, policy train.Policy, rows int, allowTies bool) (b baked, err error) {
	states, err := models.NamedStates(policy.Network.Model.Graph)
	if err != nil {
		return b, err
	}
	if b.model, err = p.preprocessing.bake(policy.Network, policy.Params, states, policy.Normalizers); err != nil {
		return b, err
	}
	one, err := served.New(ctx, b.model, p.o.Engine, 1)
	if err != nil {
		return b, err
	}
	if b.actor, err = served.NewActor(one, p.preprocessing.spec, p.preprocessing.options()); err != nil {
		return b, errors.Join(err, one.Close())
	}
	if err := p.prove(ctx, &b, policy, states, rows, allowTies); err != nil {
		return b, errors.Join(err, b.close())
	}
	return b, nil
}

func (p *Publisher) prove(ctx context.Context, b *baked, policy train.Policy, states []models.State, rows int, allowTies bool) (err error) {
	remembered, err := models.States(b.model)
	if err != nil {
		return err
	}
	var inputs []string
	for _, name := range policy.Network.Inputs {
		if !slices.ContainsFunc(states, func(s models.State) bool { return s.Input == name }) {
			inputs = append(inputs, name)
		}
	}
	if b.rows, err = newRecorder(&p.preprocessing, len(remembered) > 0, inputs, policy.Normalizers, max(2*stretches, min(block, rows))); err != nil {
		return err
	}
	v, err := bake.NewProver(p.o.Engine, bake.Pair{
		Network: policy.Network, Params: policy.Params, Memory: states, Baked: b.model, Actions: p.preprocessing.actions(), AllowTies: allowTies, Choices: choicesOf(p.preprocessing.spec, policy.Network.Outputs),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	var seen drift.Collector
	key := rng.New(p.o.Config.Seed).Split("publish", int(policy.EnvSteps))
	for at, n := 0, 0; at < rows; n++ {
		if err := p.collect(ctx, b, key.Split("block", n)); err != nil {
			return err
		}
		if err := v.Add(ctx, b.rows.samples, b.rows.unscaled, b.rows.begins); err != nil {
			return err
		}
		seen.Add(b.rows.inputs, b.rows.taken(), b.rows.rows)
		at += b.rows.rows
	}
	if r := seen.Reference(); r != nil {
		b.model.SetMeta(drift.Key, r.Text())
	}
	b.report, err = v.Report()
	return err
}

// collect records a block. An environment that has failed is replaced for the next time.
func (p *Publisher) collect(ctx context.Context, b *baked, key rng.Key) (err error) {
	if p.env == nil {
		if p.env, err = openEnv(p.o.Factory); err != nil {
			return &observationError{err}
		}
	}
	err = collect(ctx, b.rows, p.env, b.actor, key)
	switch {
	case errors.Is(err, errNoAnswer):
		p.env, b.actor = nil, nil
	case errors.Is(err, ErrObservations):
		// It has failed; that it cannot be closed either is no news.
		_ = p.env.Close()
		p.env = nil
	}
	return err
}

// lineage is the metadata of the ONNX file.
func (p *Publisher) lineage(policy train.Policy) map[string]string {
	out := map[string]string{
		"task": "agent", "name": p.name, "agent": p.o.Config.Agent.Kind, "env": p.o.Config.Env.Kind, "config_sha256": p.digest, "seed": strconv.FormatUint(p.o.Config.Seed, 10),
		"env_steps": strconv.FormatInt(policy.EnvSteps, 10), "learner_steps": strconv.FormatInt(policy.LearnerSteps, 10), "engine": p.o.Engine.Name(),
	}
	if h := envs.Heads(p.preprocessing.spec.Action); h != nil {
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
	maps.Copy(out, p.preprocessing.Info)
	maps.Copy(out, p.past(policy).Info())
	maps.Copy(out, p.o.Sources)
	return out
}

// manifest is the description of the version.
func (p *Publisher) manifest(policy train.Policy, m *onnx.Model) artifact.Manifest {
	seed := p.o.Config.Seed
	out := artifact.Manifest{
		Name: p.name, Kind: "agent", Seed: &seed, EnvStep: policy.EnvSteps, LearnerStep: policy.LearnerSteps, ConfigDigest: "sha256:" + p.digest, Parents: p.o.Parents,
		CodeVersion: p.o.Program, Features: p.preprocessing.Pipeline, Metrics: map[string]float64{}, Info: maps.Clone(p.o.Sources),
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
		out.Inputs = append(out.Inputs, p.preprocessing.portOf(port))
	}
	for _, port := range outs {
		out.Outputs = append(out.Outputs, p.preprocessing.portOf(port))
	}
	return out
}
