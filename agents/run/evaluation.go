package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// ErrNoConfig says that a policy lies in no run directory, and nothing names the document of its
// environment.
var ErrNoConfig = errors.New("a policy outside of a run directory needs the configuration of its environment")

// EvaluationOptions say on what policies are evaluated, and where they are looked for.
type EvaluationOptions struct {
	// Split is that of the data, or of the episodes; empty for envs.Test.
	Split envs.Split
	// Config is the document of the environment, a file or the name of a shipped one, for a policy
	// that lies in no run directory. A run directory has its own.
	Config string
	// Sets edit the document, such as eval.episodes=100.
	Sets []string
	// Store is the directory of the artefact store that references are looked up in which name
	// none.
	Store string
	// Among is a directory below which all runs that were trained on the same data count as trials;
	// empty for the directory that is evaluated.
	Among string
	// Program, Digest and Log are as in [Options] and its Hooks.
	Program string
	Digest  func(files []string) (string, error)
	Log     *slog.Logger
}

// Evaluation is a document with the policies to evaluate in its environment.
type Evaluation struct {
	o       EvaluationOptions
	kinds   experiment.Kinds
	cfg     experiment.Config
	doc     *configs.Document
	factory envs.Factory
	maker   agents.Maker
	engine  engine.Compiler
	// dir is the run directory, or path a file, or version one of the store; the others are empty,
	// but for the directory of a publication that is no run, whose file path is.
	// at is the run's checkpoint whose policy is meant, empty for its best one.
	dir, at, path string
	store         *artifact.Store
	version       artifact.Version
	// policies begin with that of the best validation.
	policies []candidate
	// selection is what the first one was chosen from, nil where nothing tells, and past what its
	// file, or its run's directory, says of how it came about.
	selection *evaluate.Selection
	past      publish.Past
	notes     []string
	closers   []io.Closer
}

// EvaluatedPolicy says which policy is evaluated; the JSON keys are stable.
type EvaluatedPolicy struct {
	Name string `json:"name"`
	// From is a file, a checkpoint or an artefact.
	From   string `json:"from"`
	SHA256 string `json:"sha256,omitempty"`
}

type candidate struct {
	EvaluatedPolicy
	actors evaluate.Actors
	// model is a published one; nil where the policy is that of a checkpoint.
	model *onnx.Model
}

// NewEvaluation finds the policies of a target and reads the document of their environment. A target
// is the directory of a run or of several seeds, of each of which it is the best policy, or that of
// a publication, such as [publish.WholeDir]. It may also be a checkpoint of a run, of which it is
// the policy at that step, an ONNX file, or an artefact's reference. The caller closes the
// evaluation.
func NewEvaluation(kinds experiment.Kinds, target string, o EvaluationOptions) (_ *Evaluation, err error) {
	o.Split = cmp.Or(o.Split, envs.Test)
	o.Program = cmp.Or(o.Program, buildinfo.Program())
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Digest == nil {
		o.Digest = func(files []string) (string, error) { return Digest(files, nil) }
	}
	e := &Evaluation{o: o, kinds: kinds}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	config, err := e.find(target)
	if err != nil {
		return nil, err
	}
	if e.cfg, e.doc, err = kinds.Load(config, o.Sets); err != nil {
		return nil, err
	}
	return e, nil
}

// find finds out what a target is, and returns the path of its document.
func (e *Evaluation) find(target string) (config string, err error) {
	info, err := os.Stat(target)
	switch {
	case err == nil && info.IsDir():
		if target, e.at, err = Point(target); err != nil {
			return "", err
		}
		if !Holds(target) {
			if err := artifact.Unnamed(target); err != nil {
				return "", err
			}
			return "", fmt.Errorf("the directory holds no run: there is no %s", ConfigFile)
		}
		if e.o.Config != "" {
			return "", fmt.Errorf("a run directory has its own configuration, and takes no %s", e.o.Config)
		}
		e.dir = target
		if path := filepath.Join(target, publish.BestFile); !ran(target) && isFile(path) {
			e.path = path // A router with its experts is published to a directory of its own.
		}
		return filepath.Join(target, ConfigFile), nil
	case err == nil && info.Mode().IsRegular():
		e.path = target
		return e.configBeside(filepath.Dir(target))
	case strings.HasSuffix(target, ".onnx"):
		return "", fs.ErrNotExist
	}
	if e.store, e.version, err = artifact.Find(target, e.o.Store); err != nil {
		return "", fmt.Errorf("it is no run directory and no file, and as an artefact: %w", err)
	}
	e.closers = append(e.closers, e.store)
	return e.configBeside(filepath.Dir(e.store.Dir()))
}

// configBeside returns the path of the document that is given, or else lies in a directory.
func (e *Evaluation) configBeside(dir string) (string, error) {
	if e.o.Config != "" {
		return e.o.Config, nil
	}
	config := filepath.Join(dir, ConfigFile)
	if !isFile(config) {
		return "", ErrNoConfig
	}
	return config, nil
}

// Open opens the environment and the policies, which the engine runs; it stays the caller's.
func (e *Evaluation) Open(ctx context.Context, c engine.Compiler) (err error) {
	e.engine = c
	if e.cfg, e.factory, e.maker, err = e.kinds.On(c).Open(ctx, e.cfg); err != nil {
		return err
	}
	e.closers = append(e.closers, e.factory)
	switch {
	case e.path != "":
		return e.openFile(ctx)
	case e.dir != "":
		return e.openRuns(ctx)
	}
	return e.openVersion(ctx)
}

// Close frees policies, agents, environment and store, the last one opened first.
func (e *Evaluation) Close() error {
	var errs []error
	for _, c := range slices.Backward(e.closers) {
		errs = append(errs, c.Close())
	}
	e.closers = nil
	return errors.Join(errs...)
}

// Config is the document as it is evaluated: once opened, with its defaults.
func (e *Evaluation) Config() experiment.Config { return e.cfg }

// Factory makes the environments, once opened. It is the evaluation's.
func (e *Evaluation) Factory() envs.Factory { return e.factory }

// Dir is the run directory; empty for a file or an artefact.
func (e *Evaluation) Dir() string { return e.dir }

// Policies lists the opened policies, that of the best validation first.
func (e *Evaluation) Policies() (list []EvaluatedPolicy) {
	for _, c := range e.policies {
		list = append(list, c.EvaluatedPolicy)
	}
	return list
}

// Actors are those of the policies, in the order of Policies. They are the evaluation's.
func (e *Evaluation) Actors() (list []evaluate.Actors) {
	for _, c := range e.policies {
		list = append(list, c.actors)
	}
	return list
}

// Split is that which is evaluated.
func (e *Evaluation) Split() envs.Split { return e.o.Split }

// Past is what the first policy's file, or its run's directory, says of how it came about.
func (e *Evaluation) Past() publish.Past { return e.past }

// Selection is what the first policy was chosen from; nil where nothing tells.
func (e *Evaluation) Selection() *evaluate.Selection { return e.selection }

// Notes are what is to be known of the policies, one sentence each.
func (e *Evaluation) Notes() []string { return e.notes }

// Origins says where policies, data and code come from: names and values, in order.
func (e *Evaluation) Origins() ([][2]string, error) {
	digest, err := configs.Digest(e.cfg)
	if err != nil {
		return nil, err
	}
	var out [][2]string
	add := func(k, v string) { out = append(out, [2]string{k, v}) }
	for _, c := range e.policies {
		v := c.From
		if c.SHA256 != "" {
			v += ", SHA-256 " + c.SHA256
		}
		add("policy "+c.Name, v)
	}
	add("config_sha256", digest)
	sources, err := Sources(e.kinds, e.doc, e.factory, e.o.Digest)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(sources)) {
		add(k, sources[k])
	}
	add("seed", strconv.FormatUint(e.cfg.Seed, 10))
	add("engine", e.engine.Name())
	add("program", e.o.Program)
	return out, nil
}

// Setup is what agents of the document are made with, once opened.
func (e *Evaluation) Setup() agents.Setup { return e.kinds.Setup(e.cfg, e.engine) }

// Program is the version of the code.
func (e *Evaluation) Program() string { return e.o.Program }

// Parents are the digests of the version that the policy of the best validation is. It is the one
// that is evaluated, or the one that was published into the store beside its file, or beside that
// of its run; none where there is none.
func (e *Evaluation) Parents() ([]string, error) {
	c := e.policies[0]
	if e.version.Digest != "" {
		return []string{e.version.Digest}, nil
	}
	path, m := cmp.Or(e.path, filepath.Join(e.dir, publish.BestFile)), c.model
	if m == nil {
		if e.at != "" || !isFile(path) {
			return nil, nil // It was at another step that the run published, or it has not.
		}
		var err error
		if m, err = onnx.Load(path); err != nil {
			return nil, err
		}
	}
	d, err := publish.VersionOf(filepath.Join(filepath.Dir(path), publish.StoreDir), m)
	if errors.Is(err, artifact.ErrNoStore) {
		err = nil
	}
	if err != nil || d == "" {
		return nil, err
	}
	return []string{d}, nil
}

// Key is where the randomness of the evaluation descends from.
func (e *Evaluation) Key() rng.Key { return rng.New(e.cfg.Seed).Split("evaluate") }

// Episodes lets each policy act through eval.episodes whole episodes. The results are in the order
// of Policies.
func (e *Evaluation) Episodes(ctx context.Context) (list []evaluate.Result, err error) {
	for _, c := range e.policies {
		r, err := evaluate.Episodes(ctx, e.factory, e.o.Split, c.actors, e.cfg.Eval.Mode(), e.cfg.Eval.Episodes, e.cfg.Eval.MaxEpisodeSteps, e.Key())
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}
