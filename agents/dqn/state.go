package dqn

import (
	"maps"
	"slices"

	"onnxrl/models"
	"onnxrl/models/checkpoint"
	"onnxrl/runtime/rng"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries between its steps, beside arrays.
type state struct {
	Rounds  int64       `json:"rounds"`
	Updates int64       `json:"updates"`
	Stream  *rng.Stream `json:"stream"`
}

// SaveState implements checkpoint.Stater. It is an error while a round is being recorded.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{l.rounds, l.updates, &l.stream})
	for _, s := range l.params.Segments() {
		putSegment(w.Scope("params"), s)
	}
	for _, s := range l.ownTarget() {
		putSegment(w.Scope("target"), s)
	}
	opt := l.opt.State()
	for _, name := range slices.Sorted(maps.Keys(opt)) {
		w.Scope("optim").PutFloat32s(name, opt[name])
	}
	return l.rec.SaveState(w.Scope("replay"))
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	s := state{Stream: &rng.Stream{}}
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	for _, seg := range l.params.Segments() {
		if err := getSegment(r.Scope("params"), seg); err != nil {
			return err
		}
	}
	for _, seg := range l.ownTarget() {
		if err := getSegment(r.Scope("target"), seg); err != nil {
			return err
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
	if err := l.rec.LoadState(r.Scope("replay")); err != nil {
		return err
	}
	l.rounds, l.updates, l.stream = s.Rounds, s.Updates, *s.Stream
	return nil
}

// ownTarget lists the segments of the target network that are not the online network's too.
func (l *learner) ownTarget() []*models.Segment {
	return slices.DeleteFunc(slices.Clone(l.target.Segments()), func(s *models.Segment) bool { return s.Role == models.Frozen })
}

func putSegment(w *checkpoint.Writer, s *models.Segment) {
	p := w.Scope(s.Role.String())
	for i, spec := range s.Specs() {
		p.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
	}
}

func getSegment(r *checkpoint.Reader, s *models.Segment) error {
	p := r.Scope(s.Role.String())
	for i, spec := range s.Specs() {
		if err := p.Float32sInto(spec.Name, s.View(i).Float32s(), spec.Shape...); err != nil {
			return err
		}
	}
	return nil
}
