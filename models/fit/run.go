package fit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// Progress is the position of a run after an optimiser step.
type Progress struct {
	Step, TotalSteps int64
	Epoch, Epochs    int
	// Rows trained on so far, over all epochs.
	Rows               int64
	Loss, LR, GradNorm float64
	// Validation is the newest validation loss; NaN before the first.
	Validation float64
	// Evaluations counts the losses of all rows that a full-batch run has computed. Its steps are
	// major iterations, and it has no epochs and no learning rate.
	Evaluations int
}

// Result summarises a finished or stopped run.
type Result struct {
	Steps int64
	// Epochs counts finished epochs.
	Epochs int
	// Rows counts the rows that this call has trained on.
	Rows int64
	// Loss is the mean training loss of the last finished epoch; Validation the newest validation
	// loss. NaN when there is none.
	Loss, Validation float64
	// BestEpoch is the epoch, counted from 1, with the lowest validation loss so far, whose weights
	// the trainer holds after a complete run. It is 0 when there is no validation data and the last
	// weights are kept.
	BestEpoch int
	// Stopped says why a run ended before its last epoch: "" when it did not, or one of the
	// constants.
	Stopped string
	// FullBatch is set when the run was full-batch.
	FullBatch *fullbatch.Result
}

// Why a run ended before its last epoch.
const (
	EarlyStopped = "early stop"
	Interrupted  = "interrupted"
)

// Run trains until the last epoch, an early stop, or the end of ctx, which is no error: the state
// is saved, the result says so, and the run can be resumed. After a complete run with validation
// data, the trainer holds the parameters of the best epoch. An error names the step.
func (t *Trainer) Run(ctx context.Context) (Result, error) {
	if t.cfg.FullBatch != nil {
		return t.runFullBatch(ctx)
	}
	before := t.rowsDone()
	err := t.run(ctx)
	res := Result{
		Steps: t.s.Step, Epochs: t.train.State().Epoch, Rows: t.rowsDone() - before, BestEpoch: t.s.BestEpoch,
		Loss: orNaN(t.s.Loss), Validation: orNaN(t.s.Validation),
	}
	switch {
	case err == nil:
		if t.train.State().Epoch < t.cfg.Epochs {
			res.Stopped = EarlyStopped
		}
		t.restoreBest()
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		res.Stopped = Interrupted
		err = t.save(nil)
	}
	if err != nil {
		err = fmt.Errorf("fit: step %d: %w", t.s.Step, err)
	}
	return res, err
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// rowsDone returns the rows trained on since the beginning of the run.
func (t *Trainer) rowsDone() int64 {
	at := t.train.State()
	return int64(at.Epoch)*int64(t.train.Rows()) + int64(at.Row)
}

// run trains until the run is done. The error of ctx comes only from between steps, where the state
// is whole.
func (t *Trainer) run(ctx context.Context) error {
	for !t.s.Done && t.train.State().Epoch < t.cfg.Epochs {
		for t.train.Left() > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := t.step(); err != nil {
				return err
			}
			if t.s.Step%int64(t.cfg.Checkpoint.Every) == 0 && t.train.Left() > 0 {
				if err := t.save(nil); err != nil {
					return err
				}
			}
		}
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// step trains on one group of batches, updates the parameters and tells the hooks.
func (t *Trainer) step() error {
	at := t.train.State()
	total := min(t.cfg.Batch*t.cfg.Accumulate, t.train.Left())
	sum := 0.0
	for left := total; left > 0; {
		b := t.training.of(left)
		if err := b.load(t.train, total); err != nil {
			return err
		}
		b.drawMasks(t.s.Runs)
		if err := b.Run(); err != nil {
			return err
		}
		t.s.Runs++
		sum += float64(b.loss[0])
		t.accumulate(left == total)
		left -= b.rows
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return t.diverged(fmt.Sprintf("the loss of rows %d to %d of epoch %d is %v", at.Row+1, at.Row+total, at.Epoch+1, sum))
	}
	limit := math.Inf(1)
	if t.cfg.ClipNorm > 0 {
		limit = t.cfg.ClipNorm
	}
	norm, _, err := optim.ClipGlobalNorm(t.groups, limit)
	if err != nil {
		return err
	}
	lr := t.cfg.LearningRateSchedule.Of(t.cfg.Optimizer.LR, t.s.Step, t.steps)
	optim.SetLR(t.groups, lr)
	if err := t.opt.Step(t.groups); err != nil {
		return err
	}
	t.s.Step++
	t.s.EpochLoss += sum * float64(total)
	if t.hooks.Step != nil {
		t.hooks.Step(Progress{Step: t.s.Step, TotalSteps: t.steps, Epoch: at.Epoch + 1, Epochs: t.cfg.Epochs, Rows: t.rowsDone(), Loss: sum, LR: lr, GradNorm: norm,
			Validation: orNaN(t.s.Validation)})
	}
	if t.hooks.Metrics != nil && t.s.Step%int64(t.cfg.LogEvery) == 0 {
		clear(t.values)
		t.values["train/loss"], t.values["train/learning_rate"], t.values["train/grad_norm"] = sum, lr, norm
		t.hooks.Metrics(t.s.Step, t.values)
	}
	return nil
}

// diverged explains a loss that is not finite. Before the first step no setting of the training can be
// why: a weight that came with the model is, or what the model makes of the rows.
func (t *Trainer) diverged(what string) error {
	const trace = "'onnxrl grad trace' finds the first value that is not finite"
	if t.s.Step > 0 {
		return &DivergedError{what + "; lower the learning rate, clip the gradient, or see where it comes from: " + trace}
	}
	for _, s := range t.params.Segments() {
		if err := optim.FindNonFinite("value", s.Floats(), paramsOf(s)); err != nil {
			return fmt.Errorf("%s before anything was trained: the model came with such a weight: %w", what, err)
		}
	}
	return fmt.Errorf("%s before anything was trained: the model makes it of these rows with the weights that it came with; %s", what, trace)
}

// accumulate adds a run's gradients up where several runs make a step.
func (t *Trainer) accumulate(first bool) {
	switch {
	case t.sum == nil:
	case first:
		copy(t.sum.Floats(), t.grads.Floats())
	default:
		program.Add(t.sum.Floats(), t.grads.Floats())
	}
}

// endEpoch validates, notes the best weights, moves on and saves. When ctx ends during validation
// the epoch stays open, and resuming validates again.
func (t *Trainer) endEpoch(ctx context.Context) error {
	epoch := t.train.State().Epoch + 1
	if err := t.checkWeights(); err != nil {
		return err
	}
	mean := t.s.EpochLoss / float64(t.train.Rows())
	clear(t.values)
	t.values["train/epoch_loss"], t.values["time/epoch"] = mean, float64(epoch)
	var score *float64
	if t.valid != nil {
		v, metrics, err := t.Validate(ctx)
		if err != nil {
			return err
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the validation loss of epoch %d is %v", epoch, v)
		}
		t.s.Validation = &v
		neg := -v
		score = &neg
		t.values["eval/loss"] = v
		for k, x := range metrics {
			t.values["eval/"+k] = x
		}
		if t.s.Best == nil || v < *t.s.Best-t.cfg.EarlyStop.MinDelta {
			t.s.Best, t.s.BestEpoch, t.s.Stale = &v, epoch, 0
			t.keepBest()
		} else {
			t.s.Stale++
		}
	}
	t.s.Loss, t.s.EpochLoss = &mean, 0
	t.s.Done = t.cfg.EarlyStop.Patience > 0 && t.s.Stale >= t.cfg.EarlyStop.Patience
	t.train.NextEpoch()
	if t.hooks.Metrics != nil {
		t.hooks.Metrics(t.s.Step, t.values)
	}
	return t.save(score)
}

// save calls the hook, with weights that are worth keeping only.
func (t *Trainer) save(score *float64) error {
	if t.hooks.Save == nil {
		return nil
	}
	if err := t.checkWeights(); err != nil {
		return err
	}
	return t.hooks.Save(t.s.Step, score)
}

// checkWeights names the first parameter or running statistic that is not finite.
func (t *Trainer) checkWeights() error {
	for _, s := range t.params.Segments() {
		if s.Role == models.Frozen {
			continue
		}
		if err := optim.FindNonFinite("value", s.Floats(), paramsOf(s)); err != nil {
			return err
		}
	}
	return nil
}

// Validate returns the loss and metrics over the validation part with the current parameters.
func (t *Trainer) Validate(ctx context.Context) (float64, map[string]float64, error) {
	if t.valid == nil {
		return 0, nil, errors.New("validate: there is no validation data")
	}
	if err := t.valid.Seek(dataset.State{}); err != nil {
		return 0, nil, err
	}
	var sum float64
	metrics := map[string]float64{}
	for t.valid.Left() > 0 {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		b := t.validation.of(t.valid.Left())
		if err := b.load(t.valid, t.valid.Rows()); err != nil {
			return 0, nil, err
		}
		if err := b.Run(); err != nil {
			return 0, nil, err
		}
		sum += float64(b.loss[0])
		for _, m := range b.metrics {
			metrics[m.name] += float64(m.value[0])
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
