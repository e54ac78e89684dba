package a2c

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries beside arrays.
type state struct {
	Updates int64 `json:"updates"`
}

// unfinished is a rollout that is not learnt from yet. Pages are the bank's: features in other
// chunks would have other last bits.
type unfinished struct {
	onpolicy.Recorded
	Pages []savedPage `json:"pages,omitempty"`
}

// arrays lists what is recorded of a rollout.
func (l *learner) arrays() network.Arrays {
	r := l.Rollout
	list := r.Arrays()
	n := r.T * r.Envs
	list["earned"] = r.Earned[:n]
	columns := map[string]*onpolicy.Column{"mask": r.Mask, "actions": r.Actions}
	for i, c := range r.Fields {
		columns[fmt.Sprintf("obs/%d", i)] = c
	}
	for name, c := range columns {
		if c == nil {
			continue
		}
		for t := range r.T {
			list[fmt.Sprintf("%s/%d", name, t)] = c.Data[t*r.Envs*c.Size : (t+1)*r.Envs*c.Size]
		}
	}
	if l.bank != nil {
		list["last"] = l.last[:n]
		list["start"] = l.start[:n]
		for i, z := range l.z {
			list[fmt.Sprintf("features/%d", i)] = z[:n*l.bank.rows.series*l.bank.width]
		}
	}
	if l.logMu != nil {
		list["log_mu"] = l.logMu[:n]
	}
	return list
}

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	l.Save(w, state{l.Updates})
	if l.Rollout.T > 0 {
		u := unfinished{Recorded: onpolicy.Recorded{Rounds: l.Rollout.T}}
		if l.bank != nil {
			u.Pages = l.bank.saved(l.stamp())
		}
		w.PutJSON("rollout", u)
		l.arrays().Save(w.Scope("rollout"))
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	var s state
	if err := l.Load(r, &s); err != nil {
		return err
	}
	var u unfinished
	if err := l.LoadRollout(r, &u, &u.Recorded, l.arrays); err != nil {
		return err
	}
	l.Updates = s.Updates
	if l.bank != nil {
		return l.bank.restore(u.Pages, l.stamp())
	}
	return nil
}
