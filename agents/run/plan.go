package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
)

// Plan is a document that is going to be trained, opened: one run, or one for each seed.
type Plan struct {
	job   Job
	o     Options
	kinds experiment.Kinds
	// interval, unless nil, says that the plan is one.
	interval *interval
	// cfg is the effective document. With several seeds it is that of all runs; see forSeed.
	cfg     experiment.Config
	factory envs.Factory
	maker   agents.Maker
	sources map[string]string
	// dir is the run's directory, or the one that the directories of the seeds are in. name is that
	// of the document: artefacts are called by it; claimed says that this process has made it.
	dir     string
	name    string
	claimed bool
	// begun says that a run which goes on from a checkpoint in a new directory has loaded it, with
	// changes of its document.
	begun   bool
	changes []string
	resume  bool
	// from is the checkpoint that a resumed run goes on from, empty for the newest; branches is the
	// new directory in which it does, empty for its own.
	from, branches string
	// init is where parameters begin; nil draws them.
	init *initial

	// bases are the encoders that the runs of several seeds have adapters over.
	bases models.Bases
	// prefixes is what Options.Prefixes is where that is nil.
	prefixes prefix.Caches

	// known says that the directory of several seeds describes them. It is guarded by mu while runs
	// go on.
	mu    sync.Mutex
	known bool
}

// Open reads the document in a file, or the shipped one of that name, as that of the job, and opens
// what it names. A run that is resumed has its document in its directory, and takes no path.
// Nothing is written before [Plan.Train]. Close the plan after use.
func Open(ctx context.Context, kinds experiment.Kinds, path string, j Job, o Options) (*Plan, error) {
	p, err := place(kinds, j, o)
	if err != nil {
		return nil, err
	}
	switch {
	case p.resume && path != "":
		return nil, fmt.Errorf("resume %s: it has a document of its own, and takes no %s", p.dir, path)
	case p.resume:
		path = filepath.Join(p.dir, ConfigFile)
	case path == "":
		return nil, errors.New("a document is needed, or a run to resume")
	}
	p.name = experiment.Name(path)
	cfg, doc, err := kinds.Load(path, j.Sets)
	if err != nil {
		return nil, p.explainStored(path, err)
	}
	if err := p.open(ctx, cfg, doc, path); err != nil {
		return nil, err
	}
	return p, nil
}

// New opens what the document of a job names. See [Open].
func New(ctx context.Context, kinds experiment.Kinds, j Job, o Options) (*Plan, error) {
	return newPlan(ctx, kinds, j, o, nil)
}

// newPlan is [New] for an interval, too.
func newPlan(ctx context.Context, kinds experiment.Kinds, j Job, o Options, i *interval) (*Plan, error) {
	p, err := place(kinds, j, o)
	if err != nil {
		return nil, err
	}
	p.name, p.interval = j.Name, i
	if i != nil && p.name == "" {
		p.name = experiment.Name(cmp.Or(j.Dir, j.Resume))
	}
	name := cmp.Or(p.name, ConfigFile)
	doc, err := configs.Parse(name, []byte(j.Config))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(doc.Set(j.Sets...), experiment.Absolute(doc)); err != nil {
		return nil, err
	}
	cfg, err := kinds.Decode(doc)
	if err != nil {
		return nil, err
	}
	if i != nil && len(cfg.Seeds) > 0 {
		return nil, errors.New("seeds: an interval has one seed")
	}
	if err := p.open(ctx, cfg, doc, name); err != nil {
		return nil, err
	}
	return p, nil
}

// unkept reports whether there is no directory: the plan is an interval without one.
func (p *Plan) unkept() bool { return p.interval != nil && p.dir == "" }

// place finds out where the runs of a plan are to be.
func place(kinds experiment.Kinds, j Job, o Options) (_ *Plan, err error) {
	if o.Engine == nil {
		return nil, errors.New("run: Options.Engine is missing: what is to run the networks?")
	}
	o.Parallel = max(1, o.Parallel)
	if o.Program == "" {
		o.Program = buildinfo.Program()
	}
	if o.Hooks.Log == nil {
		o.Hooks.Log = slog.New(slog.DiscardHandler)
	}
	p := &Plan{job: j, o: o, kinds: kinds, dir: j.Dir, resume: j.Resume != ""}
	if !p.resume {
		if p.dir == "" {
			return p, nil
		}
		return p, Free(p.dir)
	}
	if j.Init.Ref != "" || len(j.Seeds) > 0 {
		return nil, fmt.Errorf("resume %s: seeds and what parameters begin with are those that it was started with", j.Resume)
	}
	if p.dir, p.from, err = Point(j.Resume); err != nil {
		return nil, fmt.Errorf("resume %w", err)
	}
	if j.Dir != "" {
		if p.from == "" {
			return nil, fmt.Errorf("resume %s: a run continues in its own directory; only from one of its checkpoints does it go on in another, such as %s", p.dir, j.Dir)
		}
		if err := Free(j.Dir); err != nil {
			return nil, err
		}
		p.branches = j.Dir
	}
	return p, Existing(p.dir)
}

// open opens what the document names; path is what it is called in errors. A plan that cannot be
// opened is closed.
func (p *Plan) open(ctx context.Context, cfg experiment.Config, doc *configs.Document, path string) (err error) {
	p.cfg = cfg
	if len(p.job.Seeds) > 0 {
		p.cfg.Seeds = p.job.Seeds
		if err := configs.Validate(p.cfg); err != nil {
			return err
		}
	}
	if p.o.Executor != nil && !p.Group() {
		return errors.New("run: Options.Executor trains intervals and the runs of several seeds, and this is one run")
	}
	if p.cfg.Train.Threads == 0 {
		p.cfg.Train.Threads = max(1, runtime.GOMAXPROCS(0)/min(p.o.Parallel, max(1, len(p.cfg.Seeds))))
	}
	if p.factory = p.o.Factory; p.factory == nil {
		p.cfg, p.factory, p.maker, err = p.kinds.On(p.o.Engine).Open(ctx, p.cfg)
	} else if p.factory, err = p.kinds.Rewrap(p.factory, p.cfg.Wrappers); err == nil {
		p.maker, p.cfg.Agent, err = p.kinds.Agent(p.cfg.Agent)
	}
	if err == nil && p.o.Factory != nil {
		p.cfg = p.kinds.Complete(p.cfg, p.factory)
		p.cfg.Env, err = configs.NewKinded(p.cfg.Env.Kind, p.factory.Config())
	}
	if err != nil {
		return p.explainStored(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	// Before there is a directory.
	if _, err := p.validator(); err != nil {
		return err
	}
	if p.unkept() {
		return nil
	}
	if p.sources, err = Sources(p.kinds, doc, p.factory, p.o.Digest); err != nil {
		return err
	}
	return p.openInit(ctx)
}

// openInit opens what runs begin with. When they are resumed the lineage says what they are called
// and what those seeds begin with that are yet to be begun. What may make the results differ from
// those of runs that never stopped is noted.
func (p *Plan) openInit(ctx context.Context) (err error) {
	record := p.job.Init
	if p.resume {
		var l Lineage
		if err := ReadJSON(filepath.Join(p.dir, LineageFile), &l); err != nil {
			return fmt.Errorf("resume %s: %w", p.dir, err)
		}
		if l.Command != command {
			return fmt.Errorf("resume %s: it holds what %s has written, and no training run", p.dir, l.Command)
		}
		p.name = l.Name
		if err := p.noteGrowth(); err != nil {
			return err
		}
		if l.Init != nil && p.Group() {
			record = *l.Init
		}
		for _, c := range [][3]string{{"engine", l.Engine, p.o.Engine.Name()}, {"platform", l.Platform, platform()}, {"program", l.Program.String(), buildinfo.This().String()}} {
			if c[1] != c[2] {
				p.note("warning: the run was started with %s %s and goes on with %s: results may differ in the last bits", c[0], c[1], c[2])
			}
		}
	}
	if record.Ref != "" {
		p.init, err = openInitial(ctx, p.kinds, record, p.job.InitStore)
	}
	return err
}

// note tells the program a sentence.
func (p *Plan) note(format string, args ...any) {
	if p.o.Hooks.Note != nil {
		p.o.Hooks.Note(fmt.Sprintf(format, args...))
	}
}

// Config is the effective document: written out, it is the recipe of the runs.
func (p *Plan) Config() experiment.Config { return p.cfg }

// Factory makes the environments. It is the plan's.
func (p *Plan) Factory() envs.Factory { return p.factory }

// Dir is the run directory, or the one that the directories of several seeds are in. Until
// [Plan.Train] has found a free one it may be empty.
func (p *Plan) Dir() string { return p.dir }

// Close frees what the plan has opened.
func (p *Plan) Close() error {
	errs := []error{p.prefixes.Close(), p.bases.Close()}
	if p.init != nil {
		errs = append(errs, p.init.source.Close())
	}
	if p.factory != nil && p.o.Factory == nil {
		errs = append(errs, p.factory.Close())
	}
	return errors.Join(errs...)
}

// Group reports whether the plan has a directory for each seed.
func (p *Plan) Group() bool { return len(p.cfg.Seeds) > 0 }

// Seeds lists the seeds of the runs.
func (p *Plan) Seeds() []uint64 {
	if p.Group() {
		return p.cfg.Seeds
	}
	return []uint64{p.cfg.Seed}
}

// forSeed returns the document of one run: running it alone gives the same.
func (p *Plan) forSeed(seed uint64) experiment.Config {
	c := p.cfg
	c.Seed, c.Seeds = seed, nil
	return c
}

// DirOf returns the run directory of a seed.
func (p *Plan) DirOf(seed uint64) string {
	if !p.Group() {
		return p.dir
	}
	return filepath.Join(p.dir, fmt.Sprintf("seed-%d", seed))
}

// claim makes the directory of a plan.
func (p *Plan) claim() (err error) {
	if p.branches == "" && !p.unkept() {
		p.dir, p.claimed, err = Claim(p.dir, p.name)
	}
	return err
}

// release removes a directory that was claimed and has not become a run.
func (p *Plan) release() error {
	if !p.claimed || p.begun || p.branches == "" && Holds(p.dir) {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// Claim makes a directory unless it exists, or where it is empty the first of runs/NAME-1,
// runs/NAME-2 … that does not. Made says that there was none.
func Claim(dir, name string) (_ string, made bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("run directory: %w", err)
		}
	}()
	if dir != "" {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return dir, false, nil // Opening it reports its errors.
		}
		return dir, true, os.MkdirAll(dir, 0o755)
	}
	if err := os.MkdirAll("runs", 0o755); err != nil {
		return "", false, err
	}
	for n := 1; ; n++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", name, n))
		if err := os.Mkdir(dir, 0o755); !errors.Is(err, os.ErrExist) {
			return dir, err == nil, err
		}
	}
}

// unchanged is the error of a document that is not that of the run which is resumed, or of a
// checkpoint that it does not go on from.
func (p *Plan) unchanged(checkpoint string) error {
	var l Lineage
	if err := ReadJSON(filepath.Join(p.dir, LineageFile), &l); err != nil {
		return err
	}
	changes, err := trainChanges(p.kinds, p.dir, p.cfg)
	if err == nil {
		err = RefuseChanges(changes)
	}
	if err != nil {
		return err
	}
	_, sum, err := stepOf(checkpoint)
	if err == nil && sum != l.ContinuesSHA256 {
		err = fmt.Errorf("it goes on from the checkpoint %s of SHA-256 %s, and not from one of %s", l.Continues, short(l.ContinuesSHA256), short(sum))
	}
	return err
}

// trainChanges lists what differs from the document that a run was started with. What does not
// change the results may change, and the env steps may grow.
func trainChanges(kinds experiment.Kinds, dir string, cfg experiment.Config) ([]configs.Change, error) {
	old, changes, err := ChangesSince(kinds, dir, cfg)
	return slices.DeleteFunc(changes, func(c configs.Change) bool {
		return strings.HasPrefix(c.Path, "train.checkpoint.") || strings.HasPrefix(c.Path, "publish.") || c.Path == "tune" || strings.HasPrefix(c.Path, "tune.") ||
			elsewhere(c.Path) || c.Path == "train.log_interval_steps" || c.Path == "train.total_env_steps" && cfg.Train.TotalEnvSteps > old.Train.TotalEnvSteps
	}), err
}

// elsewhere reports whether a key says where actors are, and not how many, or what they do.
func elsewhere(key string) bool {
	key, ok := strings.CutPrefix(key, "train.actors.")
	return ok && key != "count" && key != "max_policy_lag"
}

// validator returns what evaluates policies during training, nil where nothing does.
func (p *Plan) validator() (train.Evaluator, error) {
	if p.cfg.Train.Validation.EverySteps == 0 {
		return nil, nil
	}
	evaluate, err := p.kinds.Validator(p.factory, p.cfg.Eval)
	if err != nil {
		return nil, fmt.Errorf("%w; train.validation.every_steps: 0 trains without", err)
	}
	return evaluate, nil
}
