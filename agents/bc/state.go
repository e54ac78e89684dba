package bc

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// state is what a learner carries between its steps, beside arrays.
type state struct {
	Rounds  int64       `json:"rounds"`
	Updates int64       `json:"updates"`
	Stream  *rng.Stream `json:"stream"`
}

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{l.Stepped, l.Updates, &l.stream})
	l.SavePending(w, &l.sum)
	network.SaveParams(w.Scope("params"), l.Params)
	network.SaveOptimizer(w.Scope("optim"), l.ActorDescent.Optimizer)
	return l.Buffer.SaveState(w.Scope("replay"))
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	s := state{Stream: &rng.Stream{}}
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := l.LoadPending(r, &l.sum); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), l.Params); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), l.ActorDescent.Optimizer); err != nil {
		return err
	}
	if err := l.Buffer.LoadState(r.Scope("replay")); err != nil {
		return err
	}
	l.Stepped, l.Updates, l.stream = s.Rounds, s.Updates, *s.Stream
	clear(l.metrics)
	return nil
}
