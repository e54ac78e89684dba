package a2c

import (
	"onnxrl/agents/network"
	"onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries between rollouts, beside arrays.
type state struct {
	Updates int64 `json:"updates"`
}

// SaveState implements checkpoint.Stater. It is an error while a rollout is being recorded: its features and values belong to chunks that a resumed run would compute elsewhere, and so to other last bits.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	if l.rec.t > 0 || l.rec.open {
		return errRecording
	}
	w.PutJSON("state", state{Updates: l.updates})
	network.SaveParams(w.Scope("params"), l.params.Segments()...)
	network.SaveOptimizer(w.Scope("optim"), l.opt)
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	if l.rec.t > 0 || l.rec.open {
		return errRecording
	}
	var s state
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), l.params.Segments()...); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), l.opt); err != nil {
		return err
	}
	l.updates = s.Updates
	l.replaced++
	return nil
}
