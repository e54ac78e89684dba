package vector

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Frozen shows batches of raw observations as a policy sees them that was trained in a [Normalized], by
// statistics that do not change. It is not safe for concurrent use.
type Frozen struct {
	view   *View
	fields []int
	norm   []wrap.Normalizer
}

// NewFrozen returns what shows batches of n rows of environments of a spec, which is theirs and not
// that of the Normalized. The statistics must not change.
func NewFrozen(spec envs.Spec, n int, list []wrap.Normalizer) (*Frozen, error) {
	f := &Frozen{norm: list}
	shown := spec
	shown.Observation = append(envs.Dict{}, spec.Observation...)
	for _, s := range list {
		i := spec.Observation.Index(s.Field)
		if i < 0 || elements(spec.Observation[i].Space) != len(s.Mean) || len(s.Var) != len(s.Mean) {
			return nil, fmt.Errorf("normalize: statistics of %q with %d elements; %s observes %s", s.Field, len(s.Mean), spec.Name, describe(spec.Observation))
		}
		shown.Observation[i].Space = normalized(spec.Observation[i].Space, s.Clip)
		f.fields = append(f.fields, i)
	}
	var err error
	if f.view, err = NewView(shown, n, f.fields, false); err != nil {
		return nil, fmt.Errorf("normalize: %w", err)
	}
	return f, nil
}

// Show returns the batch with the present observations of b normalised, and all else of b. It is
// the same for the life of f; final observations have no meaning in it. It allocates nothing.
func (f *Frozen) Show(b *Batch) *Batch {
	f.view.Follow(b)
	out := f.view.Batch()
	for k, i := range f.fields {
		apply(&f.norm[k], out.Obs[i].Float32s(), b.Obs[i].Float32s(), b.Present)
	}
	return out
}

// Close frees the buffers. It fails, and can be repeated, while a binding still holds them.
func (f *Frozen) Close() error { return f.view.Close() }
