package ppo

import (
	"onnxrl/agents/network"
	"onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// counters are what a learner carries between rollouts beside arrays.
type counters struct {
	Updates  int64 `json:"updates"`
	Epochs   int64 `json:"epochs"`
	EnvSteps int64 `json:"env_steps"`
}

// SaveState implements checkpoint.Stater. It is an error while a rollout is being recorded. A memory's states are those of the exploring actor.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	if l.r.t > 0 || l.r.open {
		return errRecording
	}
	w.PutJSON("state", counters{Updates: l.updates, Epochs: l.epochs, EnvSteps: l.envSteps})
	network.SaveParams(w.Scope("params"), l.params.Segments()...)
	network.SaveOptimizer(w.Scope("optim"), l.opt)
	for i, name := range l.g.states {
		w.Scope("memory").PutFloat32s(name, l.r.memory.now[i])
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	if l.r.t > 0 || l.r.open {
		return errRecording
	}
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
	l.updates, l.epochs, l.envSteps = s.Updates, s.Epochs, s.EnvSteps
	l.replaced++
	return nil
}
