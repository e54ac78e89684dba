package td3

import "github.com/onnxrl/onnxrl/models/checkpoint"

// lossEntry is the actor's newest loss, which metrics repeat until its next update. Checkpoints of
// earlier versions do not have it.
const lossEntry = "actor_loss"

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutFloat64s(lossEntry, []float64{l.loss})
	l.SaveNoise(w)
	return l.Learner.SaveState(w)
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	loss := make([]float64, 1)
	if r.Has(lossEntry) {
		if err := r.Float64sInto(lossEntry, loss, 1); err != nil {
			return err
		}
	}
	l.loss = loss[0]
	clear(l.metrics)
	if err := l.LoadNoise(r); err != nil {
		return err
	}
	return l.Learner.LoadState(r)
}
