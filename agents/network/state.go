package network

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// baseEntry has the identity of the base, beside the parameters.
const baseEntry = "base_identity"

// baseIdentity says which base adapters belong to: Configured is that of the configuration, SHA256
// that with which they are used.
type baseIdentity struct {
	Configured string `json:"configured_sha256"`
	SHA256     string `json:"sha256"`
}

// SaveParams puts parameters below the names of their roles, but those of the roles that are left
// out. LoadParams takes them out again.
func SaveParams(w *checkpoint.Writer, p *models.Params, without ...models.Role) {
	for _, s := range p.Segments() {
		if slices.Contains(without, s.Role) {
			continue
		}
		if s.Role == models.Base {
			w.PutJSON(baseEntry, baseIdentity{p.Configured, s.Sum()})
		}
		part := w.Scope(s.Role.String())
		for i, spec := range s.Specs() {
			part.PutFloat32s(spec.Name, s.View(i).Float32s(), spec.Shape...)
		}
	}
}

// LoadParams overwrites parameters with those that SaveParams put there. Adapters of another base
// than that which the configuration names, or than that which is shared with others, are an error.
func LoadParams(r *checkpoint.Reader, p *models.Params, without ...models.Role) error {
	for _, s := range p.Segments() {
		if slices.Contains(without, s.Role) {
			continue
		}
		part := r.Scope(s.Role.String())
		if s.Role == models.Base {
			if err := loadBase(r, part, p, s); err != nil {
				return err
			}
			continue
		}
		for i, spec := range s.Specs() {
			if err := part.Float32sInto(spec.Name, s.View(i).Float32s(), spec.Shape...); err != nil {
				return err
			}
		}
	}
	return nil
}

func loadBase(r, part *checkpoint.Reader, p *models.Params, s *models.Segment) error {
	var saved baseIdentity
	if err := r.JSON(baseEntry, &saved); err != nil {
		return err
	}
	if saved.Configured != p.Configured {
		return fmt.Errorf("the saved adapters belong to another base: an encoder that begins with SHA-256 %s, and the one of agent.encoder begins with %s", saved.Configured, p.Configured)
	}
	shared := p.Shared(s)
	if have := s.Sum(); shared && saved.SHA256 != have {
		return fmt.Errorf("the saved adapters belong to another base: an encoder of SHA-256 %s, and the one that this agent shares with others is %s", saved.SHA256, have)
	}
	for i, spec := range s.Specs() {
		to := s.View(i).Float32s()
		if shared {
			// Others may be reading it.
			to = make([]float32, len(to))
		}
		if err := part.Float32sInto(spec.Name, to, spec.Shape...); err != nil {
			return err
		}
	}
	if have := s.Sum(); have != saved.SHA256 {
		return fmt.Errorf("the base of the adapters has SHA-256 %s, expected %s, which they were saved with", have, saved.SHA256)
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
