package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// openRuns opens the policies of a run, or of all seeds of a group of them.
func (e *Evaluation) openRuns(ctx context.Context) error {
	seeds, dirs := []uint64{e.cfg.Seed}, []string{e.dir}
	if len(e.cfg.Seeds) > 0 {
		seeds, dirs = nil, nil
		for _, s := range e.cfg.Seeds {
			dir := filepath.Join(e.dir, "seed-"+strconv.FormatUint(s, 10))
			if !Holds(dir) {
				e.notes = append(e.notes, fmt.Sprintf("Seed %d has no run and is left out.", s))
				continue
			}
			seeds, dirs = append(seeds, s), append(dirs, dir)
		}
		if len(dirs) == 0 {
			return errors.New("none of its seeds has a run")
		}
	}
	if err := e.selected(dirs); err != nil {
		return err
	}
	best, own := e.selection.Best, dirs
	if len(dirs) == 1 {
		// Other runs count as trials, whether or not they are evaluated here.
		own = siblings(dirs[0])
		if err := e.selected(own); err != nil {
			return err
		}
	}
	if err := e.noteRuns(dirs); err != nil {
		return err
	}
	order := make([]int, len(dirs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return better(best[x], best[y]) })
	for _, i := range order {
		c, err := e.bestOf(ctx, dirs[i], seeds[i])
		if err != nil {
			return fmt.Errorf("%s: %w", dirs[i], err)
		}
		c.Name = strings.ToUpper(e.cfg.Agent.Kind)
		if len(e.cfg.Seeds) > 0 {
			c.Name = fmt.Sprintf("%s seed %d", c.Name, seeds[i])
		}
		e.policies = append(e.policies, c)
	}
	if err := e.remember(dirs[order[0]]); err != nil {
		return err
	}
	return e.among(own)
}

// ran reports whether a directory has what a run, or a group of them, leaves beside its document.
func ran(dir string) bool {
	if isFile(filepath.Join(dir, MetricsFile)) || isFile(filepath.Join(dir, SourcesFile)) {
		return true
	}
	// The only error is a bad pattern: a folder's name with brackets.
	seeds, err := filepath.Glob(filepath.Join(dir, "seed-*"))
	return err != nil || len(seeds) > 0
}

// among counts the runs below a directory that were trained on the data of the evaluation as trials,
// beside own, which are counted.
func (e *Evaluation) among(own []string) error {
	root := cmp.Or(e.o.Among, e.dir)
	if root == "" {
		return nil
	}
	now, err := Sources(e.kinds, e.doc, e.factory, e.o.Digest)
	if err != nil {
		return err
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case d.Name() == CheckpointDir || d.Name() == publish.StoreDir:
			return fs.SkipDir
		case !isFile(filepath.Join(path, MetricsFile)) || !isFile(filepath.Join(path, SourcesFile)) || slices.ContainsFunc(own, func(o string) bool { return sameFile(o, path) }):
			return nil
		}
		var was map[string]string
		if err := ReadJSON(filepath.Join(path, SourcesFile), &was); err != nil {
			return err
		}
		if digest := now[dataDigest]; digest != "" && was[dataDigest] == digest {
			files = append(files, filepath.Join(path, MetricsFile))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the trials below %s: %w", root, err)
	}
	if len(files) == 0 {
		return nil
	}
	others, err := evaluate.Selected(files, e.cfg.Train.Validation.Metric, "")
	if err != nil {
		return err
	}
	if e.selection == nil {
		e.selection = &evaluate.Selection{Source: "the runs that are there"}
	}
	e.selection.Join(others, root)
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

// noteRuns says which runs were not finished, and what has changed since they were started.
func (e *Evaluation) noteRuns(dirs []string) error {
	now, err := Sources(e.kinds, e.doc, e.factory, e.o.Digest)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if !isFile(filepath.Join(d, FinishedFile)) {
			e.notes = append(e.notes, fmt.Sprintf("The run in %s was not finished.", d))
		}
		var was map[string]string
		if err := ReadJSON(filepath.Join(d, SourcesFile), &was); err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(was)) {
			if v := was[k]; now[k] != v {
				e.notes = append(e.notes, fmt.Sprintf("The run in %s was trained on other inputs: %s was %s and is %s.", d, k, short(v), short(now[k])))
			}
		}
	}
	return nil
}

// selected reads what the policies of run directories were chosen from.
func (e *Evaluation) selected(dirs []string) (err error) {
	var files []string
	for _, d := range dirs {
		files = append(files, filepath.Join(d, MetricsFile))
	}
	source := files[0]
	if len(files) > 1 {
		source = fmt.Sprintf("%s and %d more", source, len(files)-1)
	}
	if e.selection, err = evaluate.Selected(files, e.cfg.Train.Validation.Metric, source); err != nil {
		return err
	}
	if f := e.cfg.ChosenFrom; f != nil {
		e.selection.Searched, e.selection.SearchVariance = f.Trials, f.SharpeVariance
	}
	return nil
}

// siblings lists the directories of the runs that a run was chosen among, itself included: the
// seeds of its group, or all runs of its study.
func siblings(dir string) []string {
	above := filepath.Dir(filepath.Clean(dir))
	pattern := ""
	switch {
	case !strings.HasPrefix(filepath.Base(dir), "seed-"):
	case isFile(filepath.Join(above, ConfigFile)):
		pattern = filepath.Join(above, "seed-*", MetricsFile)
	case isFile(filepath.Join(filepath.Dir(above), StudyFile)):
		pattern = filepath.Join(filepath.Dir(above), "*", "seed-*", MetricsFile)
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

// bestOf returns the best policy of a run: the published model, or the best one in its newest
// checkpoint. Where a checkpoint is meant it is the one that was saved there.
func (e *Evaluation) bestOf(ctx context.Context, dir string, seed uint64) (c candidate, err error) {
	if path := filepath.Join(dir, publish.BestFile); e.at == "" && e.cfg.Eval.Deterministic && isFile(path) {
		return e.fileOf(ctx, path)
	}
	saved := filepath.Join(dir, CheckpointDir)
	list, err := checkpoint.List(saved)
	if err != nil {
		return c, err
	}
	if len(list) == 0 {
		return c, fmt.Errorf("it has neither a published policy (%s) nor a checkpoint", publish.BestFile)
	}
	var from *checkpoint.Checkpoint
	if e.at != "" {
		from, err = checkpoint.Open(e.at)
	} else {
		from, err = checkpoint.Latest(saved)
	}
	if err != nil {
		return c, err
	}
	defer from.Close()
	cfg := e.cfg
	cfg.Seed = seed
	setup := e.kinds.Setup(cfg, e.engine)
	if cfg.Dataset != nil {
		// The checkpoint has the identity of the data set.
		if setup.Replay, _, err = e.kinds.Learn(ctx, e.factory, *cfg.Dataset); err != nil {
			return c, err
		}
	}
	tr, err := train.New(ctx, e.factory, e.maker, setup, cfg.Train, train.Hooks{Log: e.o.Log})
	if err != nil {
		return c, err
	}
	e.closers = append(e.closers, tr)
	if err := from.Load(tr); err != nil {
		return c, err
	}
	c.From, c.actors = from.Path, tr.Agent()
	if e.at != "" {
		return c, nil
	}
	return c, tr.UseBest(ctx)
}

// fileOf returns the policy of an ONNX file.
func (e *Evaluation) fileOf(ctx context.Context, path string) (c candidate, err error) {
	files, err := ModelFiles(path)
	if err != nil {
		return c, err
	}
	c.From = path
	if c.SHA256, err = e.o.Digest(files); err != nil {
		return c, err
	}
	if c.model, err = onnx.Load(path); err != nil {
		return c, err
	}
	if err := onnx.Check(c.model); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.actors = publish.ModelFile(ctx, path, e.engine, e.factory, e.o.Split)
	return c, nil
}

// openFile opens a model. One that lies in a run directory brings the trials that it was chosen
// from.
func (e *Evaluation) openFile(ctx context.Context) error {
	c, err := e.fileOf(ctx, e.path)
	if err != nil {
		return err
	}
	c.Name = nameOf(c.model, "policy "+filepath.Base(e.path))
	e.policies = append(e.policies, c)
	dir := filepath.Dir(e.path)
	if e.o.Config != "" || !isFile(filepath.Join(dir, MetricsFile)) {
		if err := e.recorded(""); err != nil {
			return err
		}
		return e.among([]string{dir})
	}
	own := siblings(dir)
	if err := e.selected(own); err != nil {
		return err
	}
	if err := e.recorded(dir); err != nil {
		return err
	}
	return e.among(own)
}

// openVersion opens a version of an artefact store.
func (e *Evaluation) openVersion(ctx context.Context) error {
	m, err := e.version.Model()
	if err != nil {
		return err
	}
	c := candidate{model: m, actors: publish.ModelOf(ctx, m, e.engine, e.factory, e.o.Split)}
	c.Name, c.From, c.SHA256 = nameOf(m, "policy "+e.version.Manifest.Name), e.version.String(), strings.TrimPrefix(e.version.Digest, "sha256:")
	e.policies = append(e.policies, c)
	if err := e.recorded(""); err != nil {
		return err
	}
	return e.among([]string{filepath.Dir(e.store.Dir())})
}

// nameOf is what the metadata of a published model call it: its algorithm, its experiment and the
// seed; otherwise is for models without.
func nameOf(m *onnx.Model, otherwise string) string {
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

// remember finds out what the first policy has seen: as its file says, and where that says nothing
// as the document does that its run was started with, whatever was edited since.
func (e *Evaluation) remember(dir string) error {
	if m := e.policies[0].model; m != nil {
		var err error
		if e.past, err = publish.PastOf(m); err != nil {
			return fmt.Errorf("%s: %w", e.policies[0].From, err)
		}
	}
	if t := e.past.Trials; t != nil && e.selection != nil {
		e.selection.Runs = max(e.selection.Runs, t.Runs) // Runs count, too, that were removed since.
	}
	if dir == "" || e.past.Trials != nil {
		return nil
	}
	c, _, err := experiment.Load(filepath.Join(dir, ConfigFile), nil)
	if err != nil {
		return err
	}
	e.past.Trained, e.past.Chosen = e.kinds.Periods(c)
	return nil
}

// recorded takes over the record of the only policy's file.
func (e *Evaluation) recorded(dir string) error {
	if err := e.remember(dir); err != nil {
		return err
	}
	if t := e.past.Trials; t != nil && e.selection == nil {
		e.selection = t.Selection()
	}
	return nil
}
