package ppo

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
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
// stopped. There is none between an update and the round after it.
type unfinished struct {
	Rounds   int      `json:"rounds"`
	Position position `json:"position"`
}

// arrays lists what a rollout holds of the rounds that are recorded, and what an update holds that
// has begun.
func (l *learner) arrays() network.Arrays {
	r := l.r
	n := r.t * r.envs
	list := network.Arrays{
		"log_prob": r.logProb[:n], "begins": r.begins[:n], "reward": r.reward[:n], "discount": r.discount[:n], "value": r.value[:n], "final": r.final[:n], "ended": r.ended[:n],
	}
	for _, c := range r.columns() {
		if c.window != nil {
			list["column/"+c.name] = c.rows[:n]
		} else {
			list["column/"+c.name] = c.data[:n*c.size]
		}
	}
	for i, x := range r.initial {
		list["initial/"+l.g.states[i]] = x[:(r.t+r.length-1)/r.length*r.envs*l.g.sizes[i]]
	}
	if r.full() {
		list["bootstrap"] = r.bootstrap
	}
	if l.at.Begun {
		list["advantage"], list["target"] = l.advantage, l.target
	}
	return list
}

// SaveState implements checkpoint.Stater. A memory's states are those of the exploring actor.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", counters{Updates: l.updates, Epochs: l.epochs, EnvSteps: l.envSteps})
	network.SaveParams(w.Scope("params"), l.params.Segments()...)
	network.SaveOptimizer(w.Scope("optim"), l.opt)
	for i, name := range l.g.states {
		w.Scope("memory").PutFloat32s(name, l.r.memory.now[i])
	}
	if l.r.t > 0 {
		w.PutJSON("rollout", unfinished{l.r.t, l.at})
		l.arrays().Save(w.Scope("rollout"))
		if l.at.Begun {
			w.PutFloat64s("sums", l.sums.values())
		}
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	var s counters
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), l.params.Segments()...); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), l.opt); err != nil {
		return err
	}
	for i, name := range l.g.states {
		now := l.r.memory.now[i]
		if err := r.Scope("memory").Float32sInto(name, now, len(now)); err != nil {
			return err
		}
	}
	var u unfinished
	if r.Has("rollout") {
		if err := r.JSON("rollout", &u); err != nil {
			return err
		}
		if u.Rounds < 1 || u.Rounds > l.r.rounds {
			return fmt.Errorf("ppo: restore: %d rounds of a rollout of %d", u.Rounds, l.r.rounds)
		}
	}
	l.r.clear()
	l.r.t, l.at = u.Rounds, u.Position
	if u.Rounds > 0 {
		if err := l.arrays().Load(r.Scope("rollout")); err != nil {
			return err
		}
	}
	if l.at.Begun {
		values := l.sums.values()
		if err := r.Float64sInto("sums", values, len(values)); err != nil {
			return err
		}
		l.sums.set(values)
	}
	l.updates, l.epochs, l.envSteps = s.Updates, s.Epochs, s.EnvSteps
	l.replaced++
	return nil
}
