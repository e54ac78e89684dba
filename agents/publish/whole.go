package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// WholeDir is the directory, in that of a router's run, that a router and its experts are published
// to as one model. It has a document, BestFile and StoreDir as a run has.
const WholeDir = "whole"

// WholeOptions say what a router and its experts are published as.
type WholeOptions struct {
	// Router is the document of the router's run, Environments its factory, and Dir the run
	// directory, which has the published router.
	Router       experiment.Config
	Environments envs.Factory
	Dir          string
	// Config is the document of the environment that the experts act in, and Factory its factory:
	// that of [InsideOf].
	Config  experiment.Config
	Factory envs.Factory
	Engine  engine.Compiler
	// Name is what the artefact is called, Program the version of the code; AllowTies and Now are
	// as in [Options].
	Name, Program string
	AllowTies     bool
	Now           func() time.Time
}

// router is implemented by the factory of package meta.
type router interface {
	envs.Factory
	Inside() envs.Factory
}

// InsideOf returns the document of the environment that a router's experts act in, which shows what
// a router with limits on risk has to know of the account. Wrappers are those of the router's
// segments and not of this environment.
func InsideOf(run experiment.Config, f envs.Factory) (experiment.Config, error) {
	c := run
	c.Wrappers = wrap.Defaults()
	m, p, err := routerOf(f)
	if err != nil {
		return c, err
	}
	inside := m.Inside().Config()
	if p.Risk.On() {
		d, ok := wrap.FindFactory[Domain](m.Inside())
		if !ok {
			return c, fmt.Errorf("limits on risk need an account that is observed, and env.env is %s; expected trading", p.Env.Kind)
		}
		inside = d.WithAccount()
	}
	c.Env, err = configs.NewKinded(p.Env.Kind, inside)
	return c, err
}

// routerOf finds what makes a router's environments.
func routerOf(f envs.Factory) (router, meta.Params, error) {
	m, ok := wrap.FindFactory[router](f)
	if ok {
		if p, ok := m.Config().(meta.Params); ok {
			return m, p, nil
		}
	}
	return nil, meta.Params{}, errors.New("it is no run of a router: env.kind is not meta")
}

// Whole publishes a router and its experts as one model, into WholeDir: a policy of the environment
// that the experts act in, whose states are what the router remembers, the books of the experts and
// theirs. It is compared step by step with the router's own environment, in episodes in which the
// router and chance decide in turns. A model that differs is not published. The reference is that
// of the version, in the store of WholeDir.
func Whole(ctx context.Context, o WholeOptions) (string, error) {
	ref, err := whole(ctx, o)
	if err != nil {
		return "", fmt.Errorf("publish router and experts of %s: %w", o.Dir, err)
	}
	return ref, nil
}

// composed is a router with its experts on the way to a file.
type composed struct {
	o       WholeOptions
	p       meta.Params
	a       preprocessing // of the environment inside
	router  *onnx.Model
	experts []*onnx.Model
	model   *onnx.Model
	parents []string
	past    Past // of router and experts
}

func whole(ctx context.Context, o WholeOptions) (ref string, err error) {
	w := &composed{o: o}
	if _, w.p, err = routerOf(o.Environments); err != nil {
		return "", err
	}
	if err := w.read(); err != nil {
		return "", err
	}
	e, err := openEnv(o.Environments)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	in, ok := wrap.Find[*meta.Env](e)
	if !ok {
		return "", errors.New("the environment is none of package meta")
	}
	inside, err := openEnv(o.Factory)
	if err == nil {
		w.a, err = newPreprocessing(o.Factory, inside)
		err = errors.Join(err, inside.Close())
	}
	if err != nil {
		return "", err
	}
	if err := w.compose(in.Config()); err != nil {
		return "", err
	}
	proof, err := newWholeProof(ctx, w, e, in)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, proof.Close()) }()
	if err := proof.run(ctx, o.Router.Publish.Observations); err != nil {
		return "", err
	}
	if r := &proof.report; !o.AllowTies && !o.Router.Publish.AllowTies && float64(r.Ties) > bake.MaxTies*float64(r.Choices) {
		return "", fmt.Errorf("%w: in %d of %d the two best scores are less than %g apart", bake.ErrTies, r.Ties, r.Choices, bake.Margin)
	}
	return w.publish(ctx, proof)
}

// read loads the published router and the experts, and finds out which versions they are.
func (w *composed) read() (err error) {
	load := func(path string) (*onnx.Model, error) {
		m, err := onnx.Load(path)
		if err != nil {
			return nil, err
		}
		d, err := VersionOf(filepath.Join(filepath.Dir(path), StoreDir), m)
		if err != nil && !errors.Is(err, artifact.ErrNoStore) {
			return nil, err
		}
		if d != "" {
			w.parents = append(w.parents, d)
		}
		past, err := PastOf(m)
		if err != nil {
			return nil, err
		}
		past.Trials = nil
		w.past.Join(past)
		return m, nil
	}
	path := filepath.Join(w.o.Dir, BestFile)
	if w.router, err = load(path); err != nil {
		return fmt.Errorf("the published router: %w", err)
	}
	if IsCandidate(w.router) {
		return fmt.Errorf("%s is a candidate and not published yet", path)
	}
	for i, x := range w.p.Experts {
		m, err := load(x.Path)
		if err != nil {
			return fmt.Errorf("expert %d: %w", i, err)
		}
		w.experts = append(w.experts, m)
	}
	return nil
}

// pastOf is that of the model: the router's trials, and all data that any part of it has seen.
func (w *composed) pastOf() Past {
	out := w.a.Past
	out.Trials = &Trials{Runs: 1}
	if t, err := PastOf(w.router); err == nil && t.Trials != nil {
		out.Trials = t.Trials
	}
	out.Join(w.past)
	return out
}

// VersionOf is the digest of the newest version in the store in dir that has the graph of a model,
// after a parity check of whatever length; empty where there is none, artifact.ErrNoStore without a
// store. What is damaged is none.
func VersionOf(dir string, m *onnx.Model) (digest string, err error) {
	s, err := artifact.Open(dir, artifact.Options{MustExist: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	text, err := withoutMetadata(m)
	if err != nil {
		return "", err
	}
	list, _ := s.List()
	for _, v := range slices.Backward(list) {
		if !v.HasModel() {
			continue
		}
		own, err := v.Model()
		if err != nil {
			continue
		}
		if t, err := withoutMetadata(own); err != nil || bytes.Equal(text, t) {
			return v.Digest, err
		}
	}
	return "", nil
}

// withoutMetadata are the bytes of a model without what was written about it.
func withoutMetadata(m *onnx.Model) ([]byte, error) {
	bare := m.ShallowClone()
	bare.MetadataProps = nil
	return onnx.Marshal(bare)
}

// errUnknownAssets says that a model cannot leave assets out.
var errUnknownAssets = errors.New("choose: assets: a model knows what is left out of orders and of target weights; expected env.env.kind: trading")

// compose makes the model.
func (w *composed) compose(c meta.Config) (err error) {
	r := bake.Router{
		Action: agents.ActionOutput, Scores: agents.LogProbsOutput, Table: meta.ExpertsField, Mask: agents.MaskInput,
		Mixture: c.Choose == meta.Mixture, Segment: c.Segment, UsageWindow: c.Diversity.UsageWindow,
	}
	if r.Model, err = bake.Scaled(w.router, w.a.Scalings); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	for i, m := range w.experts {
		if m, err = bake.Scaled(m, w.a.Scalings); err != nil {
			return fmt.Errorf("expert %d: %w", i, err)
		}
		r.Experts = append(r.Experts, m)
	}
	if box, ok := w.a.spec.Action.(envs.Box); ok {
		r.Low, r.High = box.Limits()
		if w.a.Simplex != nil && !w.a.Simplex.Project {
			r.Softmax = box.High[0]
		}
	}
	own := w.a.Account
	if c.Choose == meta.Assets {
		if own == nil {
			return errUnknownAssets
		}
		h := &bake.Holdings{Assets: w.a.spec.Action.Shape()[0], Mask: agents.MaskInput, Buy: own.Buy, Tradable: meta.TradableField, Least: own.Least}
		switch a := w.a.spec.Action.(type) {
		case envs.MultiDiscrete:
			h.Orders = a.N[0]
		default:
			if h.Assets--; w.a.Simplex == nil {
				return errUnknownAssets
			}
		}
		r.Holdings = h
	}
	if c.Risk.On() {
		if own == nil {
			return errors.New("limits on risk need an account that is observed; expected env.env.kind: trading")
		}
		risk := c.Risk.Complete()
		r.Account = own.Field
		if d := risk.Drawdown; d.Limit > 0 {
			r.Drawdown = &bake.RouterDrawdown{Limit: d.Limit, Resume: d.Resume, Days: d.Window}
		}
		if v := risk.CVaR; v.Limit > 0 {
			if w.a.Simplex == nil {
				return errors.New("risk.cvar cuts what may be held, and a model can do so with target weights only; expected env.env.actions: weights, or no limit on CVaR")
			}
			if own.Cuts {
				return errors.New("risk.cvar multiplies a limit that env.env.risk.cvar multiplies as well, which a model does not know; expected one of them")
			}
			r.CVaR = &bake.RouterCVaR{Limit: v.Limit, Resume: v.Resume, Level: v.Level, Cut: v.Cut, Days: v.Window, Least: v.LeastReturns(), Exposure: own.Exposure, Weight: own.Weight}
		}
	}
	if w.model, err = r.Compose(); err != nil {
		return err
	}
	return w.a.describe(w.model)
}

// publish writes the file and the version.
func (w *composed) publish(ctx context.Context, proof *wholeProof) (ref string, err error) {
	dir := filepath.Join(w.o.Dir, WholeDir)
	name := ArtefactName(w.o.Name)
	digest, err := configs.Digest(w.o.Config)
	if err != nil {
		return "", err
	}
	seed := w.o.Router.Seed
	step, _, err := StepsOf(filepath.Join(w.o.Dir, BestFile))
	if err != nil {
		return "", err
	}
	lineage := map[string]string{
		"task": "agent", "name": name, "agent": w.o.Router.Agent.Kind, "env": w.o.Config.Env.Kind, "config_sha256": digest, "seed": strconv.FormatUint(seed, 10), "env_steps": strconv.FormatInt(step, 10), "engine": w.o.Engine.Name(),
		"decisions": fmt.Sprintf("%d, of which %d with masked experts; positions cut in %d of %d steps", proof.decisions, proof.masked, proof.limited, proof.report.Rows),
		"experts":   strconv.Itoa(len(w.experts)), "parents": strings.Join(w.parents, ","),
	}
	if w.p.Choose == meta.Assets {
		lineage["decisions"] += fmt.Sprintf("; assets left out in %d", proof.without)
	}
	heads := envs.Heads(w.a.spec.Action)
	if heads != nil {
		lineage[headsKey] = headsText(heads)
	}
	if w.o.Program != "" {
		lineage["program"] = w.o.Program
	}
	maps.Copy(lineage, w.a.Info)
	maps.Copy(lineage, w.pastOf().Info())
	s, err := artifact.Open(filepath.Join(dir, StoreDir), artifact.Options{Now: w.o.Now})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	path := filepath.Join(dir, BestFile)
	if err := onnx.Save(path, bake.Describe(w.model, proof.report, lineage), onnx.SaveOptions{}); err != nil {
		return "", err
	}
	m := artifact.Manifest{
		Name: name, Kind: "agent", Seed: &seed, EnvStep: step, ConfigDigest: "sha256:" + digest, Parents: w.parents, CodeVersion: w.o.Program, Features: w.a.Pipeline,
		Description: fmt.Sprintf("%s router of %d experts for %s, unscaled observations to actions", w.o.Router.Agent.Kind, len(w.experts), w.o.Config.Env.Kind),
	}
	m.Inputs, m.Outputs = artifact.PortsOf(w.model)
	for _, ports := range [][]artifact.Port{m.Inputs, m.Outputs} {
		for i := range ports {
			ports[i] = w.a.portOf(ports[i])
		}
	}
	d := artifact.Draft{Manifest: m, Model: path, Aliases: []string{BestAlias}, Golden: proof.golden()}
	if d.Files, err = w.a.files(proof.actor.Policy(), heads); err != nil {
		return "", err
	}
	v, err := s.Publish(ctx, d)
	return v.String(), err
}

// tensorsOf copies some buffers of a policy.
func tensorsOf(names []string, get func(string) *tensor.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for _, name := range names {
		out[name] = get(name).Clone()
	}
	return out
}

// LeastMargin is how far apart the two best scores of a model's choices are, of its experts and
// among them, after it has run; 1 where there are none. heads are the numbers of alternatives.
func LeastMargin(p *served.Policy, heads []int) float64 {
	least := 1.0
	if by := p.Output(scores(p.Outputs())); by != nil && heads != nil {
		least = bake.LeastMargin(by.Float32s(), heads)
	}
	if by := p.Output(bake.ExpertScoresOutput); by != nil {
		least = min(least, bake.LeastMargin(by.Float32s(), []int{by.Len()}))
	}
	if by := p.Output(bake.HeldScoresOutput); by != nil {
		least = min(least, bake.LeastMargin(by.Float32s(), slices.Repeat([]int{2}, by.Len()/2)))
	}
	return least
}
