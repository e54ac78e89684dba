package fit

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Hooks connect a run to the outside. All are optional.
type Hooks struct {
	// Log receives events worth a line: layers kept in evaluation form, folded layers, tied
	// parameters.
	Log *slog.Logger
	// Step is called after every optimiser step.
	Step func(Progress)
	// Metrics is called with values under TensorBoard-style tags at the given optimiser step. The
	// map is used again and must not be kept.
	Metrics func(step int64, values map[string]float64)
	// Save is called when the state should be saved; the trainer is a checkpoint.Stater. score is
	// the negated validation loss at the end of an epoch, else nil. An error ends the run.
	Save func(step int64, score *float64) error
}

// Trainer is a supervised training run. It is not safe for concurrent use.
type Trainer struct {
	cfg    Config
	eng    engine.Compiler
	hooks  Hooks
	g      *graphs
	params *models.Params
	tables []dataset.Table
	rows   *dataset.Mapping
	train  *dataset.Loader
	valid  *dataset.Loader

	// training and validation are the compiled programs. Every training program writes its
	// gradients to grads; sum accumulates them where several batches make a step.
	training, validation programs
	grads, sum           *models.Segment
	unreached            []string

	opt     optim.Optimizer
	groups  []optim.Group
	moments []*tensor.Arena
	steps   int64

	s       state
	journal fullbatch.Journal
	best    map[models.Role][]float32
	values  map[string]float64
}

// New prepares a run of model m on the data of the configuration. m is not changed and must not be
// while the trainer is used. Close the trainer after use.
func New(m *onnx.Model, cfg Config, eng engine.Compiler, hooks Hooks) (_ *Trainer, err error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	if hooks.Log == nil {
		hooks.Log = slog.New(slog.DiscardHandler)
	}
	t := &Trainer{cfg: cfg.effective(), eng: eng, hooks: hooks, best: map[models.Role][]float32{}, values: map[string]float64{}}
	defer func() {
		if err != nil {
			err = fmt.Errorf("fit: %w", errors.Join(err, t.Close()))
		}
	}()
	if t.g, err = prepare(m, &t.cfg); err != nil {
		return nil, err
	}
	if t.params, err = models.NewParams(t.g.served, nil); err != nil {
		return nil, err
	}
	if err := t.params.Load(t.g.values); err != nil {
		return nil, err
	}
	t.g.values = nil
	for _, s := range t.params.Segments() {
		if err := optim.FindNonFinite("initial value", s.Floats(), paramsOf(s)); err != nil {
			return nil, err
		}
	}
	if err := t.openData(); err != nil {
		return nil, err
	}
	if err := t.compile(); err != nil {
		return nil, err
	}
	if err := t.checkDeterministic(); err != nil {
		return nil, err
	}
	if err := t.buildOptimizer(); err != nil {
		return nil, err
	}
	t.report()
	return t, nil
}

// paramsOf names the ranges of a segment for package optim.
func paramsOf(s *models.Segment) []optim.Param {
	list := make([]optim.Param, len(s.Specs()))
	for i, spec := range s.Specs() {
		off, n := s.Range(i)
		list[i] = optim.Param{Name: spec.Name, Offset: off, Len: n}
	}
	return list
}

// compile makes the programs for every batch size of the run.
func (t *Trainer) compile() (err error) {
	trainable := t.params.Segment(models.Trainable)
	if t.grads, err = trainable.Like(); err != nil {
		return err
	}
	if t.cfg.Accumulate > 1 || t.cfg.FullBatch != nil && t.train.Rows() > t.cfg.Batch {
		if t.sum, err = trainable.Like(); err != nil {
			return err
		}
	}
	auto := t.cfg.Shards == 0
	if auto {
		t.cfg.Shards = t.chooseShards()
	}
	key := rng.New(t.cfg.Seed).Split("dropout")
	t.training, err = build(t.train.Rows(), t.cfg.Batch, func(rows int) (*batch, error) {
		c := program.Config{
			Engine: t.eng, Batch: rows, BatchSymbol: batchSymbol, Updates: t.g.mode.Updates, Gradients: []*models.Segment{t.grads},
			Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: loss.Output}}}}, Shards: 1,
		}
		if t.cfg.FullBatch != nil && t.cfg.FullBatch.Method == "cmaes" {
			c.Gradients, c.Objectives = nil, nil
		}
		if rows%t.cfg.Shards == 0 {
			c.Shards = t.cfg.Shards
		}
		p, err := program.New(t.g.train, t.params, c)
		if auto && errors.Is(err, program.ErrNotSeparable) {
			t.hooks.Log.Info("the batch is not split over cores", "reason", err)
			t.cfg.Shards, c.Shards = 1, 1
			p, err = program.New(t.g.train, t.params, c)
		}
		if err != nil {
			return nil, err
		}
		t.unreached = p.Unreached()
		return newBatch(p, rows, t.train.Fields(), nil, t.g.mode.Masks, key), nil
	})
	if err != nil || t.valid == nil {
		return err
	}
	t.validation, err = build(t.valid.Rows(), t.cfg.Batch, func(rows int) (*batch, error) {
		p, err := program.New(t.g.eval, t.params, program.Config{Engine: t.eng, Batch: rows, BatchSymbol: batchSymbol})
		if err != nil {
			return nil, err
		}
		return newBatch(p, rows, t.valid.Fields(), t.g.metrics, nil, key), nil
	})
	return err
}

// chooseShards decides from the graph's arithmetic and the number of cores. Layers that use the
// statistics of the batch need it whole.
func (t *Trainer) chooseShards() int {
	if len(t.g.mode.Updates) > 0 {
		return 1
	}
	rule := program.Split{Threads: runtime.GOMAXPROCS(0), FLOPs: program.SplitFLOPs}
	// Forward and backward together cost about three times forward.
	return rule.Dividing(t.cfg.Batch).Shards(t.g.train, batchSymbol, t.cfg.Batch, 3)
}

// buildOptimizer ties the optimiser's groups to the parameters that a loss depends on. The others
// keep their values, also under weight decay.
func (t *Trainer) buildOptimizer() error {
	trainable := t.params.Segment(models.Trainable)
	list := paramsOf(trainable)
	if bad := t.cfg.Optimizer.Unmatched(list); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	list = slices.DeleteFunc(list, func(p optim.Param) bool { return slices.Contains(t.unreached, p.Name) })
	if len(list) == 0 {
		return fmt.Errorf("no loss depends on any of the trainable parameters %q", t.unreached)
	}
	if t.cfg.FullBatch != nil {
		t.steps = int64(t.cfg.FullBatch.Iterations())
		return nil
	}
	grads := t.grads
	if t.sum != nil {
		grads = t.sum
	}
	var err error
	if t.groups, err = optim.Groups(t.cfg.Optimizer, trainable.Floats(), grads.Floats(), list); err != nil {
		return err
	}
	perStep := t.cfg.Batch * t.cfg.Accumulate
	t.steps = int64((t.train.Rows()+perStep-1)/perStep) * int64(t.cfg.Epochs)
	t.opt, err = optim.New(t.cfg.Optimizer, optim.WithAllocator(func(_ string, n int) ([]float32, error) {
		a, err := tensor.NewArena(4 * n)
		if err != nil {
			return nil, err
		}
		t.moments = append(t.moments, a)
		return a.Float32s(0, n), nil
	}), optim.WithPool(t.training.of(t.train.Rows()).Pool()))
	return err
}

// report says what the exporter did to the model and what that means for training it.
func (t *Trainer) report() {
	log := t.hooks.Log
	for _, l := range t.g.settled {
		if t.cfg.TrainMode != nil && !*t.cfg.TrainMode {
			log.Warn("layer was exported in training form; train_mode: false trains it in evaluation form", "op", l.Op, "node", l.Node)
		}
		log.Info("layer was exported in training form; it is validated and written in evaluation form", "op", l.Op, "node", l.Node)
	}
	for _, l := range t.g.mode.Layers {
		log.Info("layer trained in training form", "op", l.Op, "node", l.Node)
	}
	trained := map[string]bool{}
	for _, l := range t.g.mode.Layers {
		trained[l.Node] = true
	}
	for _, l := range t.g.layers {
		if !trained[l.Node] {
			log.Info("layer kept in evaluation form; train_mode would train it in training form", "op", l.Op, "node", l.Node)
		}
	}
	if t.cfg.TrainMode != nil && *t.cfg.TrainMode && len(t.g.mode.Layers) == 0 {
		log.Warn("train_mode changes nothing: the file holds no BatchNormalization and no Dropout; exporters fold both away unless they export for training")
	}
	if t.g.precision != tensor.Float32 {
		log.Info("the model is trained in float32 and written in its own type", "type", t.g.precision)
	}
	if len(t.g.fixed) > 0 {
		log.Info("the batch was exported as a fixed number; it is trained and written as a symbol", "inputs", t.g.fixed)
	}
	for _, split := range t.g.ties.Splits {
		log.Info("parameters of different layers that the exporter had merged because they began equal are trained apart; tie keeps them together", "merged", split.Name, "apart", split.Into)
	}
	if joins := t.g.ties.Joins; len(joins) > 0 {
		log.Info("initializers that hold the same weights are trained as one parameter and written equal; untie trains them apart", "tied", joins)
	}
	if shared := models.Shared(t.g.served.Model, t.g.served.Specs); len(shared) > 0 {
		log.Info("parameters used more than once stay tied and are trained as one; untie cuts them apart", "parameters", shared)
	}
	if len(t.g.served.Constants) > 0 {
		log.Info("tensors taken for constants are not trained; naming one in train overrules that", "tensors", t.g.served.Constants)
	}
	if len(t.g.served.Buffers) > 0 {
		log.Info("tensors taken for buffers that were never parameters, such as position tables, are not trained; naming one in train overrules that", "tensors", t.g.served.Buffers)
	}
	if len(t.unreached) > 0 {
		log.Warn("parameters that no loss depends on are not trained", "parameters", t.unreached)
	}
}

// Network returns the model in the form that is trained, with parameters as inputs and without
// losses; adapters are still separate.
func (t *Trainer) Network() *models.Network { return t.g.served }

// Params returns the parameters. They are the trainer's and end with it.
func (t *Trainer) Params() *models.Params { return t.params }

// Adapters lists the LoRA adapters; none without LoRA.
func (t *Trainer) Adapters() []lora.Adapter { return t.g.adapters }

// Config returns the configuration in force: what was left open in the given one is decided.
func (t *Trainer) Config() Config { return t.cfg }

// Rows returns the rows of the training and validation parts.
func (t *Trainer) Rows() (train, valid int) {
	if t.valid != nil {
		valid = t.valid.Rows()
	}
	return t.train.Rows(), valid
}

// TotalSteps returns the optimiser steps of the whole run when it does not stop early.
func (t *Trainer) TotalSteps() int64 { return t.steps }

// Counts returns the number of trained and frozen parameter elements.
func (t *Trainer) Counts() (trainable, frozen int) {
	for _, s := range t.g.served.Specs {
		switch s.Role {
		case models.Trainable:
			trainable += s.Len()
		case models.Frozen:
			frozen += s.Len()
		}
	}
	return trainable, frozen
}

// Close frees programs, parameters and tables.
func (t *Trainer) Close() error {
	errs := []error{t.training.close(), t.validation.close()}
	for _, s := range []*models.Segment{t.grads, t.sum} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if t.params != nil {
		errs = append(errs, t.params.Close())
	}
	for _, a := range t.moments {
		errs = append(errs, a.Close())
	}
	for _, d := range t.tables {
		errs = append(errs, d.Close())
	}
	t.training, t.validation, t.grads, t.sum, t.params, t.moments, t.tables = programs{}, programs{}, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
