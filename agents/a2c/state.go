package a2c

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries beside arrays.
type state struct {
	Updates int64 `json:"updates"`
}

// unfinished is a rollout that is not learnt from yet. There is none between an update and the
// round after it. Pages are the bank's: features in other chunks would have other last bits.
type unfinished struct {
	Rounds int         `json:"rounds"`
	Pages  []savedPage `json:"pages,omitempty"`
}

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{Updates: l.updates})
	network.SaveParams(w.Scope("params"), l.params.Segments()...)
	network.SaveOptimizer(w.Scope("optim"), l.opt)
	if l.rec.t > 0 {
		u := unfinished{Rounds: l.rec.t}
		if l.rec.bank != nil {
			u.Pages = l.rec.bank.saved(l.stamp())
		}
		w.PutJSON("rollout", u)
		l.rec.arrays().Save(w.Scope("rollout"))
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
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
	var u unfinished
	if r.Has("rollout") {
		if err := r.JSON("rollout", &u); err != nil {
			return err
		}
		if u.Rounds < 1 || u.Rounds > l.rec.rounds {
			return fmt.Errorf("a2c: restore: %d rounds of a rollout of %d", u.Rounds, l.rec.rounds)
		}
	}
	l.rec.clear()
	l.rec.t = u.Rounds
	if u.Rounds > 0 {
		if err := l.rec.arrays().Load(r.Scope("rollout")); err != nil {
			return err
		}
	}
	l.updates = s.Updates
	l.replaced++
	if l.rec.bank != nil {
		return l.rec.bank.restore(u.Pages, l.stamp())
	}
	return nil
}
