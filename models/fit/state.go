package fit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

var _ checkpoint.Stater = (*Trainer)(nil)

// state is what a run carries between optimiser steps, beside arrays and the position in the data.
type state struct {
	Step int64 `json:"step"`
	// Runs counts the runs of training programs; dropout masks are drawn by it.
	Runs uint64 `json:"runs"`
	// EpochLoss is the sum over the rows of the open epoch; Loss the mean of the last finished one.
	EpochLoss float64  `json:"epoch_loss"`
	Loss      *float64 `json:"loss"`
	// Best is the lowest validation loss, of BestEpoch; Stale counts the epochs since.
	Best       *float64 `json:"best"`
	BestEpoch  int      `json:"best_epoch"`
	Stale      int      `json:"stale"`
	Validation *float64 `json:"validation"`
	// Done says that the run has stopped early.
	Done bool `json:"done"`
	// FullBatch is what a full-batch run that is done came to.
	FullBatch *fullbatch.Result `json:"full_batch,omitempty"`
}

// SaveState writes everything that the next step depends on: changing parameters, the best ones so
// far, optimiser moments, the position in the data and counters.
func (t *Trainer) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", t.s)
	w.PutJSON("position", t.train.State())
	for _, s := range t.params.Segments() {
		if s.Role == models.Frozen {
			continue
		}
		p := w.Scope("params").Scope(s.Role.String())
		for i, spec := range s.Specs() {
			p.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
		}
		if b := t.best[s.Role]; b != nil {
			w.Scope("best").PutFloat32s(s.Role.String(), b)
		}
	}
	if t.cfg.FullBatch != nil {
		t.saveJournal(w.Scope("journal"))
		return nil
	}
	opt := t.opt.State()
	for _, name := range slices.Sorted(maps.Keys(opt)) {
		w.Scope("optim").PutFloat32s(name, opt[name])
	}
	return nil
}

// LoadState restores a saved run. Model, data and configuration must be the ones it was saved with.
func (t *Trainer) LoadState(r *checkpoint.Reader) error {
	var s state
	var at dataset.State
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := r.JSON("position", &at); err != nil {
		return err
	}
	for _, seg := range t.params.Segments() {
		if seg.Role == models.Frozen {
			continue
		}
		p := r.Scope("params").Scope(seg.Role.String())
		for i, spec := range seg.Specs() {
			if err := p.Float32sInto(spec.Name, seg.View(i).Float32s(), spec.Shape...); err != nil {
				return err
			}
		}
		delete(t.best, seg.Role)
		if b := r.Scope("best"); b.Has(seg.Role.String()) {
			best := make([]float32, len(seg.Floats()))
			if err := b.Float32sInto(seg.Role.String(), best); err != nil {
				return err
			}
			t.best[seg.Role] = best
		}
	}
	if t.cfg.FullBatch != nil {
		if err := t.loadJournal(r.Scope("journal")); err != nil {
			return err
		}
		t.s = s
		return nil
	}
	opt := map[string][]float32{}
	for _, name := range r.Scope("optim").Names() {
		v, _, err := r.Scope("optim").Float32s(name)
		if err != nil {
			return err
		}
		opt[name] = v
	}
	if err := t.opt.SetState(opt); err != nil {
		return err
	}
	if err := t.train.Seek(at); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	t.s = s
	return nil
}
