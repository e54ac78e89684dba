package offpolicy

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

var _ checkpoint.Stater = (*Learner)(nil)

// state is what a learner carries, beside arrays.
type state struct {
	Updates int64    `json:"updates"`
	Stepped int64    `json:"stepped"`
	Streams *rng.Set `json:"streams"`
	Ended   bool     `json:"ended,omitempty"`
}

// SaveState implements checkpoint.Stater: parameters, target networks, the optimisers of actor and
// critics, streams, the replay, and how far a learner step has come that was stopped.
func (l *Learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{l.Updates, l.Stepped, l.streams, l.EpisodeEnded})
	l.SavePending(w, l.Sums)
	l.Sources.save(w)
	network.SaveParams(w.Scope("params"), l.Params)
	network.SaveOptimizer(w.Scope("optim").Scope("actor"), l.ActorDescent.Optimizer)
	network.SaveOptimizer(w.Scope("optim").Scope("critic"), l.CriticDescent.Optimizer)
	if err := l.Constraints.save(w); err != nil {
		return err
	}
	if err := l.Diversity.SaveState(w.Scope("diversity")); err != nil {
		return err
	}
	return l.Buffer.SaveState(w.Scope("replay"))
}

// LoadState implements checkpoint.Stater.
func (l *Learner) LoadState(r *checkpoint.Reader) error {
	s := state{Streams: l.streams}
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := l.LoadPending(r, l.Sums); err != nil {
		return err
	}
	if err := l.Sources.load(r); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), l.Params); err != nil {
		return err
	}
	if err := l.frozen.Reload(); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim").Scope("actor"), l.ActorDescent.Optimizer); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim").Scope("critic"), l.CriticDescent.Optimizer); err != nil {
		return err
	}
	if err := l.Constraints.load(r); err != nil {
		return err
	}
	if err := l.Diversity.LoadState(r.Scope("diversity")); err != nil {
		return err
	}
	if err := l.Buffer.LoadState(r.Scope("replay")); err != nil {
		return err
	}
	l.Updates, l.Stepped, l.EpisodeEnded = s.Updates, s.Stepped, s.Ended
	return nil
}
