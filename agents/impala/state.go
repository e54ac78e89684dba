package impala

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// counters are what a learner carries beside arrays.
type counters struct {
	Updates int64 `json:"updates"`
}

// unfinished is a rollout that is not learnt from yet, and how far an update has come that was
// stopped.
type unfinished struct {
	onpolicy.Recorded
	Position *position `json:"position"`
}

// arrays lists what a rollout holds of the rounds that are recorded.
func (l *learner) arrays() network.Arrays {
	r := l.Rollout
	list := r.Arrays()
	n := r.T * r.Envs
	list["earned"], list["log_mu"] = r.Earned[:n], l.logMu[:n]
	for _, c := range append([]*onpolicy.Column{r.Actions, r.Mask}, r.Fields...) {
		switch {
		case c == nil:
		case c.Window != nil:
			list["column/"+c.Name] = c.Rows[:n]
		default:
			list["column/"+c.Name] = c.Data[:n*c.Size]
		}
	}
	return list
}

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	l.Save(w, counters{l.Updates})
	if l.Rollout.T > 0 {
		w.PutJSON("rollout", unfinished{onpolicy.Recorded{Rounds: l.Rollout.T}, &l.at})
		l.arrays().Save(w.Scope("rollout"))
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	var s counters
	if err := l.Load(r, &s); err != nil {
		return err
	}
	l.at = position{}
	u := unfinished{Position: &l.at}
	if err := l.LoadRollout(r, &u, &u.Recorded, l.arrays); err != nil {
		return err
	}
	l.Updates = s.Updates
	return nil
}
