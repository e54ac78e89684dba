package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// randomOps draw in every run.
var randomOps = []string{"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}

// checkDeterministic refuses a full-batch run of a graph that draws random numbers.
func (t *Trainer) checkDeterministic() error {
	if t.cfg.FullBatch == nil {
		return nil
	}
	return t.g.train.Model.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if slices.Contains(randomOps, n.OpType) {
				return fmt.Errorf("full_batch: %s draws random numbers, so that the loss is not a function of the parameters, which %s needs", n.Describe(), t.cfg.FullBatch.Method)
			}
		}
		return nil
	})
}

// runFullBatch trains on all rows at once until the method ends or ctx does.
func (t *Trainer) runFullBatch(ctx context.Context) (Result, error) {
	trainable := t.params.Segment(models.Trainable).Floats()
	done := 0
	var err error
	if !t.s.Done {
		best := slices.Clone(trainable)
		var r fullbatch.Result
		r, err = fullbatch.Minimize(ctx, best, func(params, grads []float32) (float64, error) {
			copy(trainable, params)
			loss, err := t.wholeLoss(ctx, grads)
			if err == nil {
				done++
			}
			return loss, err
		}, *t.cfg.FullBatch, fullbatch.Hooks{Journal: &t.journal, Iteration: func(it fullbatch.Iteration) error {
			copy(trainable, best)
			return t.endIteration(it)
		}})
		copy(trainable, best)
		if err == nil {
			err = t.endFullBatch(ctx, r)
		}
	}
	res := Result{Steps: t.s.Step, Rows: int64(done) * int64(t.train.Rows()), Loss: orNaN(t.s.Loss), Validation: orNaN(t.s.Validation), FullBatch: t.s.FullBatch}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		res.Stopped = Interrupted
		err = t.save(nil)
	}
	if err != nil {
		err = fmt.Errorf("fit: iteration %d: %w", t.s.Step, err)
	}
	return res, err
}

// wholeLoss returns the loss over all training rows with the current parameters, in the order of
// the table and a batch at a time, and writes its gradient to grads unless that is nil.
func (t *Trainer) wholeLoss(ctx context.Context, grads []float32) (float64, error) {
	if err := t.train.Seek(dataset.State{}); err != nil {
		return 0, err
	}
	total, sum := t.train.Rows(), 0.0
	for first := true; t.train.Left() > 0; first = false {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := t.training.of(t.train.Left())
		if err := b.load(t.train, total); err != nil {
			return 0, err
		}
		if err := b.Run(); err != nil {
			return 0, err
		}
		sum += float64(b.loss[0])
		if grads != nil {
			t.accumulate(first)
		}
	}
	switch {
	case grads == nil:
	case t.sum != nil:
		copy(grads, t.sum.Floats())
	default:
		copy(grads, t.grads.Floats())
	}
	return sum, nil
}

// endIteration tells the hooks and saves.
func (t *Trainer) endIteration(it fullbatch.Iteration) error {
	t.s.Step, t.s.Loss = int64(it.Number), &it.Loss
	if t.hooks.Step != nil {
		t.hooks.Step(Progress{Step: t.s.Step, TotalSteps: t.steps, Rows: int64(it.Evaluations) * int64(t.train.Rows()), Loss: it.Loss, LR: math.NaN(), GradNorm: it.GradNorm,
			Validation: orNaN(t.s.Validation), Evaluations: it.Evaluations})
	}
	if t.hooks.Metrics != nil && t.s.Step%int64(t.cfg.LogEvery) == 0 {
		clear(t.values)
		t.values["train/loss"], t.values["train/evaluations"] = it.Loss, float64(it.Evaluations)
		if t.cfg.FullBatch.Method != "cmaes" {
			t.values["train/grad_norm"], t.values["train/grad_max"] = it.GradNorm, it.GradMax
		}
		t.hooks.Metrics(t.s.Step, t.values)
	}
	if it.Restarted || t.s.Step%int64(t.cfg.Checkpoint.Every) == 0 {
		return t.save(nil)
	}
	return nil
}

// endFullBatch validates the weights found and saves.
func (t *Trainer) endFullBatch(ctx context.Context, r fullbatch.Result) error {
	var score *float64
	if t.valid != nil {
		v, metrics, err := t.Validate(ctx)
		if err != nil {
			return err
		}
		neg := -v
		t.s.Validation, score = &v, &neg
		if t.hooks.Metrics != nil {
			clear(t.values)
			t.values["eval/loss"] = v
			for k, x := range metrics {
				t.values["eval/"+k] = x
			}
			t.hooks.Metrics(t.s.Step, t.values)
		}
	}
	if r.Stalled {
		t.hooks.Log.Warn("the method found no better point and has kept the best; that is normal close to a minimum, where float32 resolves nothing smaller", "method", t.cfg.FullBatch.Method, "status", r.Status, "loss", r.Loss)
	} else if !r.Converged {
		t.hooks.Log.Warn("a limit ended the run before it converged", "method", t.cfg.FullBatch.Method, "status", r.Status)
	}
	t.s.Loss, t.s.Done, t.s.FullBatch = &r.Loss, true, &r
	return t.save(score)
}

func (t *Trainer) saveJournal(w *checkpoint.Writer) {
	j := t.journal
	w.PutJSON("at", []int{j.Iterations, j.Evaluations, j.Told, len(j.Points), len(j.Grads)})
	if j.Start == nil {
		return
	}
	w.PutFloat32s("start", j.Start)
	if len(j.Points) > 0 {
		w.PutUint64s("points", j.Points)
		w.PutUint64s("losses", j.Losses)
	}
	if len(j.Grads) > 0 {
		w.PutFloat32s("grads", j.Grads)
	}
	if p := j.Pairs; len(p.X) > 0 {
		pairs := w.Scope("pairs")
		pairs.PutJSON("at", p.PairsState)
		pairs.PutFloat64s("x", p.X)
		pairs.PutFloat32s("grads", p.Grads)
	}
}

func (t *Trainer) loadJournal(r *checkpoint.Reader) error {
	var at [5]int
	if err := r.JSON("at", &at); err != nil {
		return err
	}
	j := fullbatch.Journal{Iterations: at[0], Evaluations: at[1], Told: at[2]}
	if at[3] < 0 || at[4] < 0 {
		return fmt.Errorf("the journal has %d points and %d gradients", at[3], at[4])
	}
	if r.Has("start") {
		j.Start = make([]float32, len(t.params.Segment(models.Trainable).Floats()))
		if err := r.Float32sInto("start", j.Start); err != nil {
			return err
		}
	}
	if at[3] > 0 {
		j.Points, j.Losses = make([]uint64, at[3]), make([]uint64, at[3])
		if err := errors.Join(r.Uint64sInto("points", j.Points), r.Uint64sInto("losses", j.Losses)); err != nil {
			return err
		}
	}
	if at[4] > 0 {
		j.Grads = make([]float32, at[4])
		if err := r.Float32sInto("grads", j.Grads); err != nil {
			return err
		}
	}
	if p := r.Scope("pairs"); p.Has("x") {
		err := p.JSON("at", &j.Pairs.PairsState)
		if err == nil {
			j.Pairs.X, _, err = p.Float64s("x")
		}
		if err == nil {
			j.Pairs.Grads, _, err = p.Float32s("grads")
		}
		if err != nil {
			return err
		}
	}
	t.journal = j
	return nil
}
