package td3

import (
	"fmt"

	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// lossEntry is the actor's newest loss, which metrics repeat until its next update. Checkpoints of
// earlier versions do not have it.
const lossEntry = "actor_loss"

// noiseEntry is the state of the exploration's noise; empty unless it is ou.
const noiseEntry = "action_noise"

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutFloat64s(lossEntry, []float64{l.loss})
	w.PutFloat32s(noiseEntry, l.rec.noise.x)
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
	// Where the kind of noise was edited, that of ou begins at 0.
	x, _, err := r.Float32s(noiseEntry)
	if err != nil {
		return err
	}
	if own := l.rec.noise.x; len(x) != len(own) && min(len(x), len(own)) > 0 {
		return fmt.Errorf("%s: %d numbers in the checkpoint, expected %d", noiseEntry, len(x), len(own))
	}
	clear(l.rec.noise.x)
	copy(l.rec.noise.x, x)
	return l.Learner.LoadState(r)
}
