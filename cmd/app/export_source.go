package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// exportBlock is the number of observations that are recorded and checked at a time.
const exportBlock = 1024

// exportSource is an opened target.
type exportSource struct {
	name, from string
	// path is the model's file, empty where it comes from a store.
	path    string
	model   *onnx.Model
	choices []bake.Choice
	// version is the model's in a store, nil for a file.
	version *artifact.Version
	engine  engine.Compiler
	// recording is nil where there is no environment, and golden then what was recorded when the
	// version was published, nil where nothing was.
	recording *publish.Recording
	golden    *artifact.Golden
	// opened is the environment's configuration, zero where there is none.
	opened experimentOf
	// trained is what the model is compared with; shown says that its inputs are as the environment
	// shows them and not as the model takes them.
	trained struct {
		pair  bake.Pair
		shown bool
	}
	// batch is the number of rows that the model takes at once, 0 where any will do.
	batch   int
	closers []io.Closer
}

// Close frees everything, the last opened first.
func (s *exportSource) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// openExport finds out what a target is and opens it. After an error nothing remains open.
func (a *app) openExport(ctx context.Context, target string, f *exportFlags) (_ *exportSource, err error) {
	s := &exportSource{from: target}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.engine, err = a.foreign(ctx, a.engine); err != nil {
		return nil, err
	}
	config := f.config
	dir, err := s.find(target, f)
	if err != nil {
		return nil, err
	}
	a.noteDeclared(s.from, s.model)
	if config == "" && dir != "" && isFile(filepath.Join(dir, run.ConfigFile)) {
		config = filepath.Join(dir, run.ConfigFile)
	}
	if f.name != "" {
		s.name = f.name
	}
	if err := artifact.CheckName(s.name); err != nil {
		return nil, fmt.Errorf("give --name: %w", err)
	}
	if config != "" {
		if s.opened, err = s.environment(ctx, a.kinds, config, f); err != nil {
			if at := (configs.Errors)(nil); !errors.As(err, &at) { // which says where in the file
				err = fmt.Errorf("%s: %w", config, err)
			}
			if f.config != "" || s.version == nil || ctx.Err() != nil {
				return nil, err
			}
			// A published version was checked in its environment when it was published.
			s.opened, s.recording = experimentOf{}, nil
			a.say("warning: without the environment, parity is checked on the observations that were recorded when it was published: %s", firstLine(err))
		}
	}
	if s.recording == nil {
		if err := s.fixBatch(f); err != nil {
			return nil, err
		}
	}
	if err := s.checked(ctx); err != nil {
		return nil, err
	}
	if s.choices, err = choicesOfModel(s.model, s.recording); err != nil {
		return nil, err
	}
	if s.opened.factory != nil && f.config == "" {
		if err := a.checkpointed(ctx, s, dir, s.opened); err != nil {
			return nil, err
		}
	}
	if s.trained.pair.Network == nil {
		return s, s.own()
	}
	return s, nil
}

// fixBatch finds out whether the model takes one number of rows only, which PyTorch writes by default:
// that of the example that it traced.
func (s *exportSource) fixBatch(f *exportFlags) error {
	first := ""
	for _, v := range s.model.GetGraph().Inputs() {
		t, ok := v.TensorType()
		if !ok || len(t.Dims) == 0 {
			return fmt.Errorf("input %q is %v: expected rows, with the batch in front", v.Name, t)
		}
		switch d := t.Dims[0]; {
		case !d.IsKnown():
			continue
		case first == "" && d.Value > 0:
			first, s.batch = v.Name, d.Value
		case d.Value != s.batch:
			return fmt.Errorf("input %q is %v, and input %q has %d rows: expected one batch in front of both", v.Name, t, first, s.batch)
		}
	}
	if s.batch == 0 {
		return nil
	}
	if f.format != "onnx" && f.format != "oci" {
		return fmt.Errorf("input %q takes %d rows at once: --format %s needs a batch that is free (torch.onnx.export with dynamic_shapes or dynamic_axes)", first, s.batch, f.format)
	}
	list, err := models.States(s.model)
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("input %q takes %d rows at once: a model that remembers needs a batch that is free", first, s.batch)
	}
	return err
}

// checked checks a published version, for which there is no environment, with its golden values.
func (s *exportSource) checked(ctx context.Context) (err error) {
	if s.version == nil || s.recording != nil {
		return nil
	}
	if s.golden, err = s.version.Golden(); err != nil {
		return err
	}
	_, _, err = s.version.CheckGolden(ctx, s.engine)
	return err
}

// find reads the model and returns the run directory that it belongs to, empty where there is none.
func (s *exportSource) find(target string, f *exportFlags) (dir string, err error) {
	switch {
	case isDir(target):
		path := filepath.Join(target, publish.BestFile)
		if !isFile(path) {
			if err := artifact.Unnamed(target); err != nil {
				return "", err
			}
			return "", fmt.Errorf("the directory has no published policy (%s): onnxrl models publish makes it; a group of seeds has one in each of its seed-N", publish.BestFile)
		}
		return target, s.file(path, target)
	case isFile(target):
		dir = filepath.Dir(target)
		return dir, s.file(target, dir)
	}
	store, v, err := artifact.Find(target, f.store.path())
	if err != nil {
		if strings.HasSuffix(target, ".onnx") {
			return "", errors.New("there is no such file")
		}
		return "", fmt.Errorf("it is no run directory and no file, and as an artefact: %w", err)
	}
	s.closers = append(s.closers, store)
	s.name, s.from, s.version = v.Manifest.Name, v.String(), &v
	s.model, err = v.Model()
	return filepath.Dir(store.Dir()), err
}

// file reads a model and looks for it in the store of its run, where it has a manifest.
func (s *exportSource) file(path, dir string) (err error) {
	s.from, s.path = path, path
	if s.model, err = loadModel(path); err != nil {
		return err
	}
	s.name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if name, ok := s.model.Meta(bake.MetaPrefix + "name"); ok {
		s.name = name
	}
	store, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{MustExist: true})
	if errors.Is(err, artifact.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	s.closers = append(s.closers, store)
	v, err := store.Resolve(s.name + ":" + publish.BestAlias)
	if err != nil {
		return nil // A file beside a store of others.
	}
	same, err := v.Is(s.model)
	if same {
		s.version, s.from = &v, path+" ("+v.String()+")"
	}
	return err
}

// experimentOf is an opened configuration.
type experimentOf struct {
	cfg     experiment.Config
	factory envs.Factory
	maker   agents.Maker
}

// environment opens the one that observations are recorded in.
func (s *exportSource) environment(ctx context.Context, kinds experiment.Kinds, config string, f *exportFlags) (o experimentOf, err error) {
	if o.cfg, _, err = kinds.Load(config, nil); err != nil {
		return o, err
	}
	if o.cfg, o.factory, o.maker, err = kinds.On(s.engine).Open(ctx, o.cfg); err != nil {
		return o, err
	}
	s.closers = append(s.closers, o.factory)
	s.recording, err = publish.NewRecording(ctx, o.factory, s.model, s.engine, f.seed, max(8, min(exportBlock, f.rows)))
	if err == nil {
		s.closers = append(s.closers, s.recording)
	}
	return o, err
}

// checkpointed makes the best policy of the run's newest checkpoint the trained form, where baking
// it gives the model's graph again. A run that was stopped after an improvement and before its next
// checkpoint has none, and those of a run that learns from data alone load beside the data only.
func (a *app) checkpointed(ctx context.Context, s *exportSource, dir string, o experimentOf) error {
	if d := o.cfg.Dataset; d != nil && d.Share == 1 {
		return nil
	}
	saved := filepath.Join(dir, run.CheckpointDir)
	list, err := checkpoint.List(saved)
	if err != nil || len(list) == 0 {
		return err
	}
	c, err := checkpoint.Latest(saved)
	if err != nil {
		return err
	}
	defer c.Close()
	seed, ok := s.model.Meta(bake.MetaPrefix + "seed")
	if n, err := strconv.ParseUint(seed, 10, 64); ok && err == nil {
		o.cfg.Seed = n
	}
	tr, err := train.New(ctx, o.factory, o.maker, a.kinds.Setup(o.cfg, s.engine), o.cfg.Train, train.Hooks{Log: a.log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, tr)
	if err := c.Load(tr); err != nil {
		return err
	}
	if err := tr.UseBest(ctx); err != nil {
		return err
	}
	if err := s.recording.Normalize(tr.Normalizers()); err != nil {
		return err
	}
	net, params := tr.Agent().Learner().Policy()
	baked, err := s.recording.Bake(net, params)
	if err != nil {
		return err
	}
	pair, err := s.recording.Pair(net, params, s.model)
	if err != nil {
		return err
	}
	same, err := sameGraph(baked, s.model)
	if err != nil || !same || !slices.Equal(slices.Sorted(slices.Values(data(pair))), slices.Sorted(slices.Values(s.recording.Inputs()))) {
		return errors.Join(err, s.recording.Normalize(nil))
	}
	s.trained.pair, s.trained.shown = pair, true
	return nil
}

// data lists the inputs of a pair's network that are no states.
func data(p bake.Pair) []string {
	return slices.DeleteFunc(slices.Clone(p.Network.Inputs), func(name string) bool {
		return slices.ContainsFunc(p.Memory, func(m models.State) bool { return m.Input == name })
	})
}

// sameGraph compares two models but their metadata.
func sameGraph(x, y *onnx.Model) (bool, error) {
	var text [2][]byte
	for i, m := range []*onnx.Model{x, y} {
		m = m.ShallowClone()
		m.MetadataProps = nil
		var err error
		if text[i], err = onnx.Marshal(m); err != nil {
			return false, err
		}
	}
	return string(text[0]) == string(text[1]), nil
}

// own makes the model with its parameters as inputs the trained form.
func (s *exportSource) own() error {
	net, values, err := models.FromModel(s.model, models.Options{})
	if err != nil {
		return err
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, params)
	s.trained.pair = bake.Pair{Network: net, Params: params, Baked: s.model}
	if s.trained.pair.Memory, err = models.States(s.model); err != nil {
		return err
	}
	return params.Load(values)
}

// files are the version's but model and golden values.
func (s *exportSource) files() (list []artifact.NewFile, err error) {
	for _, file := range s.version.Files {
		if file.MediaType == artifact.ModelType || file.MediaType == artifact.GoldenType {
			continue
		}
		r, err := s.version.Open(file.Title)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		list = append(list, artifact.NewFile{Title: file.Title, MediaType: file.MediaType, Data: data})
	}
	return list, nil
}
