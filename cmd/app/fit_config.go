package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// fitFlags are the command line's short cuts; each one is an edit of the configuration.
type fitFlags struct {
	sets             []string
	dir, resume, out string
	// from is the checkpoint that --resume names, empty for the newest.
	from                                       string
	model, data, loss, opt, schedule, lora     string
	weight                                     string
	inputs, targets, train, freeze, tie, untie []string
	epochs, batch, accumulate, shards          int
	warmup, patience, checkpointEvery, window  int
	lr, decay, clip, validation                float64
	seed                                       uint64
	trainMode, shuffle                         bool
}

func (f *fitFlags) register(cmd *cobra.Command) {
	d := fit.Defaults()
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the configuration, for instance --set optimizer.lr=1e-3")
	fl.StringVar(&f.dir, "dir", "", "run directory for configuration, metrics and checkpoints")
	fl.StringVar(&f.resume, "resume", "", "continue the run in this directory, or go on from this checkpoint of a run (RUN/checkpoints/NAME), whose later ones are removed")
	fl.StringVarP(&f.out, "out", "o", "", "write the trained model to this ONNX file")
	fl.StringVar(&f.model, "model", "", "ONNX file to train")
	fl.StringVar(&f.data, "data", "", "Parquet, Arrow or CSV file, folder or glob")
	fl.StringArrayVar(&f.inputs, "input", nil, "columns of a model input, NAME=COL,COL… (globs allowed)")
	fl.StringArrayVar(&f.targets, "target", nil, "columns of an output's targets, OUTPUT=COL,COL…")
	fl.StringVar(&f.weight, "sample-weight", "", "column of sample weights")
	fl.StringVar(&f.loss, "loss", "", strings.Join(loss.Kinds(), ", ")+", or the path of a loss graph")
	fl.StringArrayVar(&f.train, "train", nil, "pattern of parameters to train")
	fl.StringArrayVar(&f.freeze, "freeze", nil, "pattern of parameters to freeze")
	fl.StringArrayVar(&f.tie, "tie", nil, "pattern of parameters that stay as the file ties them, where those of different layers that the exporter merged would be cut apart; or initializers that are one parameter, as in 'head.weight=transpose(emb.weight)'")
	fl.StringArrayVar(&f.untie, "untie", nil, "pattern of parameters of which every use gets a copy of its own, and which are not tied to other initializers")
	fl.StringVar(&f.lora, "lora", "", "adapters, for instance rank=8,alpha=16,target=*attn*")
	fl.BoolVar(&f.trainMode, "train-mode", false, "train BatchNormalization and Dropout in training form; =false in evaluation form, else each in the form that it has in the file")
	fl.StringVar(&f.opt, "optimizer", d.Optimizer.Kind, strings.Join(optim.Kinds(), ", ")+"; or of all rows at once until it converges (full_batch.method): "+strings.Join(fullbatch.Methods, ", "))
	fl.Float64Var(&f.lr, "lr", d.Optimizer.LR, "learning rate")
	fl.Float64Var(&f.decay, "weight-decay", 0, "weight decay")
	fl.StringVar(&f.schedule, "schedule", "", "course of the learning rate: constant, linear or cosine to 0, …")
	fl.IntVar(&f.warmup, "warmup", 0, "steps in which the learning rate rises")
	fl.Float64Var(&f.clip, "clip-norm", 0, "limit of the gradient's global norm")
	fl.IntVar(&f.epochs, "epochs", d.Epochs, "passes over the data")
	fl.IntVar(&f.batch, "batch", d.Batch, "rows per run")
	fl.IntVar(&f.accumulate, "accumulate", d.Accumulate, "batches per optimiser step")
	fl.IntVar(&f.shards, "shards", 0, "parts a batch is split into over cores (0: decide from the graph)")
	fl.BoolVar(&f.shuffle, "shuffle", d.Data.Shuffle, "permute the rows in every epoch")
	fl.IntVar(&f.window, "window", 0, "rows in memory that are shuffled together (0: 262144)")
	fl.Float64Var(&f.validation, "validation", 0, "fraction of the rows held out for validation")
	fl.IntVar(&f.patience, "patience", 0, "stop after this many epochs without a better validation loss")
	fl.IntVar(&f.checkpointEvery, "checkpoint-every", d.Checkpoint.Every, "optimiser steps between checkpoints")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of every random choice")
}

// document builds the configuration from file, flags and edits, in this order.
func (f *fitFlags) document(a *app, cmd *cobra.Command, args []string) (*configs.Document, error) {
	doc, err := f.source(a, args)
	if err != nil {
		return nil, err
	}
	for _, e := range []struct {
		flag, path string
		value      any
	}{
		{"model", "model", f.model}, {"data", "data.path", f.data}, {"sample-weight", "data.weight", f.weight}, {"train", "train", f.train}, {"freeze", "freeze", f.freeze}, {"tie", "tie", f.tie}, {"untie", "untie", f.untie},
		{"train-mode", "train_mode", f.trainMode}, {"optimizer", "optimizer.kind", f.opt}, {"lr", "optimizer.lr", f.lr}, {"weight-decay", "optimizer.decay", f.decay},
		{"schedule", "learning_rate_schedule.kind", f.schedule}, {"warmup", "learning_rate_schedule.warmup", f.warmup}, {"clip-norm", "clip_norm", f.clip}, {"epochs", "epochs", f.epochs},
		{"batch", "batch", f.batch}, {"accumulate", "accumulate", f.accumulate}, {"shards", "shards", f.shards}, {"shuffle", "data.shuffle", f.shuffle},
		{"window", "data.window", f.window}, {"validation", "data.validation.fraction", f.validation}, {"patience", "early_stop.patience", f.patience},
		{"checkpoint-every", "checkpoint.every", f.checkpointEvery}, {"seed", "seed", f.seed},
	} {
		if e.flag == "optimizer" && slices.Contains(fullbatch.Methods, f.opt) {
			e.path = "full_batch.method"
		}
		if cmd.Flags().Changed(e.flag) {
			if err := doc.SetValue(e.path, e.value); err != nil {
				return nil, fmt.Errorf("--%s: %w", e.flag, err)
			}
		}
	}
	if f.loss != "" {
		term := map[string]any{"kind": f.loss}
		if strings.HasSuffix(f.loss, ".onnx") {
			term = map[string]any{"kind": "onnx", "path": f.loss}
		}
		if err := doc.SetValue("loss", []map[string]any{term}); err != nil {
			return nil, fmt.Errorf("--loss: %w", err)
		}
	}
	for _, e := range []struct {
		flag, path string
		list       []string
	}{{"input", "data.inputs", f.inputs}, {"target", "data.targets", f.targets}} {
		if len(e.list) == 0 {
			continue
		}
		columns, err := parseColumns(e.list)
		if err == nil {
			err = doc.SetValue(e.path, columns)
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", e.flag, err)
		}
	}
	if f.lora != "" {
		c, err := parseLoRA(f.lora)
		if err == nil {
			err = doc.SetValue("lora", c)
		}
		if err != nil {
			return nil, fmt.Errorf("--lora %q: %w", f.lora, err)
		}
	}
	return doc, doc.Set(f.sets...)
}

// source opens the document that flags edit: the run's own when it is resumed, the given file, or
// an empty one.
func (f *fitFlags) source(a *app, args []string) (*configs.Document, error) {
	switch {
	case f.resume != "" && len(args) > 0:
		return nil, errors.New("--resume takes the configuration of its run directory; give no file")
	case f.resume != "" && f.dir != "":
		return nil, errors.New("--resume continues in its run directory; leave --dir out")
	case f.resume != "":
		dir, from, err := run.Point(f.resume)
		if err != nil {
			return nil, fmt.Errorf("resume %w", err)
		}
		f.resume, f.from = dir, from
		return configs.Open(filepath.Join(f.resume, run.ConfigFile))
	case len(args) > 0:
		return a.document(args[0])
	}
	return configs.Parse("flags", nil)
}

// parseColumns reads NAME=COL,COL… for several names.
func parseColumns(list []string) (map[string][]string, error) {
	m := map[string][]string{}
	for _, s := range list {
		name, columns, ok := strings.Cut(s, "=")
		if !ok || name == "" || columns == "" {
			return nil, fmt.Errorf("%q: expected NAME=COLUMN,COLUMN…", s)
		}
		if m[name] != nil {
			return nil, fmt.Errorf("%q: %q is given twice", s, name)
		}
		m[name] = strings.Split(columns, ",")
	}
	return m, nil
}

// parseLoRA reads rank=8,alpha=16,target=a,target=b.
func parseLoRA(s string) (lora.Config, error) {
	var c lora.Config
	for part := range strings.SplitSeq(s, ",") {
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
			return c, fmt.Errorf("%q: %w", part, err)
		}
	}
	return c, nil
}

// load decodes the document and makes its paths absolute, so that the effective configuration means
// the same from any folder.
func (f *fitFlags) load(a *app, cmd *cobra.Command, args []string) (fit.Config, error) {
	cfg := fit.Defaults()
	doc, err := f.document(a, cmd, args)
	if err != nil {
		return cfg, err
	}
	if err := doc.Decode(&cfg); err != nil {
		return cfg, err
	}
	if cfg.FullBatch != nil {
		for _, flag := range []string{"lr", "epochs", "shuffle", "accumulate"} {
			if cmd.Flags().Changed(flag) {
				return cfg, fmt.Errorf("--%s: not used by %s, which takes all rows at once until it converges; full_batch.max_iterations and its other keys limit it", flag, cfg.FullBatch.Method)
			}
		}
		if kind := f.opt; cmd.Flags().Changed("optimizer") && kind != cfg.FullBatch.Method {
			return cfg, fmt.Errorf("--optimizer %s: the configuration trains full-batch with %s; remove full_batch", kind, cfg.FullBatch.Method)
		}
	}
	if cfg.Model == "" && cfg.Network == nil || cfg.Data.Path == "" {
		return cfg, errors.New("a model and data are needed: set model (or network) and data.path in the configuration, or give --model and --data")
	}
	paths := []*string{&cfg.Model, &cfg.Data.Path, &cfg.Data.Validation.Path}
	for i := range cfg.Loss {
		paths = append(paths, &cfg.Loss[i].Path)
	}
	for _, p := range paths {
		if *p == "" {
			continue
		}
		if *p, err = objects.Abs(*p); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// fitChanges compares a configuration with that of the run in a directory. How often checkpoints
// are saved may change.
func fitChanges(dir string, cfg fit.Config) ([]configs.Change, error) {
	old := fit.Defaults()
	if _, err := configs.Load(filepath.Join(dir, run.ConfigFile), nil, &old); err != nil {
		return nil, err
	}
	changes, err := configs.Diff(old, cfg)
	return slices.DeleteFunc(changes, func(c configs.Change) bool { return strings.HasPrefix(c.Path, "checkpoint.") }), err
}
