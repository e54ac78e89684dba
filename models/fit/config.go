package fit

import (
	"reflect"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// Config describes a supervised training run. [Defaults] returns the values of what is left out.
type Config struct {
	// Model is the path of the ONNX file to train.
	Model string `yaml:"model"`
	// Network describes, instead of Model, an encoder to train from its initial values.
	Network *Network `yaml:"network,omitempty"`
	// Bind gives numbers to symbolic extents of the model other than the batch.
	Bind map[string]int `yaml:"bind,omitempty"`
	Data Data           `yaml:"data"`
	// Loss lists the terms of the loss. A single term may leave its output out when the model has
	// one output, or the data targets of one.
	Loss []loss.Term `yaml:"loss"`

	// Train and Freeze are patterns of parameter names (* matches any run of characters). With
	// LoRA, only adapters and what Train matches are trained.
	Train  []string     `yaml:"train,omitempty"`
	Freeze []string     `yaml:"freeze,omitempty"`
	LoRA   *lora.Config `yaml:"lora,omitempty"`
	// Parameters of different layers that the exporter merged because they began equal are cut
	// apart, and tied weights that it wrote twice are trained as one, by the rules of
	// models.FindTies, which these keys overrule.
	models.TieOptions `yaml:",inline"`
	// TrainMode true trains all BatchNormalization and Dropout in their training form, false all in
	// their evaluation form; not given, each in the form that it has in the file.
	TrainMode *bool `yaml:"train_mode,omitempty"`

	// LearningRateSchedule begins with optimizer.lr and counts optimiser steps.
	Optimizer            optim.Config   `yaml:"optimizer"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// FullBatch trains on all rows at once with L-BFGS, conjugate gradients or CMA-ES until a
	// criterion of it is met, in place of Optimizer and Epochs.
	FullBatch *fullbatch.Config `yaml:"full_batch,omitempty"`
	// ClipNorm limits the global norm of the gradient; 0 does not.
	ClipNorm float64 `yaml:"clip_norm,omitempty"`

	// Batch rows are run at once; Accumulate batches make one optimiser step.
	Batch      int `yaml:"batch"`
	Accumulate int `yaml:"accumulate"`
	// Epochs is the number of passes over the data.
	Epochs int `yaml:"epochs"`
	// Shards splits every batch over cores; 0 decides once, from the graph's arithmetic and the
	// cores there are. Results depend on it in the last bits, so the effective configuration, from
	// which a run is resumed anywhere, records what was decided.
	Shards int `yaml:"shards,omitempty"`
	// Seed is where every random choice descends from.
	Seed uint64 `yaml:"seed"`

	EarlyStop EarlyStop `yaml:"early_stop,omitempty"`
	// LogEvery is the number of optimiser steps between records of the training loss.
	LogEvery   int        `yaml:"log_every"`
	Checkpoint Checkpoint `yaml:"checkpoint"`
}

// Data says where rows come from and which columns fill which tensors.
type Data struct {
	// Path of a Parquet, Arrow or CSV file, a folder, or a glob pattern.
	Path string `yaml:"path"`
	// Inputs maps model inputs to columns (names or globs); Targets maps model outputs to the
	// columns of their targets.
	Inputs  map[string][]string `yaml:"inputs"`
	Targets map[string][]string `yaml:"targets"`
	// Weight is the column of sample weights, if any. The loss is the weighted sum divided by the
	// number of rows.
	Weight string `yaml:"weight,omitempty"`
	// Missing is "error" or "drop": what happens to rows with a missing or non-finite value.
	Missing dataset.Missing `yaml:"missing"`
	// Shuffle permutes the rows in every epoch. Window is the number of rows in memory that are
	// shuffled together.
	Shuffle    bool       `yaml:"shuffle"`
	Window     int        `yaml:"window,omitempty"`
	Validation Validation `yaml:"validation,omitempty"`
}

// Validation is a held-out part of the data, or a table of its own.
type Validation struct {
	// Fraction is the share of the rows that is held out.
	Fraction float64 `yaml:"fraction,omitempty"`
	// Tail takes the last rows instead of random ones: right for rows in time order.
	Tail bool `yaml:"tail,omitempty"`
	// Path is that of a table of its own.
	Path string `yaml:"path,omitempty"`
}

// EarlyStop ends a run when the validation loss has not improved by MinDelta for Patience epochs.
// Patience 0 never does.
type EarlyStop struct {
	// Patience is the number of epochs; 0 never stops.
	Patience int `yaml:"patience,omitempty"`
	// MinDelta is how much better a validation loss has to be to count.
	MinDelta float64 `yaml:"min_delta,omitempty"`
}

// Checkpoint says how often state is saved and how many checkpoints are kept.
type Checkpoint struct {
	// Every is the number of optimiser steps between checkpoints; one is also saved at the end of
	// each epoch and when the run is stopped.
	Every int `yaml:"every"`
	// Keep is the number of checkpoints that are kept, the last ones.
	Keep int `yaml:"keep"`
}

// Defaults returns the configuration that a file or flags then change.
func Defaults() Config {
	return Config{
		Optimizer: optim.Config{Kind: "adam", LR: 1e-3}, Batch: 64, Accumulate: 1, Epochs: 10, LogEvery: 1,
		Data: Data{Missing: dataset.Fail, Shuffle: true}, Checkpoint: Checkpoint{Every: 1000, Keep: 2},
	}
}

// Renamed implements configs.Renamer.
func (Config) Renamed() map[string]string {
	return map[string]string{"schedule": "learning_rate_schedule"}
}

// Validate reports all problems of the configuration's own fields; configs.Validate visits the
// parts.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Network == nil || c.Model == "", "network", "is instead of model, which is %q", c.Model)
	p.Check(c.Network == nil || len(c.Tie) == 0, "tie", "is for files; what a described network has twice is tied")
	p.AtLeast("batch", c.Batch, 1)
	p.AtLeast("accumulate", c.Accumulate, 1)
	p.AtLeast("epochs", c.Epochs, 1)
	p.AtLeast("shards", c.Shards, 0)
	p.AtLeast("log_every", c.LogEvery, 1)
	p.NonNegative("clip_norm", c.ClipNorm)
	p.Check(len(c.Loss) > 0, "loss", "no term is given, expected at least one")
	if c.Shards > 1 && c.Batch > 0 {
		p.Check(c.Batch%c.Shards == 0, "shards", "%d does not divide the batch of %d", c.Shards, c.Batch)
	}
	p.AtLeast("checkpoint.every", c.Checkpoint.Every, 1)
	p.AtLeast("checkpoint.keep", c.Checkpoint.Keep, 1)
	p.AtLeast("early_stop.patience", c.EarlyStop.Patience, 0)
	p.NonNegative("early_stop.min_delta", c.EarlyStop.MinDelta)
	p.Check(c.EarlyStop.Patience == 0 || c.Data.hasValidation(), "early_stop.patience", "needs validation data: set data.validation")
	c.checkFullBatch(&p)
	return p.Err()
}

// checkFullBatch refuses what means nothing when all rows make one step, and says where the methods
// that need them all are set.
func (c Config) checkFullBatch(p *configs.Problems) {
	if c.FullBatch == nil {
		p.Check(!slices.Contains(fullbatch.Methods, c.Optimizer.Kind), "optimizer.kind", "%s trains on all rows at once: set full_batch.method instead", c.Optimizer.Kind)
		return
	}
	method, d := c.FullBatch.Method, Defaults()
	for _, k := range []struct {
		key   string
		unset bool
		why   string
	}{
		{"optimizer", reflect.DeepEqual(c.Optimizer.WithDefaults(), d.Optimizer.WithDefaults()), "leave it out: the step is the method's, without a learning rate or weight decay"},
		{"learning_rate_schedule", reflect.ValueOf(c.LearningRateSchedule).IsZero(), "there is no learning rate"},
		{"clip_norm", c.ClipNorm == 0, "a line search needs the gradient of the loss itself"},
		{"accumulate", c.Accumulate == 1, "all batches are one step"},
		{"epochs", c.Epochs == d.Epochs, "leave it out: full_batch.max_iterations limits the run"},
		{"early_stop.patience", c.EarlyStop.Patience == 0, "the criteria of convergence are in full_batch"},
		{"train_mode", c.TrainMode == nil || !*c.TrainMode, "dropout and statistics of a batch make the loss a random one, which a line search cannot descend"},
	} {
		p.Check(k.unset, k.key, "not used by %s: %s", method, k.why)
	}
}

// Validate reports all problems of the data section.
func (d Data) Validate() error {
	var p configs.Problems
	p.Check(len(d.Inputs) > 0, "inputs", "no input is given, expected the columns of each model input")
	p.Check(len(d.Targets) > 0, "targets", "no target is given, expected the columns of each trained output")
	p.Check(slices.Contains([]dataset.Missing{dataset.Fail, dataset.Drop}, d.Missing), "missing", "%q, expected %q or %q", d.Missing, dataset.Fail, dataset.Drop)
	p.Check(d.Validation.Fraction >= 0 && d.Validation.Fraction < 1, "validation.fraction", "%g, expected a number in [0, 1)", d.Validation.Fraction)
	p.Check(d.Validation.Path == "" || d.Validation.Fraction == 0, "validation.path", "cannot be combined with validation.fraction")
	p.AtLeast("window", d.Window, 0)
	return p.Err()
}

// effective returns a copy with defaults in place of what is left open, as far as that does not
// need the model.
func (c Config) effective() Config {
	c.Optimizer = c.Optimizer.WithDefaults()
	if c.Data.Window == 0 {
		c.Data.Window = dataset.DefaultWindow
	}
	if c.FullBatch != nil {
		f := *c.FullBatch
		if f.Method == "cmaes" && f.Seed == 0 {
			f.Seed = c.Seed
		}
		// The sum over all rows is made in one order.
		c.FullBatch, c.Data.Shuffle = &f, false
	}
	c.Loss = slices.Clone(c.Loss)
	for i := range c.Loss {
		c.Loss[i] = c.Loss[i].WithDefaults()
	}
	if c.LoRA != nil {
		l := c.LoRA.WithDefaults()
		if l.Seed == 0 {
			l.Seed = c.Seed
		}
		c.LoRA = &l
	}
	return c
}

func (d Data) hasValidation() bool { return d.Validation.Fraction > 0 || d.Validation.Path != "" }
