package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (a *app) fitCommand() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit [CONFIG.yaml]",
		Short: "Train any ONNX model on a table",
		Long: `Trains any ONNX model, or an encoder that the configuration describes (network), on a Parquet, Arrow or CSV table and writes an ONNX file with the trained weights.

The run is described by a YAML file (- reads it from standard input), by flags, or by both: flags and --set edit the document before it is read.
A run directory keeps the effective configuration, metrics and checkpoints; --resume continues it bit for bit.`,
		Example: `  onnxrl fit --model net.onnx --data table.parquet --input 'x=f*' --target y=label --loss cross_entropy --epochs 5 --out trained.onnx
  onnxrl fit config.yaml --set optimizer.lr=3e-4 --dir runs/a --out trained.onnx
  onnxrl fit --model net.onnx --data table.parquet --input 'x=f*' --target y=label --loss mse --optimizer lbfgs --set full_batch.grad_tol=1e-6 --out trained.onnx
  onnxrl fit --resume runs/a --out trained.onnx`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.fit(cmd, args, &f) },
	}
	f.register(cmd)
	a.addNice(cmd)
	a.addMetrics(cmd)
	rarely(cmd.Flags(), "accumulate", "checkpoint-every", "clip-norm", "patience", "sample-weight", "schedule", "shards", "shuffle", "tie", "untie", "train-mode", "warmup", "weight-decay", "window")
	return cmd
}

// fitSummary is what onnxrl fit prints at the end; the JSON keys are stable.
type fitSummary struct {
	Steps      int64    `json:"steps"`
	Epochs     int      `json:"epochs"`
	TrainRows  int      `json:"train_rows"`
	ValidRows  int      `json:"validation_rows"`
	Trainable  int      `json:"trainable_parameters"`
	Frozen     int      `json:"frozen_parameters"`
	Loss       *float64 `json:"loss"`
	Validation *float64 `json:"validation_loss"`
	// Metrics are those of the weights that are kept, over the validation rows, by output:
	// accuracy, mae, mse.
	Metrics    map[string]float64 `json:"validation_metrics,omitempty"`
	BestEpoch  int                `json:"best_epoch,omitempty"`
	Stopped    string             `json:"stopped,omitempty"`
	Engine     string             `json:"engine"`
	Shards     int                `json:"shards"`
	Seconds    float64            `json:"seconds"`
	RowsPerSec float64            `json:"rows_per_second"`
	Out        string             `json:"out,omitempty"`
	Parity     *bake.Report       `json:"parity,omitempty"`
	// Rounded is what the type of the file does to the outputs, where that is not float32.
	Rounded *fitRounding `json:"rounded,omitempty"`
	Dir     string       `json:"dir,omitempty"`
	// FullBatch is how a full-batch run ended.
	FullBatch *fitFullBatch `json:"full_batch,omitempty"`
}

// fitFullBatch is the end of a full-batch run.
type fitFullBatch struct {
	Method      string `json:"method"`
	Iterations  int    `json:"iterations"`
	Evaluations int    `json:"evaluations"`
	Converged   bool   `json:"converged"`
	Stalled     bool   `json:"stalled"`
	Status      string `json:"status"`
}

func (a *app) fit(cmd *cobra.Command, args []string, f *fitFlags) (err error) {
	cfg, err := f.load(a, cmd, args)
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	if err := checkOut(f.out, cfg.Model); err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	model, closeModel, err := a.fitModel(&cfg)
	if err != nil {
		return err
	}
	defer closeModel()
	eng, err := a.foreign(cmd.Context(), a.engine)
	if err != nil {
		return err
	}
	sources, err := a.fitSources(cfg)
	if err != nil {
		return err
	}
	watch := metrics.RunWatcher(metrics.Unwatched{})
	if a.watch != nil {
		watch = a.watch.Run(fitLabel(cmp.Or(f.dir, f.resume), cfg))
	}
	dir, err := run.OpenDir(run.DirOptions{
		Watch: watch, Kind: "fit", Program: a.program(), Path: f.dir, Resume: f.resume, From: f.from, Note: a.noteTo(a.err), Sources: sources, Keep: checkpoint.Options{KeepLast: cfg.Checkpoint.Keep},
		Changes: func(dir string) ([]configs.Change, error) { return fitChanges(dir, cfg) },
	})
	if err != nil {
		return advise(err, "fit", "--dir", f.dir)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	r := &fitRun{app: a, dir: dir, logs: a.err, watch: watch}
	tr, err := fit.New(model, cfg, eng, r.hooks(fitLevel(cmd, a)))
	if err != nil {
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
	if dir.Resumed() && from < tr.TotalSteps() {
		if err := os.Remove(filepath.Join(dir.Path(), run.FinishedFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if f.out != "" {
		if err := compiles(tr, eng); err != nil {
			return err
		}
	}
	start := time.Now()
	r.tr = tr
	r.bar = progress.Start(a.err, progress.Options{Label: "fit", Unit: "steps", Total: tr.TotalSteps(), Initial: from, Quiet: a.quiet})
	r.logs = r.bar.Lines(a.err)
	// It saves where it stops, or writes what it has trained.
	defer a.stop.hold(saveGrace)()
	watch.Begin(fitPosition(from))
	res, err := tr.Run(cmd.Context())
	watch.End(fitFailure(err))
	r.bar.Finish()
	r.logs = a.err
	if err != nil {
		return advise(dir.Explain(err), "fit", "--dir", dir.Path())
	}
	sum := summarize(tr, res, eng.Name(), time.Since(start).Seconds())
	sum.Dir = dir.Path()
	if res.Stopped == fit.Interrupted {
		if err := a.printFit(sum); err != nil {
			return err
		}
		if dir.Path() != "" {
			a.say("stopped after step %d; continue with: onnxrl fit --resume %s", res.Steps, dir.Path())
		} else {
			a.say("stopped; without --dir nothing was saved")
		}
		return quietError{errInterrupted}
	}
	if sum.ValidRows > 0 {
		if _, sum.Metrics, err = tr.Validate(cmd.Context()); err != nil {
			return err
		}
	}
	if f.out != "" {
		// The trained model is written even when somebody has become impatient meanwhile; a
		// second signal still ends the program.
		if err := a.writeFit(context.WithoutCancel(cmd.Context()), tr, f.out, sources, res, &sum); err != nil {
			return err
		}
	} else if dir.Path() == "" {
		a.say("warning: neither --out nor --dir was given, so nothing was kept")
	}
	if path := dir.Path(); path != "" && (res.Steps > from || !isFile(filepath.Join(path, run.FinishedFile))) {
		// Whoever looks at the directory sees that the fit has ended, as of a run that was trained.
		if err := run.WriteJSON(filepath.Join(path, run.FinishedFile), sum); err != nil {
			return err
		}
	}
	return a.printFit(sum)
}

// fitModel returns what is trained and how it is closed: the file's model, or the network that the
// configuration describes, in which it completes the encoder's keys.
func (a *app) fitModel(cfg *fit.Config) (*onnx.Model, func() error, error) {
	if cfg.Network != nil {
		m, notes, err := cfg.Network.Model(encoder.Kinds(), cfg.Seed)
		if err != nil {
			return nil, nil, fmt.Errorf("fit: %w", err)
		}
		for _, note := range notes {
			a.say("note: %s", note)
		}
		return m, func() error { return nil }, nil
	}
	file, err := onnx.Open(cfg.Model)
	if err != nil {
		return nil, nil, err
	}
	if err := onnx.Check(file.Model); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", cfg.Model, err), file.Close())
	}
	a.noteDeclared(cfg.Model, file.Model)
	return file.Model, file.Close, nil
}

// compiles refuses, before any time is spent, a model whose trained form the engine could not run
// and whose parity could therefore not be checked in the end.
func compiles(tr *fit.Trainer, eng engine.Compiler) error {
	if _, err := tr.Baked(); err != nil {
		return err
	}
	m, err := tr.BakedFloat32()
	if err != nil {
		return err
	}
	s, err := eng.Compile(m, engine.Options{})
	if err != nil {
		return fmt.Errorf("fit: the model as it would be written: %w", err)
	}
	return s.Close()
}

// checkOut refuses, before any time is spent, an output that could not be written or would replace
// what is being trained.
func checkOut(out, model string) error {
	if out == "" {
		return nil
	}
	if err := checkFolder("--out", out); err != nil {
		return err
	}
	if sameFile(out, model) {
		return fmt.Errorf("--out %s: it is the model that is trained; write to another file", out)
	}
	return nil
}

// fitRun connects a trainer to progress, log and run directory.
type fitRun struct {
	app   *app
	dir   *run.Dir
	tr    *fit.Trainer
	bar   *progress.Progress
	logs  io.Writer
	saved int64
	shown time.Time
	watch metrics.RunWatcher
}

// fitLabel is the name of a fit for Prometheus.
func fitLabel(dir string, cfg fit.Config) string {
	switch {
	case dir != "":
		return run.Label(dir)
	case cfg.Model != "":
		return run.Label(cfg.Model)
	}
	return "fit"
}

// fitPosition is where a fit is after so many optimiser steps.
func fitPosition(step int64) metrics.Position {
	return metrics.Position{TrainSteps: step, Reward: math.NaN()}
}

// fitFailure is what an error that has ended a fit is to Prometheus.
func fitFailure(err error) string {
	var diverged *fit.DivergedError
	if errors.As(err, &diverged) {
		return metrics.FailureDiverged
	}
	return run.Failure(err)
}

func (r *fitRun) hooks(level slog.Level) fit.Hooks {
	return fit.Hooks{
		Log:     slog.New(slog.NewTextHandler(&lateWriter{&r.logs}, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime})),
		Step:    r.step,
		Metrics: r.dir.Scalars,
		Save:    r.save,
	}
}

// step shows the position. Texts are made only as often as they can be seen.
func (r *fitRun) step(p fit.Progress) {
	r.watch.Progress(fitPosition(p.Step))
	if now := time.Now(); now.Sub(r.shown) >= 100*time.Millisecond || p.Step == p.TotalSteps {
		r.shown = now
		r.bar.Field("loss", p.Loss)
		if p.Evaluations > 0 {
			r.bar.FieldText("evaluations", strconv.Itoa(p.Evaluations))
			if !math.IsNaN(p.GradNorm) {
				r.bar.Field("grad", p.GradNorm)
			}
		} else {
			r.bar.FieldText("epoch", fmt.Sprintf("%d/%d", p.Epoch, p.Epochs))
			r.bar.Field("lr", p.LR)
		}
		if !math.IsNaN(p.Validation) {
			r.bar.Field("val", p.Validation)
		}
	}
	r.bar.Set(p.Step)
}

// save publishes a checkpoint, once per step unless a later one brings a score.
func (r *fitRun) save(step int64, score *float64) error {
	if step == r.saved && score == nil {
		return nil
	}
	r.saved = step
	return r.dir.Save(step, score, r.tr)
}

// fitLevel shows what happens to a model's layers unless the person asked for something else.
func fitLevel(cmd *cobra.Command, a *app) slog.Level {
	level := slog.LevelInfo
	if cmd.Flags().Changed("log-level") || a.quiet {
		// The flag was checked before the command began.
		_ = level.UnmarshalText([]byte(a.logLevel))
	}
	return level
}

// lateWriter forwards to whatever its target is at the time, so that log lines go above the
// progress bar once there is one.
type lateWriter struct{ to *io.Writer }

func (w *lateWriter) Write(p []byte) (int, error) { return (*w.to).Write(p) }

func summarize(tr *fit.Trainer, res fit.Result, engine string, seconds float64) fitSummary {
	s := fitSummary{
		Steps: res.Steps, Epochs: res.Epochs, BestEpoch: res.BestEpoch, Stopped: res.Stopped, Engine: engine, Shards: tr.Config().Shards,
		Seconds: seconds, RowsPerSec: float64(res.Rows) / max(seconds, 1e-9),
	}
	s.TrainRows, s.ValidRows = tr.Rows()
	s.Trainable, s.Frozen = tr.Counts()
	if r := res.FullBatch; r != nil {
		s.FullBatch = &fitFullBatch{Method: tr.Config().FullBatch.Method, Iterations: r.Iterations, Evaluations: r.Evaluations, Converged: r.Converged, Stalled: r.Stalled, Status: r.Status}
	}
	if !math.IsNaN(res.Loss) {
		s.Loss = &res.Loss
	}
	if !math.IsNaN(res.Validation) {
		s.Validation = &res.Validation
	}
	return s
}

// writeFit proves parity and writes the trained model with its lineage.
func (a *app) writeFit(ctx context.Context, tr *fit.Trainer, path string, sources map[string]string, res fit.Result, sum *fitSummary) error {
	eng, err := a.foreign(ctx, a.engine)
	if err != nil {
		return err
	}
	lineage := map[string]string{
		"task": "fit", "seed": strconv.FormatUint(tr.Config().Seed, 10), "steps": strconv.FormatInt(res.Steps, 10), "epochs": strconv.Itoa(res.Epochs),
		"engine": eng.Name(), "program": a.program(),
	}
	for k, v := range sources {
		lineage[k] = v
	}
	if sum.Validation != nil {
		lineage["validation_loss"] = strconv.FormatFloat(*sum.Validation, 'g', -1, 64)
		lineage["best_epoch"] = strconv.Itoa(res.BestEpoch)
	}
	// Parity is checked in float32; the effect of rounding the weights to another type is
	// reported separately.
	if tr.Precision() != tensor.Float32 {
		if sum.Rounded, err = rounding(ctx, eng, tr); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		lineage["weights"] = tr.Precision().String()
	}
	r, err := pretrain.Write(ctx, eng, tr, path, lineage)
	if err != nil {
		return err
	}
	sum.Out, sum.Parity = path, &r
	return nil
}

func (a *app) printFit(s fitSummary) error {
	if a.json {
		return a.printJSON(s)
	}
	w := printable.NewTable(a.out)
	row := func(k, format string, v ...any) {
		fmt.Fprintf(w, "%s\t%s\n", printable.Name(k), printable.Name(fmt.Sprintf(format, v...)))
	}
	if r := s.FullBatch; r != nil {
		row(r.Method, "%d iterations, %d evaluations, %.1f s: %s", r.Iterations, r.Evaluations, s.Seconds, r.Status)
	} else {
		row("steps", "%d in %d epochs, %.1f s, %.0f rows/s", s.Steps, s.Epochs, s.Seconds, s.RowsPerSec)
	}
	row("rows", "%d to train, %d to validate", s.TrainRows, s.ValidRows)
	row("parameters", "%d trained, %d frozen", s.Trainable, s.Frozen)
	if s.Loss != nil {
		row("loss", "%.6g", *s.Loss)
	}
	if s.Validation != nil {
		text := fmt.Sprintf("%.6g", *s.Validation)
		if s.BestEpoch > 0 {
			text += fmt.Sprintf(" (best epoch %d)", s.BestEpoch)
		}
		row("validation", "%s", text)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Metrics)) {
		row(strings.ReplaceAll(strings.TrimPrefix(k, "metric/"), "/", " of "), "%.4g on the validation rows", s.Metrics[k])
	}
	if s.Stopped != "" {
		row("stopped", "%s", s.Stopped)
	}
	row("engine", "%s, %d shards", s.Engine, s.Shards)
	if s.Parity != nil {
		row("written", "%s (parity: max error %.2g over %d values)", s.Out, s.Parity.MaxError, s.Parity.Values)
	}
	if s.Rounded != nil {
		row(s.Rounded.Type, "%s", s.Rounded)
	}
	return w.Flush()
}
