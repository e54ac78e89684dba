package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// publishFlags describe a version that is published by hand.
type publishFlags struct {
	store                   storeFlag
	name, kind, description string
	aliases, parents, files []string
	metrics                 []string
	golden, allowTies       bool
	whole, replay           bool
	inputs                  inputFlags
}

func (a *app) modelsPublishCommand() *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish MODEL.onnx|RUN|REPLAY",
		Short: "Publish a model, or a replay, as a new version",
		Long: `Publish the best policy of a training run, the transitions of a replay, or a model.

Of a run directory it is the best policy of the newest checkpoint, as the run itself publishes it when it ends. It goes into the run's own store, after its exported form has passed the parity check against the network in training, on publish.observations of the run's configuration, and from there into --store where that is given. That is how the policy of an interrupted run, or one too
undecided to be published without leave (--allow-ties), becomes a version.

Of a file it is the model, with its external data, as a new version, and let the alias latest stand for it. A model that was published
before with the same description is the same version.` + inputHelp,
		Example: `  onnxrl models publish runs/cartpole_ppo-1
  onnxrl models publish runs/pendulum_sac-1 --replay --alias collected
  onnxrl models publish encoder.onnx --kind encoder --golden`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.modelsPublish(cmd.Context(), args[0], &f) },
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "name of the artefact (default: that of the file)")
	fl.StringVar(&f.kind, "kind", "model", "what the model is for, such as agent or encoder")
	fl.StringVar(&f.description, "description", "", "free text")
	fl.StringArrayVar(&f.aliases, "alias", nil, "another alias that is moved to the version")
	fl.StringArrayVar(&f.parents, "parent", nil, "reference to a version that this one was made from")
	fl.StringArrayVar(&f.metrics, "metric", nil, "what the model was measured at, NAME=NUMBER")
	fl.StringArrayVar(&f.files, "file", nil, "further file, [TITLE=]PATH")
	fl.BoolVar(&f.allowTies, "allow-ties", false, fmt.Sprintf("of a run: publish a policy whose two best actions are less than %g apart in more than %g %% of the choices", bake.Margin, 100*bake.MaxTies))
	fl.BoolVar(&f.whole, "whole", false, "of the run of a router: publish the router with its experts as one model")
	fl.BoolVar(&f.replay, "replay", false, "of a run, a search or a population: publish the transitions of its replay")
	rarely(fl, "description", "file", "metric", "parent")
	fl.BoolVar(&f.golden, "golden", false, "publish inputs and what the model gives for them")
	f.inputs.add(cmd)
	return cmd
}

func (a *app) modelsPublish(ctx context.Context, path string, f *publishFlags) error {
	if isDir(path) {
		from, err := findReplay(path, f.replay)
		if err != nil {
			return fmt.Errorf("publish %s: %w", path, err)
		}
		if !f.replay && isSearch(path) {
			return fmt.Errorf("publish %s: it is a search: --replay publishes what its members share, and one of generation-N/member-M the policy of a member", path)
		}
		if f.replay || from != (replaySource{}) {
			return a.modelsPublishReplay(ctx, path, from, f)
		}
		if f.name+f.description != "" || f.kind != "model" || len(f.parents)+len(f.files)+len(f.metrics)+len(f.inputs.inputs) > 0 || f.golden {
			return errors.New("the run says itself what its policy is: of the flags only --alias, --allow-ties, --whole and --store can be given")
		}
		a.begin("proving and publishing the policy of %s: usually seconds", path)
		v, err := a.publishRun(ctx, path, f)
		if errors.Is(err, bake.ErrTies) {
			err = fmt.Errorf("%w: --allow-ties accepts them", err)
		}
		if err != nil {
			return fmt.Errorf("publish %s: %w", path, err)
		}
		return a.printPublished(v)
	}
	if f.replay {
		return errors.New("--replay is for the directory of a run, a search or a population: a file is published as it is")
	}
	if f.whole {
		return errors.New("--whole is for runs of a router: a file is published as it is")
	}
	if f.allowTies {
		return errors.New("--allow-ties is for runs: a file is published as it is")
	}
	if f.name == "" {
		f.name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if err := artifact.CheckName(f.name); err != nil {
			return fmt.Errorf("the file's name cannot be the artefact's, give --name: %w", err)
		}
	}
	if len(f.inputs.inputs) > 0 && !f.golden {
		return errors.New("--input is for golden values: give --golden as well")
	}
	d := artifact.Draft{Model: path, Aliases: f.aliases,
		Manifest: artifact.Manifest{Name: f.name, Kind: f.kind, Description: f.description}}
	var err error
	if isCandidate(path) {
		return fmt.Errorf("%s is the candidate of a run, whose parity is not checked yet: publish the run directory", path)
	}
	if d.Manifest.Metrics, err = numbers("--metric", f.metrics); err != nil {
		return err
	}
	for _, file := range f.files {
		title, path, ok := strings.Cut(file, "=")
		if !ok {
			title, path = filepath.Base(file), file
		}
		d.Files = append(d.Files, artifact.NewFile{Title: title, Path: path})
	}
	if f.golden {
		if d.Golden, err = a.goldenOf(ctx, path, &f.inputs); err != nil {
			return err
		}
	}
	if d.Manifest.Parents, err = f.parentDigests(); err != nil {
		return err
	}
	s, err := artifact.Open(f.store.target(), artifact.Options{Now: time.Now})
	if err != nil {
		return err
	}
	defer s.Close()
	v, err := s.Publish(ctx, d)
	if err != nil {
		return err
	}
	return a.printPublished(v)
}

// parentDigests finds the versions of the flag --parent.
func (f *publishFlags) parentDigests() (list []string, err error) {
	for _, ref := range f.parents {
		s, v, err := f.store.find(ref)
		if err != nil {
			return nil, fmt.Errorf("parent: %w", err)
		}
		s.Close()
		list = append(list, v.Digest)
	}
	return list, nil
}

// modelsPublishReplay publishes the replay that a directory has.
func (a *app) modelsPublishReplay(ctx context.Context, path string, from replaySource, f *publishFlags) error {
	if from == (replaySource{}) {
		return fmt.Errorf("publish %s: --replay: it is no run, no search, no population and no folder with checkpoints of a replay", path)
	}
	if f.kind != "model" || len(f.files)+len(f.metrics)+len(f.inputs.inputs) > 0 || f.golden || f.whole || f.allowTies {
		return fmt.Errorf("publish %s: it is a replay: of the flags only --name, --description, --alias, --parent and --store can be given", path)
	}
	v, err := a.publishReplay(ctx, path, from, f)
	if err != nil {
		return fmt.Errorf("publish %s: %w", path, err)
	}
	return a.printPublished(v)
}

func (a *app) printPublished(v artifact.Version) error {
	if a.json {
		return a.printJSON(docOf(v))
	}
	_, err := fmt.Fprintf(a.out, "%s is %s (%s, %s)\n", v, strings.Join(v.Aliases, ", "), byteCount(v.Size()), v.Digest)
	return err
}

// isCandidate reports whether a file is one. What is no model is found out later.
func isCandidate(path string) bool {
	if !isFile(path) {
		return false
	}
	m, err := onnx.Load(path)
	return err == nil && publish.IsCandidate(m)
}

// numbers reads NAME=NUMBER.
func numbers(flag string, list []string) (map[string]float64, error) {
	m := map[string]float64{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		x, err := strconv.ParseFloat(value, 64)
		if !ok || name == "" || err != nil || x-x != 0 {
			return nil, fmt.Errorf("%s %q: expected NAME=NUMBER", flag, s)
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%s %s: given twice", flag, name)
		}
		m[name] = x
	}
	return m, nil
}

// goldenOf runs a model on the inputs of the flags.
func (a *app) goldenOf(ctx context.Context, path string, inputs *inputFlags) (_ *artifact.Golden, err error) {
	m, err := a.loadModel(path)
	if err != nil {
		return nil, err
	}
	feeds, err := inputs.feeds(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c, err := a.foreign(ctx, a.engine)
	if err != nil {
		return nil, err
	}
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	g := &artifact.Golden{Inputs: feeds, Outputs: map[string]*tensor.Tensor{}}
	in, out := make([]*tensor.Tensor, len(s.Inputs())), make([]*tensor.Tensor, len(s.Outputs()))
	for i, p := range s.Inputs() {
		in[i] = feeds[p.Name]
	}
	if err := s.Run(ctx, out, in); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, p := range s.Outputs() {
		g.Outputs[p.Name] = out[i]
	}
	return g, finiteGolden(m, g)
}

// finiteGolden refuses golden outputs that say nothing.
func finiteGolden(m *onnx.Model, g *artifact.Golden) error {
	for _, v := range m.Graph.Output {
		t := g.Outputs[v.Name]
		if t == nil || t.DType() != tensor.Float32 {
			continue
		}
		for _, x := range t.Float32s() {
			if x-x != 0 {
				return fmt.Errorf("golden output %q holds %v: choose other inputs", v.Name, x)
			}
		}
	}
	return nil
}

// publishRun publishes the best policy of a run, as the run does itself when it ends.
func (a *app) publishRun(ctx context.Context, dir string, f *publishFlags) (_ artifact.Version, err error) {
	p, err := a.openPlan(ctx, "", &trainFlags{resume: dir, store: f.store})
	if err != nil {
		return artifact.Version{}, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	o := run.PublishOptions{AllowTies: f.allowTies, Aliases: f.aliases}
	if f.whole {
		return p.PublishWhole(ctx, o)
	}
	return p.Publish(ctx, o)
}
