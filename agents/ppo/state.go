package ppo

import (
	"maps"
	"slices"

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
	for _, s := range l.params.Segments() {
		p := w.Scope("params").Scope(s.Role.String())
		for i, spec := range s.Specs() {
			p.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
		}
	}
	opt := l.opt.State()
	for _, name := range slices.Sorted(maps.Keys(opt)) {
		w.Scope("optim").PutFloat32s(name, opt[name])
	}
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
	for _, seg := range l.params.Segments() {
		p := r.Scope("params").Scope(seg.Role.String())
		for i, spec := range seg.Specs() {
			if err := p.Float32sInto(spec.Name, seg.View(i).Float32s(), spec.Shape...); err != nil {
				return err
			}
		}
	}
	opt := map[string][]float32{}
	for _, name := range r.Scope("optim").Names() {
		v, _, err := r.Scope("optim").Float32s(name)
		if err != nil {
			return err
		}
		opt[name] = v
	}
	if err := l.opt.SetState(opt); err != nil {
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
