package fit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"

	"onnxrl/models"
	"onnxrl/models/dataset"
	"onnxrl/models/lora"
	"onnxrl/models/loss"
	"onnxrl/models/program"
	"onnxrl/models/trainmode"
	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/optim"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// Hooks connect a run to the outside. All are optional.
type Hooks struct {
	// Log receives events worth a line: layers kept in evaluation form, folded layers, best epochs.
	Log *slog.Logger
	// Step is called after every optimiser step.
	Step func(Progress)
	// Metrics is called with values under TensorBoard-style tags at the given optimiser step.
	Metrics func(step int64, values map[string]float64)
	// Save is called when the state should be saved; the trainer is a checkpoint.Stater.
	Save func(step int64, score *float64) error
}

// Progress is the position of a run after an optimiser step.
type Progress struct {
	Step, TotalSteps int64
	Epoch, Epochs    int
	// Rows trained on so far, over all epochs.
	Rows               int64
	Loss, LR, GradNorm float64
	// Validation is the newest validation loss; NaN before the first.
	Validation float64
}

// Trainer is a supervised training run. It is not safe for concurrent use.
type Trainer struct {
	cfg    Config
	eng    engine.Compiler
	hooks  Hooks
	g      *graphs
	params *models.Params
	data   []dataset.Table
	rows   *dataset.Mapping
	train  *dataset.Loader
	valid  *dataset.Loader

	programs map[int]*batch
	evals    map[int]*batch
	opt      optim.Optimizer
	moments  []*tensor.Arena
	sum      *models.Segment
	groups   []optim.Group
	steps    int64
	shards   int

	s    state
	best map[models.Role][]float32
}

// batch is a program with its buffers in the order of the loader's fields.
type batch struct {
	*program.Program
	fields []*tensor.Tensor
	weight []float32
	loss   []float32
}

// state is what a run carries between optimiser steps, beside arrays.
type state struct {
	Step       int64         `json:"step"`
	Micro      uint64        `json:"micro"`
	Position   dataset.State `json:"position"`
	EpochLoss  float64       `json:"epoch_loss"`
	EpochRows  int64         `json:"epoch_rows"`
	Best       *float64      `json:"best"`
	BestEpoch  int           `json:"best_epoch"`
	Stale      int           `json:"stale"`
	Validation *float64      `json:"validation"`
	Done       bool          `json:"done"`
}

// Result summarises a finished or stopped run.
type Result struct {
	Steps int64
	// Epochs counts finished epochs.
	Epochs int
	// Loss is the mean training loss of the last finished epoch; Validation the newest validation loss. NaN when there is none.
	Loss, Validation float64
	// BestEpoch is the epoch, counted from 1, whose weights the trainer holds at the end; 0 when there is no validation data and the last weights are kept.
	BestEpoch int
	// Stopped says why a run ended before its last epoch: "" when it did not, "early stop", or "interrupted".
	Stopped string
}

// New prepares a run of model m on the data of the configuration. m is not changed. Close the trainer after use.
func New(m *onnx.Model, cfg Config, eng engine.Compiler, hooks Hooks) (_ *Trainer, err error) {
	if err := errors.Join(cfg.Validate(), cfg.Data.Validate(), cfg.Optimizer.Validate(), cfg.Schedule.Validate()); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	if hooks.Log == nil {
		hooks.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Loss = slices.Clone(cfg.Loss)
	t := &Trainer{cfg: cfg, eng: eng, hooks: hooks, programs: map[int]*batch{}, evals: map[int]*batch{}, best: map[models.Role][]float32{}}
	defer func() {
		if err != nil {
			t.Close()
			err = fmt.Errorf("fit: %w", err)
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
		if err := checkFinite(s); err != nil {
			return nil, err
		}
	}
	if err := t.openData(); err != nil {
		return nil, err
	}
	if err := t.buildOptimizer(); err != nil {
		return nil, err
	}
	perEpoch := (t.train.Rows() + cfg.Batch*cfg.Accumulate - 1) / (cfg.Batch * cfg.Accumulate)
	t.steps = int64(perEpoch) * int64(cfg.Epochs)
	t.report()
	return t, nil
}

// checkFinite refuses weights that are NaN or infinite before any time is spent on them.
func checkFinite(s *models.Segment) error {
	for i, spec := range s.Specs() {
		for k, v := range s.View(i).Float32s() {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("parameter %q of the model is %v at element %d; its weights must be finite", spec.Name, v, k)
			}
		}
	}
	return nil
}

// report says what the model's exporter did to layers that behave differently in training.
func (t *Trainer) report() {
	log := t.hooks.Log
	if t.cfg.TrainMode {
		for _, l := range t.g.mode.Layers {
			log.Info("layer in training form", "op", l.Op, "node", l.Node)
		}
	} else {
		for _, l := range t.g.layers {
			if !l.Training {
				log.Info("layer kept in evaluation form (train_mode would train it)", "op", l.Op, "node", l.Node)
			}
		}
	}
	for _, op := range []string{"BatchNormalization", "Dropout"} {
		if !slices.ContainsFunc(t.g.layers, func(l trainmode.Layer) bool { return l.Op == op }) {
			log.Info("the graph holds no "+op+": if the original network had any, its exporter folded or removed it", "op", op)
		}
	}
}

func (t *Trainer) openData() error {
	fields, err := t.g.fields(&t.cfg)
	if err != nil {
		return err
	}
	load := func(path string, part dataset.Part, shuffle bool) (*dataset.Loader, error) {
		table, err := dataset.Open(path)
		if err != nil {
			return nil, err
		}
		t.data = append(t.data, table)
		m, err := dataset.Map(table, fields, t.cfg.Data.Missing)
		if err != nil {
			return nil, err
		}
		if t.rows == nil {
			t.rows = m
		}
		v := t.cfg.Data.Validation
		return dataset.NewLoader(m, dataset.LoaderOptions{
			Part: part, Split: dataset.Split{Fraction: v.Fraction, Tail: v.Tail, Seed: t.cfg.Seed},
			Shuffle: shuffle, Seed: t.cfg.Seed, Window: t.cfg.Data.Window,
		})
	}
	d := t.cfg.Data
	part := dataset.All
	if d.Validation.Fraction > 0 {
		part = dataset.Train
	}
	if t.train, err = load(d.Path, part, d.Shuffle); err != nil {
		return err
	}
	switch {
	case d.Validation.Path != "":
		t.valid, err = load(d.Validation.Path, dataset.All, false)
	case d.Validation.Fraction > 0:
		t.valid, err = load(d.Path, dataset.Validation, false)
	}
	return err
}

// buildOptimizer makes the main program and ties the optimiser's groups to its gradients.
func (t *Trainer) buildOptimizer() error {
	t.shards = t.cfg.Shards
	if t.shards == 0 {
		t.shards = t.chooseShards()
	}
	rows := min(t.cfg.Batch, t.train.Rows())
	main, err := t.program(rows)
	if err != nil {
		return err
	}
	if names := main.Unreached(); len(names) > 0 {
		t.hooks.Log.Warn("parameters that no loss depends on are not trained", "parameters", names)
	}
	seg := t.params.Segment(models.Trainable)
	grads := main.Gradients(0)
	if t.cfg.Accumulate > 1 {
		if t.sum, err = seg.Like(); err != nil {
			return err
		}
		grads = t.sum
	}
	list := make([]optim.Param, len(seg.Specs()))
	for i, s := range seg.Specs() {
		off, n := seg.Range(i)
		list[i] = optim.Param{Name: s.Name, Offset: off, Len: n}
	}
	if bad := t.cfg.Optimizer.Unmatched(list); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	if t.groups, err = optim.Groups(t.cfg.Optimizer, seg.Floats(), grads.Floats(), list); err != nil {
		return err
	}
	t.opt, err = optim.New(t.cfg.Optimizer, optim.WithAllocator(func(_ string, n int) ([]float32, error) {
		a, err := tensor.NewArena(4 * n)
		if err != nil {
			return nil, err
		}
		t.moments = append(t.moments, a)
		return a.Float32s(0, n), nil
	}))
	return err
}

// shardFLOPs is the arithmetic of one run from which splitting it over cores pays: about 300 µs on one core.
const shardFLOPs = 30e6

// chooseShards decides from the graph alone, so that the same run is split in the same way every time on machines of equal size.
func (t *Trainer) chooseShards() int {
	n := runtime.GOMAXPROCS(0)
	for n > 1 && t.cfg.Batch%n != 0 {
		n--
	}
	if n == 1 || t.cfg.TrainMode || 3*program.FLOPs(t.g.train.Model, map[string]int{batchSymbol: t.cfg.Batch}) < shardFLOPs {
		return 1
	}
	return n
}

// program returns the training program for a number of rows, compiled on first use.
func (t *Trainer) program(rows int) (*batch, error) {
	if b := t.programs[rows]; b != nil {
		return b, nil
	}
	cfg := program.Config{
		Engine: t.eng, Batch: rows, BatchSymbol: batchSymbol, Updates: t.g.mode.Updates,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: loss.Output}}}}, Shards: t.shards,
	}
	if rows%t.shards != 0 {
		cfg.Shards = 1
	}
	p, err := program.New(t.g.train, t.params, cfg)
	if errors.Is(err, program.ErrNotSeparable) && t.cfg.Shards == 0 {
		t.hooks.Log.Info("the batch is not split over cores", "reason", err)
		t.shards, cfg.Shards = 1, 1
		p, err = program.New(t.g.train, t.params, cfg)
	}
	if err != nil {
		return nil, err
	}
	b := t.wrap(p)
	t.programs[rows] = b
	return b, nil
}

// evalProgram returns the evaluation program for a number of rows.
func (t *Trainer) evalProgram(rows int) (*batch, error) {
	if b := t.evals[rows]; b != nil {
		return b, nil
	}
	p, err := program.New(t.g.eval, t.params, program.Config{Engine: t.eng, Batch: rows, BatchSymbol: batchSymbol})
	if err != nil {
		return nil, err
	}
	b := t.wrap(p)
	t.evals[rows] = b
	return b, nil
}

// wrap looks the program's buffers up once.
func (t *Trainer) wrap(p *program.Program) *batch {
	b := &batch{Program: p, weight: p.Input(loss.WeightInput).Float32s(), loss: p.Output(loss.Output).Float32s()}
	for _, name := range t.train.Fields() {
		b.fields = append(b.fields, p.Input(name))
	}
	return b
}

// weigh turns the loader's sample weights, or ones, into weights that make the loss a mean over total rows.
func (t *Trainer) weigh(b *batch, total int) {
	w := 1 / float32(total)
	for i := range b.weight {
		if t.cfg.Data.Weight == "" {
			b.weight[i] = w
		} else {
			b.weight[i] *= w
		}
	}
}

// drawMasks fills dropout masks from a stream derived from seed and micro-batch number.
func (t *Trainer) drawMasks(b *batch) {
	for _, m := range t.g.mode.Masks {
		in := b.Input(m.Input)
		if in == nil {
			continue
		}
		s := rng.New(t.cfg.Seed).Split("dropout").Split(m.Input, int(t.s.Micro)).Stream()
		keep := float32(1 / (1 - m.Ratio))
		for i, x := 0, in.Float32s(); i < len(x); i++ {
			x[i] = 0
			if s.Float64() >= m.Ratio {
				x[i] = keep
			}
		}
	}
}

// step trains on one group of batches and updates the parameters.
func (t *Trainer) step() (Progress, error) {
	total := min(t.cfg.Batch*t.cfg.Accumulate, t.train.Left())
	var lossSum float64
	for left, first := total, true; left > 0; first = false {
		rows := min(t.cfg.Batch, left)
		b, err := t.program(rows)
		if err != nil {
			return Progress{}, err
		}
		if _, err := t.train.Next(rows, b.fields); err != nil {
			return Progress{}, err
		}
		left -= rows
		t.weigh(b, total)
		t.drawMasks(b)
		if err := b.Run(); err != nil {
			return Progress{}, err
		}
		t.s.Micro++
		lossSum += float64(b.loss[0])
		t.collect(b, first)
	}
	if math.IsNaN(lossSum) || math.IsInf(lossSum, 0) {
		return Progress{}, fmt.Errorf("step %d: the loss is %v; lower the learning rate, or run 'onnxrl grad trace' to find the first non-finite value", t.s.Step+1, lossSum)
	}
	limit := math.Inf(1)
	if t.cfg.ClipNorm > 0 {
		limit = t.cfg.ClipNorm
	}
	norm, _, err := optim.ClipGlobalNorm(t.groups, limit)
	if err != nil {
		return Progress{}, fmt.Errorf("step %d: %w", t.s.Step+1, err)
	}
	lr := t.cfg.Schedule.WithInitial(t.cfg.Optimizer.LR).At(uint64(t.s.Step), uint64(t.steps))
	optim.SetLR(t.groups, lr)
	if err := t.opt.Step(t.groups); err != nil {
		return Progress{}, fmt.Errorf("step %d: %w", t.s.Step+1, err)
	}
	t.s.Step++
	t.s.EpochLoss += lossSum * float64(total)
	t.s.EpochRows += int64(total)
	p := Progress{
		Step: t.s.Step, TotalSteps: t.steps, Epoch: t.s.Position.Epoch + 1, Epochs: t.cfg.Epochs,
		Rows: int64(t.s.Position.Epoch)*int64(t.train.Rows()) + t.s.EpochRows, Loss: lossSum, LR: lr, GradNorm: norm, Validation: math.NaN(),
	}
	if t.s.Validation != nil {
		p.Validation = *t.s.Validation
	}
	return p, nil
}

// collect brings a run's gradients to where the optimiser reads them.
func (t *Trainer) collect(b *batch, first bool) {
	src := b.Gradients(0).Floats()
	main := t.programs[min(t.cfg.Batch, t.train.Rows())]
	if t.cfg.Accumulate == 1 {
		if b != main {
			copy(main.Gradients(0).Floats(), src)
		}
		return
	}
	dst := t.sum.Floats()
	if first {
		copy(dst, src)
		return
	}
	program.Add(dst, src)
}

// Run trains until the last epoch, an early stop, or the end of ctx, which is no error: the result says so and the state can be resumed. After a complete run with validation data, the
// trainer holds the parameters of the best epoch.
func (t *Trainer) Run(ctx context.Context) (Result, error) {
	res := Result{Loss: math.NaN(), Validation: math.NaN()}
	for !t.s.Done && t.s.Position.Epoch < t.cfg.Epochs {
		for t.train.Left() > 0 {
			if ctx.Err() != nil {
				res.Stopped = "interrupted"
				t.fill(&res)
				return res, t.save(nil)
			}
			p, err := t.step()
			if err != nil {
				return res, fmt.Errorf("fit: %w", err)
			}
			if t.hooks.Step != nil {
				t.hooks.Step(p)
			}
			if t.hooks.Metrics != nil {
				t.hooks.Metrics(p.Step, map[string]float64{"train/loss": p.Loss, "train/learning_rate": p.LR, "train/grad_norm": p.GradNorm})
			}
			if t.s.Step%int64(t.cfg.Checkpoint.Every) == 0 && t.train.Left() > 0 {
				if err := t.save(nil); err != nil {
					return res, fmt.Errorf("fit: %w", err)
				}
			}
		}
		if err := t.endEpoch(&res); err != nil {
			return res, fmt.Errorf("fit: %w", err)
		}
	}
	t.fill(&res)
	if t.s.Done && t.s.Position.Epoch < t.cfg.Epochs {
		res.Stopped = "early stop"
	}
	t.restoreBest()
	return res, nil
}

func (t *Trainer) fill(res *Result) {
	res.Steps, res.Epochs, res.BestEpoch = t.s.Step, t.s.Position.Epoch, t.s.BestEpoch
	if t.s.Validation != nil {
		res.Validation = *t.s.Validation
	}
}

// endEpoch validates, notes the best weights, moves on and saves.
func (t *Trainer) endEpoch(res *Result) error {
	res.Loss = t.s.EpochLoss / float64(t.s.EpochRows)
	values := map[string]float64{"train/epoch_loss": res.Loss, "time/epoch": float64(t.s.Position.Epoch + 1)}
	var score *float64
	if t.valid != nil {
		v, metrics, err := t.Validate()
		if err != nil {
			return err
		}
		t.s.Validation = &v
		neg := -v
		score = &neg
		values["eval/loss"] = v
		for k, x := range metrics {
			values["eval/"+k] = x
		}
		if t.s.Best == nil || v < *t.s.Best-t.cfg.EarlyStop.MinDelta {
			t.s.Best, t.s.BestEpoch, t.s.Stale = &v, t.s.Position.Epoch+1, 0
			t.keepBest()
		} else {
			t.s.Stale++
		}
		if math.IsNaN(v) {
			return fmt.Errorf("epoch %d: the validation loss is not a number", t.s.Position.Epoch+1)
		}
	}
	if t.hooks.Metrics != nil {
		t.hooks.Metrics(t.s.Step, values)
	}
	t.train.NextEpoch()
	t.s.Position, t.s.EpochLoss, t.s.EpochRows = t.train.State(), 0, 0
	if t.cfg.EarlyStop.Patience > 0 && t.s.Stale >= t.cfg.EarlyStop.Patience {
		t.s.Done = true
	}
	return t.save(score)
}

func (t *Trainer) save(score *float64) error {
	t.s.Position = t.train.State()
	if t.hooks.Save == nil {
		return nil
	}
	return t.hooks.Save(t.s.Step, score)
}

// Validate returns the loss and metrics over the validation part with the current parameters.
func (t *Trainer) Validate() (float64, map[string]float64, error) {
	if t.valid == nil {
		return 0, nil, errors.New("validate: there is no validation data")
	}
	if err := t.valid.Seek(dataset.State{}); err != nil {
		return 0, nil, err
	}
	var sum float64
	metrics := map[string]float64{}
	for t.valid.Left() > 0 {
		rows := min(t.cfg.Batch, t.valid.Left())
		b, err := t.evalProgram(rows)
		if err != nil {
			return 0, nil, err
		}
		if _, err := t.valid.Next(rows, b.fields); err != nil {
			return 0, nil, err
		}
		t.weigh(b, t.valid.Rows())
		if err := b.Run(); err != nil {
			return 0, nil, err
		}
		sum += float64(b.loss[0])
		for _, name := range t.g.metrics {
			metrics[name] += float64(b.Output(name).Float32s()[0])
		}
	}
	return sum, metrics, nil
}

// keepBest remembers the parameters that change.
func (t *Trainer) keepBest() {
	for _, s := range t.params.Segments() {
		if s.Role != models.Frozen {
			t.best[s.Role] = append(t.best[s.Role][:0], s.Floats()...)
		}
	}
}

func (t *Trainer) restoreBest() {
	for _, s := range t.params.Segments() {
		if b := t.best[s.Role]; b != nil {
			copy(s.Floats(), b)
		}
	}
}

// Network returns the model in the form that is served, with parameters as inputs and without losses; adapters are still separate.
func (t *Trainer) Network() *models.Network { return t.g.served }

// Params returns the parameters. They are the trainer's and end with it.
func (t *Trainer) Params() *models.Params { return t.params }

// Adapters lists the LoRA adapters; none without LoRA.
func (t *Trainer) Adapters() []lora.Adapter { return t.g.adapters }

// Shards returns over how many parts a batch is split.
func (t *Trainer) Shards() int { return t.shards }

// Config returns the configuration in force.
func (t *Trainer) Config() Config { return t.cfg }

// Rows returns the rows of the training and validation parts.
func (t *Trainer) Rows() (train, valid int) {
	if t.valid != nil {
		valid = t.valid.Rows()
	}
	return t.train.Rows(), valid
}

// Baked returns the trained model as it is served: parameters as initializers that share the trainer's memory, adapters merged.
func (t *Trainer) Baked() (*onnx.Model, error) {
	m, err := t.g.served.Bake(t.params.View)
	if err != nil {
		return nil, err
	}
	return lora.Merge(m)
}

// Samples reads the first rows of the training table, at most n, as one tensor per input of the network: what parity is proved on.
func (t *Trainer) Samples(n int) ([]*tensor.Tensor, error) {
	l, err := dataset.NewLoader(t.rows, dataset.LoaderOptions{})
	if err != nil {
		return nil, err
	}
	n = min(n, l.Rows())
	main := t.programs[min(t.cfg.Batch, t.train.Rows())]
	all := make([]*tensor.Tensor, len(main.fields))
	byName := map[string]*tensor.Tensor{}
	for i, f := range main.fields {
		shape := slices.Clone(f.Shape())
		shape[0] = n
		all[i] = tensor.New(f.DType(), shape...)
		byName[l.Fields()[i]] = all[i]
	}
	if _, err := l.Next(n, all); err != nil {
		return nil, err
	}
	in := make([]*tensor.Tensor, len(t.g.served.Inputs))
	for i, name := range t.g.served.Inputs {
		in[i] = byName[name]
	}
	return in, nil
}

// Close frees programs, parameters and tables.
func (t *Trainer) Close() error {
	var errs []error
	for _, set := range []map[int]*batch{t.programs, t.evals} {
		for _, b := range set {
			errs = append(errs, b.Close())
		}
	}
	if t.sum != nil {
		errs = append(errs, t.sum.Close())
	}
	if t.params != nil {
		errs = append(errs, t.params.Close())
	}
	for _, a := range t.moments {
		errs = append(errs, a.Close())
	}
	for _, d := range t.data {
		errs = append(errs, d.Close())
	}
	t.programs, t.evals, t.sum, t.params, t.moments, t.data = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
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
