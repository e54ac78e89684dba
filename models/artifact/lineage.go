package artifact

import (
	"errors"
	"fmt"
)

// Ancestor is a version in the lineage of another.
type Ancestor struct {
	// Digest identifies it, Depth is the least number of steps to it, 0 for the version itself.
	Digest string
	Depth  int
	// Version is nil where no store has it: it was made elsewhere or has been removed. Store is the
	// directory of the store that has it.
	Version *Version
	Store   string
}

// Lineage follows the parents of a version: the version itself first, then its parents in order,
// then theirs, each once. Parents that the store does not have are looked up in the others, in
// order, such as the stores of the training runs that a run began with.
func (s *Store) Lineage(ref string, others ...*Store) ([]Ancestor, error) {
	v, err := s.Resolve(ref)
	if err != nil {
		return nil, err
	}
	list := []Ancestor{{Digest: v.Digest, Version: &v, Store: s.dir}}
	seen := map[string]bool{v.Digest: true}
	for i := 0; i < len(list); i++ {
		a := list[i]
		if a.Version == nil {
			continue
		}
		for _, d := range a.Version.Manifest.Parents {
			if seen[d] {
				continue
			}
			seen[d] = true
			parent := Ancestor{Digest: d, Depth: a.Depth + 1}
			for _, in := range append([]*Store{s}, others...) {
				p, err := in.Resolve(d)
				if err == nil {
					parent.Version, parent.Store = &p, in.dir
					break
				}
				if !errors.Is(err, ErrNotFound) {
					return list, fmt.Errorf("lineage of %s: %w", v, err)
				}
			}
			list = append(list, parent)
		}
	}
	return list, nil
}
