package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// evalTarget is what onnxrl evaluate works on: an opened document and the policies to evaluate in
// it.
type evalTarget struct {
	// program is what has evaluated.
	program string
	cfg     experiment.Config
	doc     *configs.Document
	factory envs.Factory
	maker   agents.Maker
	engine  engine.Compiler
	// dir is the run directory; empty for a bare model.
	dir string
	// candidates are the policies, that of the best validation first.
	candidates []candidate
	// selection is what the first one was chosen from, nil where nothing tells, and past what its
	// file, or its run's directory, says of how it came about.
	selection *assess.Selection
	past      publish.Past
	// notes are what a reader must know of the runs.
	notes   []string
	closers []io.Closer
}

// candidate is one policy.
type candidate struct {
	name string
	// from says where the policy comes from: a file, a checkpoint or an artefact.
	from   string
	sha256 string
	actors evaluate.Actors
	policy *evaluate.Policy
	// model is a published one; nil where the policy is that of a checkpoint.
	model *onnx.Model
}

// Close frees policies, agents and the environment, the last one opened first.
func (j *evalTarget) Close() error {
	var errs []error
	for _, c := range slices.Backward(j.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openEvalTarget finds out what a target is and opens it. After an error nothing remains open.
func (a *app) openEvalTarget(ctx context.Context, target string, f *evaluateFlags) (_ *evalTarget, err error) {
	j := &evalTarget{program: a.program()}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	switch {
	case isDir(target) && isFile(filepath.Join(target, run.ConfigFile)):
		if f.config != "" {
			return nil, errors.New("a run directory has its own configuration; edit it with --set and leave --config out")
		}
		if err := refuseSearch(target); err != nil {
			return nil, err
		}
		j.dir = target
		return j, a.openRunDir(ctx, j, f)
	case isDir(target):
		return nil, fmt.Errorf("the directory holds no run: there is no %s", run.ConfigFile)
	case isFile(target):
		return j, a.openModelFile(ctx, j, target, f)
	case strings.HasSuffix(target, ".onnx"):
		return nil, fs.ErrNotExist
	}
	return j, a.openArtifact(ctx, j, target, f)
}

// open reads the document and opens what it names.
func (j *evalTarget) open(ctx context.Context, a *app, path string, sets []string) (err error) {
	if j.cfg, j.doc, err = a.kinds.Load(path, sets); err != nil {
		return err
	}
	if j.engine, err = a.compiler(ctx); err != nil {
		return err
	}
	if j.cfg, j.factory, j.maker, err = a.kinds.Open(ctx, j.cfg); err != nil {
		return err
	}
	j.closers = append(j.closers, j.factory)
	return nil
}

// add makes a policy of actors a candidate.
func (j *evalTarget) add(f *evaluateFlags, c candidate) error {
	mode := agents.Greedy
	if !j.cfg.Eval.Deterministic {
		mode = agents.Explore
	}
	if _, ok := j.factory.(trading.Opened); ok {
		spec, err := assess.Spec(j.factory, envs.Split(f.split))
		if err != nil {
			return err
		}
		if c.policy, err = evaluate.NewPolicy(c.name, c.actors, mode, spec); err != nil {
			return err
		}
		j.closers = append(j.closers, c.policy)
	}
	j.candidates = append(j.candidates, c)
	return nil
}

// openRunDir opens a run, or all seeds of a group of them.
func (a *app) openRunDir(ctx context.Context, j *evalTarget, f *evaluateFlags) error {
	if err := j.open(ctx, a, filepath.Join(j.dir, run.ConfigFile), f.sets); err != nil {
		return err
	}
	seeds, dirs := []uint64{j.cfg.Seed}, []string{j.dir}
	if len(j.cfg.Seeds) > 0 {
		seeds, dirs = nil, nil
		for _, s := range j.cfg.Seeds {
			dir := filepath.Join(j.dir, "seed-"+strconv.FormatUint(s, 10))
			if !isFile(filepath.Join(dir, run.ConfigFile)) {
				j.notes = append(j.notes, fmt.Sprintf("Seed %d has no run and is left out.", s))
				continue
			}
			seeds, dirs = append(seeds, s), append(dirs, dir)
		}
		if len(dirs) == 0 {
			return errors.New("none of its seeds has a run")
		}
	}
	if err := j.selected(dirs); err != nil {
		return err
	}
	best := j.selection.Best
	if len(dirs) == 1 {
		// Other runs count as trials, whether or not they are evaluated here.
		if err := j.selected(siblings(dirs[0])); err != nil {
			return err
		}
	}
	if err := a.runNotes(j, dirs); err != nil {
		return err
	}
	// The seed with the best validation is what the report is about.
	order := make([]int, len(dirs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return better(best[x], best[y]) })
	for _, i := range order {
		name := strings.ToUpper(j.cfg.Agent.Kind)
		if len(j.cfg.Seeds) > 0 {
			name = fmt.Sprintf("%s seed %d", name, seeds[i])
		}
		c, err := a.bestOf(ctx, j, f, dirs[i], seeds[i])
		if err != nil {
			return fmt.Errorf("%s: %w", dirs[i], err)
		}
		c.name = name
		if err := j.add(f, c); err != nil {
			return fmt.Errorf("%s: %w", c.from, err)
		}
	}
	return j.remember(dirs[order[0]])
}

// remember finds out what the reported policy has seen: as its file says, and where that says
// nothing as the configuration does that its run was started with, whatever was edited since.
func (j *evalTarget) remember(dir string) error {
	if m := j.candidates[0].model; m != nil {
		var err error
		if j.past, err = publish.PastOf(m); err != nil {
			return fmt.Errorf("%s: %w", j.candidates[0].from, err)
		}
	}
	if t := j.past.Trials; t != nil && j.selection != nil {
		j.selection.Runs = max(j.selection.Runs, t.Runs) // Runs count, too, that were removed since.
	}
	if dir == "" || j.past.Trials != nil {
		return nil
	}
	c, _, err := experiment.Load(filepath.Join(dir, run.ConfigFile), nil)
	if err != nil {
		return err
	}
	j.past.Trained, j.past.Chosen = assess.Configured(c)
	return nil
}

// siblings lists the directories of the runs that a run was chosen among, itself included: the
// seeds of its group, or all runs of its study.
func siblings(dir string) []string {
	above := filepath.Dir(filepath.Clean(dir))
	pattern := ""
	switch {
	case !strings.HasPrefix(filepath.Base(dir), "seed-"):
	case isFile(filepath.Join(above, run.ConfigFile)):
		pattern = filepath.Join(above, "seed-*", run.MetricsFile)
	case isFile(filepath.Join(filepath.Dir(above), ablate.PlanFile)):
		pattern = filepath.Join(filepath.Dir(above), "*", "seed-*", run.MetricsFile)
	}
	var out []string
	// The only error is a bad pattern: a folder's name with brackets, which then stands alone.
	files, _ := filepath.Glob(pattern)
	for _, f := range files {
		out = append(out, filepath.Dir(f))
	}
	if !slices.Contains(out, filepath.Clean(dir)) {
		return []string{dir}
	}
	return out
}

// runNotes says which runs were not finished, and what has changed since they were started.
func (a *app) runNotes(j *evalTarget, dirs []string) error {
	now, err := run.Sources(j.doc, j.factory, a.digest)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if !isFile(filepath.Join(d, run.FinishedFile)) {
			j.notes = append(j.notes, fmt.Sprintf("The run in %s was not finished.", d))
		}
		var was map[string]string
		if err := run.ReadJSON(filepath.Join(d, run.SourcesFile), &was); err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(was)) {
			if now[k] != was[k] {
				j.notes = append(j.notes, fmt.Sprintf("The run in %s was trained on other inputs: %s was %s and is %s.", d, k, run.Short(was[k]), run.Short(now[k])))
			}
		}
	}
	return nil
}

// better orders scores, the highest first and those that are missing last.
func better(x, y float64) int {
	switch {
	case x > y || math.IsNaN(y) && !math.IsNaN(x):
		return -1
	case y > x || math.IsNaN(x) && !math.IsNaN(y):
		return 1
	}
	return 0
}

// selected reads what the policies of run directories were chosen from.
func (j *evalTarget) selected(dirs []string) (err error) {
	var files []string
	for _, d := range dirs {
		files = append(files, filepath.Join(d, run.MetricsFile))
	}
	source := files[0]
	if len(files) > 1 {
		source = fmt.Sprintf("%s and %d more", source, len(files)-1)
	}
	if j.selection, err = assess.Selected(files, j.cfg.Train.Validation.Metric, source); err != nil {
		return err
	}
	if f := j.cfg.ChosenFrom; f != nil {
		j.selection.Searched, j.selection.SearchVariance = f.Trials, f.SharpeVariance
	}
	return nil
}

// bestOf returns the best policy of a run: the published model, or the best one in its newest
// checkpoint.
func (a *app) bestOf(ctx context.Context, j *evalTarget, f *evaluateFlags, dir string, seed uint64) (candidate, error) {
	if path := filepath.Join(dir, publish.BestFile); j.cfg.Eval.Deterministic && isFile(path) {
		return j.modelFile(ctx, a, f, path)
	}
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		return candidate{}, err
	}
	if len(list) == 0 {
		return candidate{}, fmt.Errorf("it has neither a published policy (%s) nor a checkpoint", publish.BestFile)
	}
	c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		return candidate{}, err
	}
	defer c.Close()
	setup := agents.Setup{Engine: j.engine, Encoders: a.kinds.Encoders, Key: rng.New(seed)}
	tr, err := train.New(ctx, j.factory, j.maker, setup, j.cfg.Train, train.Hooks{Log: a.log})
	if err != nil {
		return candidate{}, err
	}
	j.closers = append(j.closers, tr)
	if err := c.Load(tr); err != nil {
		return candidate{}, err
	}
	if err := tr.UseBest(ctx); err != nil {
		return candidate{}, err
	}
	return candidate{from: c.Path, actors: tr.Agent()}, nil
}

// modelFile returns the policy of an ONNX file.
func (j *evalTarget) modelFile(ctx context.Context, a *app, f *evaluateFlags, path string) (candidate, error) {
	files, err := run.ModelFiles(path)
	if err != nil {
		return candidate{}, err
	}
	digest, err := a.digest(files)
	if err != nil {
		return candidate{}, err
	}
	m, err := loadModel(path)
	if err != nil {
		return candidate{}, err
	}
	return candidate{from: path, sha256: digest, model: m, actors: assess.ModelFile(ctx, path, j.engine, j.factory, envs.Split(f.split))}, nil
}

// openModelFile opens a bare model. One that lies in a run directory brings its configuration and
// the trials it was chosen from.
func (a *app) openModelFile(ctx context.Context, j *evalTarget, path string, f *evaluateFlags) error {
	config, inRun := f.config, false
	if config == "" {
		if config = filepath.Join(filepath.Dir(path), run.ConfigFile); !isFile(config) {
			return fmt.Errorf("a bare model needs the configuration of its environment: --config FILE")
		}
		inRun = isFile(filepath.Join(filepath.Dir(path), run.MetricsFile))
	}
	if err := j.open(ctx, a, config, f.sets); err != nil {
		return err
	}
	c, err := j.modelFile(ctx, a, f, path)
	if err != nil {
		return err
	}
	c.name = policyName(c.model, "policy "+filepath.Base(path))
	if err := j.add(f, c); err != nil {
		return err
	}
	dir := ""
	if inRun {
		dir = filepath.Dir(path)
		if err := j.selected(siblings(dir)); err != nil {
			return err
		}
	}
	return j.recorded(dir)
}

// recorded takes over the record of the only candidate's file.
func (j *evalTarget) recorded(dir string) error {
	if err := j.remember(dir); err != nil {
		return err
	}
	if t := j.past.Trials; t != nil && j.selection == nil {
		j.selection = assess.SelectedBy(*t)
	}
	return nil
}

// policyName is what the metadata of a published model call it: its algorithm, its experiment and
// the seed; otherwise is for models without.
func policyName(m *onnx.Model, otherwise string) string {
	var parts []string
	for _, key := range []string{"agent", "name", "seed"} {
		v, ok := m.Meta(bake.MetaPrefix + key)
		if !ok || v == "" {
			return otherwise
		}
		parts = append(parts, v)
	}
	return fmt.Sprintf("%s %s seed %s", strings.ToUpper(parts[0]), parts[1], parts[2])
}

// openArtifact opens a version of an artefact store.
func (a *app) openArtifact(ctx context.Context, j *evalTarget, ref string, f *evaluateFlags) error {
	store, v, err := artifact.Find(ref, (&storeFlag{}).path())
	if err != nil {
		return fmt.Errorf("it is no run directory and no file, and as an artefact: %w", err)
	}
	j.closers = append(j.closers, store)
	config := f.config
	if config == "" {
		if config = filepath.Join(filepath.Dir(store.Dir()), run.ConfigFile); !isFile(config) {
			return errors.New("an artefact outside of a run directory needs the configuration of its environment: --config FILE")
		}
	}
	if err := j.open(ctx, a, config, f.sets); err != nil {
		return err
	}
	m, err := v.Model()
	if err != nil {
		return err
	}
	err = j.add(f, candidate{name: policyName(m, "policy "+v.Manifest.Name), model: m, from: v.String(), sha256: strings.TrimPrefix(v.Digest, "sha256:"), actors: assess.ModelOf(ctx, m, j.engine, j.factory, envs.Split(f.split))})
	if err != nil {
		return err
	}
	return j.recorded("")
}
