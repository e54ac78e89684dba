package a2c

import (
	"maps"
	"slices"

	"onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries between rollouts, beside arrays.
type state struct {
	Updates int64 `json:"updates"`
}

// SaveState implements checkpoint.Stater. It is an error while a rollout is being recorded: its features and values belong to chunks that a resumed run would compute elsewhere, and so to other last bits.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	if l.rec.t > 0 || l.rec.open {
		return errRecording
	}
	w.PutJSON("state", state{Updates: l.updates})
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
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	if l.rec.t > 0 || l.rec.open {
		return errRecording
	}
	var s state
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
	l.updates = s.Updates
	l.replaced++
	return nil
}
