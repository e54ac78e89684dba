package ppo

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// counters are what a learner carries beside arrays.
type counters struct {
	Updates  int64 `json:"updates"`
	Epochs   int64 `json:"epochs"`
	EnvSteps int64 `json:"env_steps"`
}

// unfinished is a rollout that is not learnt from yet, and how far an update has come that was
// stopped.
type unfinished struct {
	onpolicy.Recorded
	Position *position `json:"position"`
}

// arrays lists what a rollout holds of the rounds that are recorded, and what an update holds that
// has begun.
func (l *learner) arrays() network.Arrays {
	r := l.Rollout
	list := r.Arrays()
	n := r.T * r.Envs
	list["log_prob"], list["begins"] = l.logProb[:n], l.begins[:n]
	for _, c := range append([]*onpolicy.Column{r.Actions, r.Mask}, r.Fields...) {
		switch {
		case c == nil:
		case c.Window != nil:
			list["column/"+c.Name] = c.Rows[:n]
		default:
			list["column/"+c.Name] = c.Data[:n*c.Size]
		}
	}
	for i, x := range l.initial {
		s := l.g.states[i]
		list["initial/"+s.Name()] = x[:(r.T+l.g.length-1)/l.g.length*r.Envs*s.Len()]
	}
	if l.at.Begun {
		list["advantage"], list["target"] = l.Advantage, l.Target
		for i, c := range r.Channels {
			list[fmt.Sprintf("cost%d/target", i)] = c.Target
		}
	}
	return list
}

// SaveState implements checkpoint.Stater. A memory's states are those of the exploring actor.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	l.Save(w, counters{Updates: l.Updates, Epochs: l.epochs, EnvSteps: l.envSteps})
	for i, s := range l.g.states {
		w.Scope("memory").PutFloat32s(s.Name(), l.states.now[i])
	}
	l.norm.save(w)
	if l.Rollout.T > 0 {
		w.PutJSON("rollout", unfinished{onpolicy.Recorded{Rounds: l.Rollout.T}, &l.at})
		l.arrays().Save(w.Scope("rollout"))
		if l.at.Begun {
			w.PutFloat64s("sums", l.sums.values())
			if l.Rollout.Constraints != nil {
				w.PutFloat64s("cost_sum", []float64{l.sums.cost})
			}
		}
	}
	if s := l.Rollout.Constraints; s != nil {
		return s.SaveState(w.Scope("constraints"))
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	var s counters
	if err := l.Load(r, &s); err != nil {
		return err
	}
	for i, x := range l.g.states {
		now := l.states.now[i]
		if err := r.Scope("memory").Float32sInto(x.Name(), now, len(now)); err != nil {
			return err
		}
	}
	if err := l.norm.load(r); err != nil {
		return err
	}
	l.at = position{}
	u := unfinished{Position: &l.at}
	if err := l.LoadRollout(r, &u, &u.Recorded, l.arrays); err != nil {
		return err
	}
	if l.at.Begun {
		values := l.sums.values()
		if err := r.Float64sInto("sums", values, len(values)); err != nil {
			return err
		}
		l.sums.set(values)
	}
	if s := l.Rollout.Constraints; s != nil {
		if l.at.Begun {
			var sum [1]float64
			if err := r.Float64sInto("cost_sum", sum[:], 1); err != nil {
				return err
			}
			l.sums.cost = sum[0]
		}
		if err := s.LoadState(r.Scope("constraints")); err != nil {
			return err
		}
	}
	l.Updates, l.epochs, l.envSteps = s.Updates, s.Epochs, s.EnvSteps
	return nil
}
