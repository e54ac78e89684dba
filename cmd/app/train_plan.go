package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// lineageFile describes how a run came to be; see lineage.
const lineageFile = "lineage.json"

// trainPlan is what onnxrl train is going to do: one run, or one for each seed, of an opened
// document.
type trainPlan struct {
	kinds experiment.Kinds
	// cfg is the effective document. With several seeds it is that of all runs; see forSeed.
	cfg     experiment.Config
	factory envs.Factory
	maker   agents.Maker
	engine  engine.Compiler
	sources map[string]string
	// dir is the run's directory, or the one that the directories of the seeds are in. name is that
	// of the document: artefacts are called by it, and without a directory so is the first free one
	// in runs/; claimed says that this process has made it.
	dir     string
	name    string
	claimed bool
	resume  bool
	// from is the checkpoint that a resumed run goes on from, empty for the newest; branches is the
	// new directory in which it does, empty for its own.
	from, branches string
	parallel       int
	// init is where parameters begin; nil draws them. publishes keeps the best policies as
	// artefacts.
	init      *initial
	publishes bool
	// shared is the directory of a store that every publication is copied into; empty copies none.
	shared string
	// told keeps what is to be said of the data to once, however many seeds begin; nil says
	// nothing.
	told *sync.Once

	// known says that the directory of several seeds describes them. It is guarded by mu while runs
	// go on.
	mu    sync.Mutex
	known bool
}

// openPlan reads the document and opens what it names. Nothing is written. Close the plan after
// use.
func (a *app) openPlan(ctx context.Context, path string, f *trainFlags) (_ *trainPlan, err error) {
	p := &trainPlan{kinds: a.kinds, dir: f.out, resume: f.resume != "", parallel: f.parallel, publishes: true, shared: f.store.dir, told: &sync.Once{}}
	if p.resume {
		if p.dir, p.from, err = resumePoint(f.resume); err != nil {
			return nil, err
		}
		if f.out != "" {
			if p.from == "" {
				return nil, errors.New("train: --resume continues in its run directory; leave --out out, or name one of its checkpoints, from which it goes on in another directory")
			}
			if err := refuseRun(f.out, false, "--out"); err != nil {
				return nil, err
			}
			p.branches = f.out
		}
		path = filepath.Join(p.dir, configFile)
		if err := refuseRun(p.dir, true, "--out"); err != nil {
			return nil, err
		}
		if err := refuseSearch(p.dir); err != nil {
			return nil, err
		}
	} else if p.dir != "" {
		if err := refuseRun(p.dir, false, "--out"); err != nil {
			return nil, err
		}
	}
	sets := f.sets
	if f.noPublish {
		sets = append(slices.Clone(sets), "publish.when="+experiment.Never)
	}
	doc, err := loadExperiment(path, sets, &p.cfg)
	if err != nil {
		return nil, p.explainStored(path, err)
	}
	if f.seeds != "" {
		if p.cfg.Seeds, err = parseSeeds(f.seeds); err != nil {
			return nil, err
		}
		if err := configs.Validate(p.cfg); err != nil {
			return nil, fmt.Errorf("--seeds: %w", err)
		}
	}
	if p.cfg.Train.Threads == 0 {
		p.cfg.Train.Threads = max(1, runtime.GOMAXPROCS(0)/min(p.parallel, max(1, len(p.cfg.Seeds))))
	}
	if p.engine, err = a.compiler(ctx); err != nil {
		return nil, err
	}
	if p.cfg, p.factory, p.maker, err = p.kinds.Open(ctx, p.cfg); err != nil {
		return nil, p.explainStored(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	// Before there is a directory.
	if _, err := p.validator(); err != nil {
		return nil, err
	}
	if p.sources, err = a.experimentSources(doc, p.factory); err != nil {
		return nil, err
	}
	p.name = experimentName(path)
	return p, p.openInit(ctx, f, a.err)
}

// openInit opens what runs begin with. When they are resumed the lineage says what they are called
// and what those seeds begin with that are yet to be begun. What may make the results differ from
// those of runs that never stopped is told to out.
func (p *trainPlan) openInit(ctx context.Context, f *trainFlags, out io.Writer) (err error) {
	var record initRecord
	if f.init != "" {
		if record, err = f.initOf(); err != nil {
			return err
		}
	}
	if p.resume {
		var l lineage
		if err := readJSON(filepath.Join(p.dir, lineageFile), &l); err != nil {
			return fmt.Errorf("resume %s: %w", p.dir, err)
		}
		p.name = l.Name
		if err := p.tellGrowth(out); err != nil {
			return err
		}
		if l.Init != nil && p.group() {
			record = *l.Init
		}
		for _, c := range [][3]string{{"engine", l.Engine, p.engine.Name()}, {"platform", l.Platform, platform()}, {"program", l.Program.Version, version()}} {
			if c[1] != c[2] {
				fmt.Fprintf(out, "onnxrl: warning: the run was started with %s %s and goes on with %s: results may differ in the last bits\n", c[0], c[1], c[2])
			}
		}
	}
	if record.Ref != "" {
		p.init, err = openInitial(ctx, record, f.store.path())
	}
	return err
}

// Close frees what the plan has opened.
func (p *trainPlan) Close() error {
	var errs []error
	if p.init != nil {
		errs = append(errs, p.init.source.Close())
	}
	if p.factory != nil {
		errs = append(errs, p.factory.Close())
	}
	return errors.Join(errs...)
}

// group reports whether the plan has a directory for each seed.
func (p *trainPlan) group() bool { return len(p.cfg.Seeds) > 0 }

// seeds lists the seeds of the runs.
func (p *trainPlan) seeds() []uint64 {
	if p.group() {
		return p.cfg.Seeds
	}
	return []uint64{p.cfg.Seed}
}

// forSeed returns the document of one run: running it alone gives the same.
func (p *trainPlan) forSeed(seed uint64) experiment.Config {
	c := p.cfg
	c.Seed, c.Seeds = seed, nil
	return c
}

// dirOf returns the run directory of a seed.
func (p *trainPlan) dirOf(seed uint64) string {
	if !p.group() {
		return p.dir
	}
	return filepath.Join(p.dir, fmt.Sprintf("seed-%d", seed))
}

// paths are the keys of a document that name files. They are made absolute, so that the effective
// configuration means the same from any folder.
var paths = []string{"env.data.source.path", "agent.encoder.path", "agent.policy.path"}

// shippedPrefix marks paths into what comes with the program.
const shippedPrefix = "shipped:"

// loadExperiment reads a document into c and makes its paths absolute.
func loadExperiment(path string, sets []string, c *experiment.Config) (*configs.Document, error) {
	loaded, doc, err := experiment.Load(path, sets)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, key := range paths {
		old, ok := docPath(doc, key)
		if !ok || filepath.IsAbs(old) {
			continue
		}
		file, err := filepath.Abs(old)
		if err != nil {
			return nil, err
		}
		if err := doc.SetValue(key, file); err != nil {
			return nil, err
		}
		changed = true
	}
	if changed {
		loaded = experiment.Defaults()
		if err := doc.Decode(&loaded); err != nil {
			return nil, err
		}
	}
	*c = loaded
	return doc, nil
}

// docPath returns the path of a file that a document names.
func docPath(doc *configs.Document, key string) (string, bool) {
	s, ok := doc.Lookup(key)
	if !ok || !s.IsScalar() {
		return "", false
	}
	var path string
	if err := s.Decode(&path); err != nil || path == "" || strings.HasPrefix(path, shippedPrefix) {
		return "", false
	}
	return path, true
}

// experimentName is the name of a document without folder and ending.
func experimentName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

// claim makes the directory that was given, or the first of runs/NAME-1, runs/NAME-2 … that does
// not exist.
func (p *trainPlan) claim() error {
	if p.dir != "" {
		if _, err := os.Stat(p.dir); !errors.Is(err, os.ErrNotExist) {
			return nil // What is wrong with it is said where it is opened.
		}
		if err := os.MkdirAll(p.dir, 0o755); err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		p.claimed = true
		return nil
	}
	if err := os.MkdirAll("runs", 0o755); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	for n := 1; ; n++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", p.name, n))
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		p.dir, p.claimed = dir, true
		return nil
	}
}

// release removes a directory that was claimed and has not become a run.
func (p *trainPlan) release() error {
	if !p.claimed || refuseRun(p.dir, true, "") == nil {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// trainChanges lists what differs from the document that a run was started with. What does not
// change the results may change, and the env steps may grow.
func trainChanges(kinds experiment.Kinds, dir string, cfg experiment.Config) ([]configs.Change, error) {
	old, changes, err := changesSince(kinds, dir, cfg)
	return slices.DeleteFunc(changes, func(c configs.Change) bool {
		return strings.HasPrefix(c.Path, "train.checkpoint.") || strings.HasPrefix(c.Path, "publish.") || c.Path == "tune" || strings.HasPrefix(c.Path, "tune.") ||
			c.Path == "train.log_interval_steps" || c.Path == "train.total_env_steps" && cfg.Train.TotalEnvSteps > old.Train.TotalEnvSteps
	}), err
}

// validator returns what judges policies during training, nil where nothing does.
func (p *trainPlan) validator() (train.Evaluator, error) {
	if p.cfg.Train.Validation.EverySteps == 0 {
		return nil, nil
	}
	judge, err := assess.Validator(p.factory, p.cfg.Eval)
	if err != nil {
		return nil, fmt.Errorf("%w; train.validation.every_steps: 0 trains without", err)
	}
	return judge, nil
}
