package network

import (
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// SaveParams puts parameters below the names of the roles of their segments. LoadParams takes them
// out again.
func SaveParams(w *checkpoint.Writer, segments ...*models.Segment) {
	for _, s := range segments {
		p := w.Scope(s.Role.String())
		for i, spec := range s.Specs() {
			p.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
		}
	}
}

// LoadParams overwrites parameters with those that SaveParams put there.
func LoadParams(r *checkpoint.Reader, segments ...*models.Segment) error {
	for _, s := range segments {
		p := r.Scope(s.Role.String())
		for i, spec := range s.Specs() {
			if err := p.Float32sInto(spec.Name, s.View(i).Float32s(), spec.Shape...); err != nil {
				return err
			}
		}
	}
	return nil
}

// SaveOptimizer puts what an optimiser remembers. LoadOptimizer takes it out again.
func SaveOptimizer(w *checkpoint.Writer, o optim.Optimizer) {
	state := o.State()
	for _, slot := range slices.Sorted(maps.Keys(state)) {
		w.PutFloat32s(slot, state[slot])
	}
}

// LoadOptimizer makes an optimiser remember what SaveOptimizer put there.
func LoadOptimizer(r *checkpoint.Reader, o optim.Optimizer) error {
	state := map[string][]float32{}
	for _, slot := range r.Names() {
		v, _, err := r.Float32s(slot)
		if err != nil {
			return err
		}
		state[slot] = v
	}
	return o.SetState(state)
}
