package td3

import (
	"maps"
	"slices"

	"onnxrl/models/checkpoint"
	"onnxrl/runtime/optim"
	"onnxrl/runtime/rng"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries, beside arrays.
type state struct {
	Updates int64    `json:"updates"`
	Stepped int64    `json:"stepped"`
	Streams *rng.Set `json:"streams"`
}

// optimisersByName lists the optimisers under the names of their states.
func (l *learner) optimisersByName() map[string]optim.Optimizer {
	return map[string]optim.Optimizer{"actor": l.actorHalf.opt, "critic": l.criticHalf.opt}
}

// SaveState implements checkpoint.Stater: parameters, target networks, optimisers, streams, the noise of exploration and the replay.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{l.updates, l.stepped, l.streams})
	for _, s := range l.params.Segments() {
		p := w.Scope("params").Scope(s.Role.String())
		for i, spec := range s.Specs() {
			p.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
		}
	}
	w.PutFloat32s("action_noise", l.rec.noise.x)
	list := l.optimisersByName()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		part, values := w.Scope("optim").Scope(name), list[name].State()
		for _, slot := range slices.Sorted(maps.Keys(values)) {
			part.PutFloat32s(slot, values[slot])
		}
	}
	return l.rec.SaveState(w.Scope("replay"))
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	s := state{Streams: l.streams}
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
	if err := r.Float32sInto("action_noise", l.rec.noise.x, len(l.rec.noise.x)); err != nil {
		return err
	}
	for name, o := range l.optimisersByName() {
		part, values := r.Scope("optim").Scope(name), map[string][]float32{}
		for _, slot := range part.Names() {
			v, _, err := part.Float32s(slot)
			if err != nil {
				return err
			}
			values[slot] = v
		}
		if err := o.SetState(values); err != nil {
			return err
		}
	}
	if err := l.rec.LoadState(r.Scope("replay")); err != nil {
		return err
	}
	l.updates, l.stepped = s.Updates, s.Stepped
	return nil
}
