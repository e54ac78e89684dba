package pretrain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Files of a pretraining's directory.
const (
	// EncoderFile is the encoder.
	EncoderFile = "encoder.onnx"
	// Artefact is what the encoder is called in the directory's artefact store.
	Artefact = "pretrained-encoder"
	// Features is the value of the file that agents take.
	Features = "features"

	windowsFile = "windows.parquet"
	fitDir      = "fit"
	// ParityRows is the number of rows of a table that a parity check uses.
	ParityRows = 256
)

// Options say what an encoder is trained on, and where.
type Options struct {
	Config Config
	// Environments is the factory of the environment whose windows are learnt from, which is a
	// [Windowed].
	Environments envs.Factory
	// Dir is the directory. One that holds the encoder already is left as it is.
	Dir      string
	Engine   engine.Compiler
	Encoders []encoder.Kind
	// Program is what the file says has made it.
	Program string
	// Step, unless nil, receives every optimiser step, and Log a message for each change of layers.
	Step func(p fit.Progress)
	Log  *slog.Logger
}

// training has a *sync.Mutex for each path that somebody trains.
var training sync.Map

// Train trains an encoder and returns the path of its file. When ctx ends its state is saved, and
// the error is ctx's: what goes on ends with the bits of one that never stopped.
func Train(ctx context.Context, o Options) (path string, err error) {
	path = filepath.Join(o.Dir, EncoderFile)
	// Several populations of a process may share it; the first trains, the others wait.
	busy, _ := training.LoadOrStore(path, &sync.Mutex{})
	busy.(*sync.Mutex).Lock()
	defer busy.(*sync.Mutex).Unlock()
	if _, err := os.Stat(path); err != nil {
		if err := train(ctx, o, path); err != nil {
			return "", fmt.Errorf("pretrain: %w", err)
		}
	}
	// Also one that was trained by a process which was killed then.
	if err := version(ctx, o, path); err != nil {
		return "", fmt.Errorf("pretrain: %w", err)
	}
	return path, nil
}

// version makes the encoder a version in the directory's store, so that agents that are built on it
// can name it among their parents. One that is there stays as it is.
func version(ctx context.Context, o Options, path string) (err error) {
	m, err := onnx.Load(path)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Dir, publish.StoreDir)
	switch digest, err := publish.VersionOf(dir, m); {
	case err != nil && !errors.Is(err, artifact.ErrNoStore):
		return err
	case digest != "":
		return nil
	}
	d := artifact.Draft{Manifest: artifact.Manifest{Name: Artefact, Kind: "encoder", Description: "encoder pretrained on windows of bars", CodeVersion: o.Program}, Model: path}
	if text, ok := m.Meta(bake.MetaPrefix + "seed"); ok {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: metadata %sseed: %w", path, bake.MetaPrefix, err)
		}
		d.Manifest.Seed = &seed
	}
	if text, ok := m.Meta(bake.MetaPrefix + "steps"); ok {
		if d.Manifest.LearnerStep, err = strconv.ParseInt(text, 10, 64); err != nil {
			return fmt.Errorf("%s: metadata %ssteps: %w", path, bake.MetaPrefix, err)
		}
	}
	s, err := artifact.Open(dir, artifact.Options{Now: time.Now})
	if err != nil {
		return err
	}
	_, err = s.Publish(ctx, d)
	return errors.Join(err, s.Close())
}

// Untrained writes the encoder as it is before it is trained, for a rehearsal of what is to have it,
// and returns the path of its file. What refuses a pretraining is found here.
func Untrained(ctx context.Context, o Options) (path string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("pretrain: %w", err)
		}
	}()
	table := filepath.Join(o.Dir, windowsFile)
	m, cfg, err := open(ctx, o, table)
	if err != nil {
		return "", err
	}
	tr, err := fit.New(m, cfg, o.Engine, fit.Hooks{Log: o.Log})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tr.Close(), os.Remove(table)) }()
	path = filepath.Join(o.Dir, EncoderFile)
	_, err = Write(ctx, o.Engine, tr, path, map[string]string{"task": "rehearsal"})
	return path, err
}

// open writes the table of windows, and makes the network and the configuration that trains it.
func open(ctx context.Context, o Options, table string) (m *onnx.Model, cfg fit.Config, err error) {
	w, f, err := windows(ctx, o, table)
	if err != nil {
		return nil, cfg, err
	}
	if cfg, err = o.Config.complete(w, f, table); err != nil {
		return nil, cfg, err
	}
	m, _, err = cfg.Network.Model(o.Encoders, cfg.Seed)
	return m, cfg, err
}

func train(ctx context.Context, o Options, path string) (err error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	table := filepath.Join(o.Dir, windowsFile)
	m, cfg, err := open(ctx, o, table)
	if err != nil {
		return err
	}
	at := run.DirOptions{Kind: "fit", Program: o.Program, Path: filepath.Join(o.Dir, fitDir), Keep: checkpoint.Options{KeepLast: cfg.Checkpoint.Keep}, Changes: func(string) ([]configs.Change, error) { return nil, nil }}
	if run.Holds(at.Path) {
		// It goes on as it was begun, with what was decided then, such as the shards.
		at.Path, at.Resume = "", at.Path
		cfg = fit.Defaults()
		if _, err := configs.Load(filepath.Join(at.Resume, run.ConfigFile), nil, &cfg); err != nil {
			return err
		}
	}
	dir, err := run.OpenDir(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	var tr *fit.Trainer
	var saved int64
	hooks := fit.Hooks{Log: o.Log, Metrics: dir.Scalars, Step: o.Step, Save: func(step int64, score *float64) error {
		// One for each step, unless a later one brings a score.
		if step == saved && score == nil {
			return nil
		}
		saved = step
		return dir.Save(step, score, tr)
	}}
	if tr, err = fit.New(m, cfg, o.Engine, hooks); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	from, _, err := dir.Restore(tr)
	if err != nil {
		return err
	}
	if !dir.Resumed() {
		if err := dir.Describe(tr.Config()); err != nil {
			return err
		}
	}
	if err := dir.Record(from); err != nil {
		return err
	}
	res, err := tr.Run(ctx)
	if err != nil {
		return err
	}
	if res.Stopped == fit.Interrupted {
		return ctx.Err()
	}
	lineage := map[string]string{"task": "pretrain", "engine": o.Engine.Name(), "program": o.Program, "steps": strconv.FormatInt(res.Steps, 10), "seed": strconv.FormatUint(cfg.Seed, 10)}
	if _, err := Write(ctx, o.Engine, tr, path, lineage); err != nil {
		return err
	}
	return os.Remove(table)
}

// Windowed is implemented by factories of environments that an encoder can be pretrained for.
type Windowed interface {
	// WriteWindows writes the table of the training range's windows to a file in Parquet, with what
	// the next horizon bars bring. Each window has w bars of f features; stride is how many bars
	// those of one asset are apart.
	WriteWindows(ctx context.Context, path string, horizon, stride int) (w, f int, err error)
}

// windows writes the table of the training range's windows, each of w bars of f features.
func windows(ctx context.Context, o Options, table string) (w, f int, err error) {
	env, ok := wrap.FindFactory[Windowed](o.Environments)
	if !ok {
		return 0, 0, errors.New("windows of bars are what an encoder is pretrained on, and the environment is not trading")
	}
	return env.WriteWindows(ctx, table, o.Config.horizon(), max(1, o.Config.Stride))
}

// Write writes what a trainer has trained as an ONNX file, after a parity check against the
// trainer's network, in float32, on the first rows of its table. lineage is what the file says of
// itself besides the digest of the trainer's configuration.
func Write(ctx context.Context, eng engine.Compiler, tr *fit.Trainer, path string, lineage map[string]string) (bake.Report, error) {
	r, err := func() (r bake.Report, err error) {
		baked, err := tr.Baked()
		if err != nil {
			return r, err
		}
		function, err := tr.BakedFloat32()
		if err != nil {
			return r, err
		}
		samples, err := tr.Samples(ParityRows)
		if err != nil {
			return r, err
		}
		digest, err := configs.Digest(tr.Config())
		if err != nil {
			return r, err
		}
		all := maps.Clone(lineage)
		all["config_sha256"], all["platform"] = digest, runtime.GOOS+"/"+runtime.GOARCH
		if r, err = bake.Prove(ctx, eng, bake.Pair{Network: tr.Network(), Params: tr.Params(), Baked: function, Samples: samples}); err != nil {
			return r, err
		}
		return r, onnx.Save(path, bake.Describe(baked, r, all), onnx.SaveOptions{})
	}()
	if err != nil {
		return r, fmt.Errorf("write %s: %w", path, err)
	}
	return r, nil
}
