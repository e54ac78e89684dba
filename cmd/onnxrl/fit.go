package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"onnxrl/configs"
	"onnxrl/export/bake"
	"onnxrl/models/fit"
	"onnxrl/models/lora"
	"onnxrl/models/loss"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/progress"
)

// parityRows is how many rows of the training data parity is proved on before a model is written.
const parityRows = 256

// fitFlags are the command line's short cuts; each one is an edit of the configuration document.
type fitFlags struct {
	sets                              []string
	dir, resume, out                  string
	model, data, loss, opt, lora      string
	inputs, targets, train, freeze    []string
	epochs, batch, accumulate, shards int
	lr, decay, clip, validation       float64
	seed                              uint64
	patience                          int
	trainMode                         bool
}

func (a *app) fitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit [CONFIG.yaml]",
		Short: "Train any ONNX model on a table",
		Long: `Trains any ONNX model on a Parquet, Arrow or CSV table and writes an ONNX file with the trained weights.

The run is described by a YAML file, by flags, or by both: flags and --set edit the document before it is read.
A run directory keeps the effective configuration, metrics and checkpoints; --resume continues it bit for bit.`,
		Example: `  onnxrl fit --model net.onnx --data table.parquet --input 'x=f*' --target y=label --loss cross_entropy --epochs 5 --out trained.onnx
  onnxrl fit config.yaml --set optimizer.lr=3e-4 --dir runs/a --out trained.onnx
  onnxrl fit --resume runs/a --out trained.onnx`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.fit(cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration, for instance --set optimizer.lr=1e-3")
	fl.StringVar(&f.dir, "dir", "", "run directory for configuration, metrics and checkpoints")
	fl.StringVar(&f.resume, "resume", "", "continue the run in this directory")
	fl.StringVarP(&f.out, "out", "o", "", "write the trained model to this ONNX file")
	fl.StringVar(&f.model, "model", "", "ONNX file to train")
	fl.StringVar(&f.data, "data", "", "Parquet, Arrow or CSV file, folder or glob")
	fl.StringArrayVar(&f.inputs, "input", nil, "columns of a model input, NAME=COL,COL… (globs allowed)")
	fl.StringArrayVar(&f.targets, "target", nil, "columns of an output's targets, OUTPUT=COL,COL…")
	fl.StringVar(&f.loss, "loss", "", strings.Join(loss.Kinds(), ", ")+", or the path of a loss graph")
	fl.StringArrayVar(&f.train, "train", nil, "pattern of parameters to train")
	fl.StringArrayVar(&f.freeze, "freeze", nil, "pattern of parameters to freeze")
	fl.StringVar(&f.lora, "lora", "", "adapters, for instance rank=8,alpha=16,target=*attn*")
	fl.BoolVar(&f.trainMode, "train-mode", false, "put BatchNormalization and Dropout into training form")
	fl.StringVar(&f.opt, "optimizer", "", "sgd, rmsprop, adam, adamw, lamb or lion")
	fl.Float64Var(&f.lr, "lr", 0, "learning rate")
	fl.Float64Var(&f.decay, "weight-decay", 0, "weight decay")
	fl.Float64Var(&f.clip, "clip-norm", 0, "limit of the gradient's global norm")
	fl.IntVar(&f.epochs, "epochs", 0, "passes over the data")
	fl.IntVar(&f.batch, "batch", 0, "rows per run")
	fl.IntVar(&f.accumulate, "accumulate", 0, "batches per optimiser step")
	fl.IntVar(&f.shards, "shards", 0, "parts a batch is split into over cores (0: decide from the graph)")
	fl.Float64Var(&f.validation, "validation", 0, "fraction of the rows held out for validation")
	fl.IntVar(&f.patience, "patience", 0, "stop after this many epochs without a better validation loss")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of every random choice")
	return cmd
}

// document builds the configuration from file, flags and edits, in this order.
func (f fitFlags) document(cmd *cobra.Command, args []string) (*configs.Document, error) {
	var doc *configs.Document
	var err error
	switch {
	case f.resume != "" && len(args) > 0:
		return nil, errors.New("fit: --resume takes the configuration of its run directory; give no file")
	case f.resume != "":
		doc, err = configs.Open(filepath.Join(f.resume, configFile))
	case len(args) > 0:
		doc, err = configs.Open(args[0])
	default:
		doc, err = configs.Parse("flags", []byte("{}"))
	}
	if err != nil {
		return nil, err
	}
	set := func(flag, path string, v any) {
		if err == nil && cmd.Flags().Changed(flag) {
			err = doc.SetValue(path, v)
		}
	}
	set("model", "model", f.model)
	set("data", "data.path", f.data)
	set("train", "train", f.train)
	set("freeze", "freeze", f.freeze)
	set("train-mode", "train_mode", f.trainMode)
	set("optimizer", "optimizer.kind", f.opt)
	set("lr", "optimizer.lr", f.lr)
	set("weight-decay", "optimizer.decay", f.decay)
	set("clip-norm", "clip_norm", f.clip)
	set("epochs", "epochs", f.epochs)
	set("batch", "batch", f.batch)
	set("accumulate", "accumulate", f.accumulate)
	set("shards", "shards", f.shards)
	set("validation", "data.validation.fraction", f.validation)
	set("patience", "early_stop.patience", f.patience)
	set("seed", "seed", f.seed)
	if f.loss != "" {
		term := map[string]any{"kind": f.loss}
		if strings.HasSuffix(f.loss, ".onnx") {
			term = map[string]any{"kind": "onnx", "path": f.loss}
		}
		set("loss", "loss", []map[string]any{term})
	}
	for flag, list := range map[string][]string{"input": f.inputs, "target": f.targets} {
		if len(list) == 0 {
			continue
		}
		m := map[string][]string{}
		for _, s := range list {
			name, cols, ok := strings.Cut(s, "=")
			if !ok || cols == "" {
				return nil, fmt.Errorf("fit: --%s %q: expected NAME=COLUMN,COLUMN…", flag, s)
			}
			m[name] = strings.Split(cols, ",")
		}
		set(flag, "data."+flag+"s", m)
	}
	if f.lora != "" {
		c, lerr := parseLoRA(f.lora)
		if lerr != nil {
			return nil, lerr
		}
		set("lora", "lora", c)
	}
	if err == nil {
		err = doc.Set(f.sets...)
	}
	return doc, err
}

// parseLoRA reads rank=8,alpha=16,target=a,target=b.
func parseLoRA(s string) (lora.Config, error) {
	var c lora.Config
	for _, part := range strings.Split(s, ",") {
		k, v, ok := strings.Cut(part, "=")
		var err error
		switch {
		case !ok:
			err = errors.New("expected key=value")
		case k == "rank":
			c.Rank, err = strconv.Atoi(v)
		case k == "alpha":
			c.Alpha, err = strconv.ParseFloat(v, 64)
		case k == "seed":
			c.Seed, err = strconv.ParseUint(v, 10, 64)
		case k == "target":
			c.Target = append(c.Target, v)
		default:
			err = errors.New("the keys are rank, alpha, target and seed")
		}
		if err != nil {
			return c, fmt.Errorf("fit: --lora %q: %q: %w", s, part, err)
		}
	}
	return c, nil
}

// fitSummary is what onnxrl fit prints at the end; the JSON keys are stable.
type fitSummary struct {
	Steps      int64        `json:"steps"`
	Epochs     int          `json:"epochs"`
	TrainRows  int          `json:"train_rows"`
	ValidRows  int          `json:"validation_rows"`
	Trainable  int          `json:"trainable_parameters"`
	Frozen     int          `json:"frozen_parameters"`
	Loss       *float64     `json:"loss"`
	Validation *float64     `json:"validation_loss"`
	BestEpoch  int          `json:"best_epoch,omitempty"`
	Stopped    string       `json:"stopped,omitempty"`
	Engine     string       `json:"engine"`
	Shards     int          `json:"shards"`
	Seconds    float64      `json:"seconds"`
	Out        string       `json:"out,omitempty"`
	Parity     *bake.Report `json:"parity,omitempty"`
	Dir        string       `json:"dir,omitempty"`
}

func (a *app) fit(cmd *cobra.Command, args []string, f fitFlags) (err error) {
	doc, err := f.document(cmd, args)
	if err != nil {
		return err
	}
	cfg := fit.Defaults()
	if err := doc.Decode(&cfg); err != nil {
		return err
	}
	if cfg.Model == "" || cfg.Data.Path == "" {
		return errors.New("fit: a model and data are needed: set model and data.path in the configuration, or give --model and --data")
	}
	if f.resume != "" {
		f.dir = f.resume
	}
	model, err := onnx.Load(cfg.Model)
	if err != nil {
		return err
	}
	if err := onnx.Check(model); err != nil {
		return fmt.Errorf("%s: %w", cfg.Model, err)
	}
	eng, err := a.compiler(cmd.Context())
	if err != nil {
		return err
	}
	lineage, err := fitLineage(cfg)
	if err != nil {
		return err
	}
	dir, err := openRun(f.dir, f.resume != "", cfg, lineage)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	var bar *progress.Progress
	start := time.Now()
	saved := int64(-1)
	hooks := fit.Hooks{
		Step: func(p fit.Progress) {
			bar.Set(p.Step)
			bar.FieldText("epoch", fmt.Sprintf("%d/%d", p.Epoch, p.Epochs))
			bar.Field("loss", p.Loss)
			bar.Field("lr", p.LR)
			if !math.IsNaN(p.Validation) {
				bar.Field("val", p.Validation)
			}
		},
		Metrics: func(step int64, values map[string]float64) { dir.Scalars(step, values) },
	}
	var logs io.Writer = a.err
	hooks.Log = slog.New(slog.NewTextHandler(&lateWriter{&logs}, &slog.HandlerOptions{Level: fitLevel(a.logLevel), ReplaceAttr: dropTime}))
	var tr *fit.Trainer
	hooks.Save = func(step int64, score *float64) error {
		if step == saved && score == nil {
			return nil
		}
		saved = step
		return dir.Save("fit", step, score, tr)
	}
	if tr, err = fit.New(model, cfg, eng, hooks); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	from, err := dir.Restore(tr)
	if err != nil {
		return err
	}
	if err := dir.WriteConfig(tr.Config()); err != nil {
		return err
	}
	bar = progress.Start(a.err, progress.Options{Label: "fit", Unit: "steps", Total: tr.TotalSteps(), Initial: from, Quiet: a.quiet})
	logs = bar.Lines(a.err)
	res, err := tr.Run(cmd.Context())
	bar.Finish()
	logs = a.err
	if err != nil {
		return err
	}
	if err := dir.Err(); err != nil {
		return err
	}
	sum := summarize(tr, res, eng.Name(), time.Since(start).Seconds())
	sum.Dir = f.dir
	if res.Stopped == "interrupted" {
		a.printFit(sum)
		if f.dir != "" {
			fmt.Fprintf(a.err, "onnxrl: stopped after step %d; continue with: onnxrl fit --resume %s\n", res.Steps, f.dir)
		} else {
			fmt.Fprintln(a.err, "onnxrl: stopped; without --dir nothing was saved")
		}
		return quietError{errInterrupted}
	}
	if f.out != "" {
		if err := a.writeFit(context.WithoutCancel(cmd.Context()), tr, f.out, lineage, res, &sum); err != nil {
			return err
		}
	}
	return a.printFit(sum)
}

// fitLevel shows what happens to a model's layers unless the person asked for less.
func fitLevel(s string) slog.Level {
	var l slog.Level
	if l.UnmarshalText([]byte(s)) != nil || l == slog.LevelWarn {
		return slog.LevelInfo
	}
	return l
}

// lateWriter forwards to whatever its target is at the time, so that log lines go above the progress bar once there is one.
type lateWriter struct{ to *io.Writer }

func (w *lateWriter) Write(p []byte) (int, error) { return (*w.to).Write(p) }

func summarize(tr *fit.Trainer, res fit.Result, engine string, seconds float64) fitSummary {
	s := fitSummary{Steps: res.Steps, Epochs: res.Epochs, BestEpoch: res.BestEpoch, Stopped: res.Stopped, Engine: engine, Shards: tr.Shards(), Seconds: seconds}
	s.TrainRows, s.ValidRows = tr.Rows()
	s.Trainable, s.Frozen = tr.Counts()
	if !math.IsNaN(res.Loss) {
		s.Loss = &res.Loss
	}
	if !math.IsNaN(res.Validation) {
		s.Validation = &res.Validation
	}
	return s
}

// writeFit proves parity and writes the trained model.
func (a *app) writeFit(ctx context.Context, tr *fit.Trainer, path string, lineage map[string]string, res fit.Result, sum *fitSummary) error {
	eng, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	baked, err := tr.Baked()
	if err != nil {
		return err
	}
	samples, err := tr.Samples(parityRows)
	if err != nil {
		return err
	}
	lineage["steps"] = strconv.FormatInt(res.Steps, 10)
	lineage["epochs"] = strconv.Itoa(res.Epochs)
	if sum.Validation != nil {
		lineage["validation_loss"] = strconv.FormatFloat(*sum.Validation, 'g', -1, 64)
	}
	r, err := bake.Write(ctx, path, eng, tr.Network(), tr.Params(), baked, samples, lineage)
	if err != nil {
		return err
	}
	sum.Out, sum.Parity = path, &r
	return nil
}

// fitLineage names what the result is made from.
func fitLineage(cfg fit.Config) (map[string]string, error) {
	digest, err := configs.Digest(cfg)
	if err != nil {
		return nil, err
	}
	model, err := fileDigest(cfg.Model)
	if err != nil {
		return nil, err
	}
	data, err := dataDigest(cfg.Data.Path)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"config_sha256": digest, "model_sha256": model, "data_sha256": data, "seed": strconv.FormatUint(cfg.Seed, 10),
		"program": "onnxrl " + version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "task": "fit",
	}, nil
}

func (a *app) printFit(s fitSummary) error {
	if a.json {
		return a.printJSON(s)
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	row := func(k, format string, v ...any) { fmt.Fprintf(w, "%s\t%s\n", k, fmt.Sprintf(format, v...)) }
	row("steps", "%d in %d epochs, %.1f s, %.0f rows/s", s.Steps, s.Epochs, s.Seconds, float64(s.TrainRows)*float64(s.Epochs)/max(s.Seconds, 1e-9))
	row("rows", "%d to train, %d to validate", s.TrainRows, s.ValidRows)
	row("parameters", "%d trained, %d frozen", s.Trainable, s.Frozen)
	if s.Loss != nil {
		row("loss", "%.6g", *s.Loss)
	}
	if s.Validation != nil {
		row("validation", "%.6g (best epoch %d)", *s.Validation, s.BestEpoch)
	}
	if s.Stopped != "" {
		row("stopped", "%s", s.Stopped)
	}
	row("engine", "%s, %d shards", s.Engine, s.Shards)
	if s.Parity != nil {
		row("written", "%s (parity: max error %.2g over %d values)", s.Out, s.Parity.MaxError, s.Parity.Values)
	}
	return w.Flush()
}
