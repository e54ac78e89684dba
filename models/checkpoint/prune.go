package checkpoint

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// DropAfter removes the checkpoints of later steps, for a run that resumes from an older one and
// will write them again.
func (s *Store) DropAfter(step int64) error {
	list, err := List(s.dir)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(list) {
		if e.Step > step {
			if err := s.remove(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes superseded generations, and what KeepLast and KeepBest do not keep.
func (s *Store) prune() error {
	list, err := List(s.dir)
	if err != nil {
		return err
	}
	current := list[:0:0]
	var errs []error
	for i, e := range list {
		if i+1 < len(list) && list[i+1].Step == e.Step {
			errs = append(errs, s.remove(e))
			continue
		}
		current = append(current, e)
	}
	if s.options.KeepLast > 0 && len(current) > s.options.KeepLast {
		old := current[:len(current)-s.options.KeepLast]
		for _, e := range s.withoutBest(old, current) {
			errs = append(errs, s.remove(e))
		}
	}
	return errors.Join(errs...)
}

// withoutBest returns old without those that are among the KeepBest of all. Of equal scores the
// newest is better. A checkpoint whose manifest cannot be read has no score.
func (s *Store) withoutBest(old, all []Entry) []Entry {
	if s.options.KeepBest <= 0 {
		return old
	}
	type scored struct {
		Entry
		score float64
	}
	var ranked []scored
	for _, e := range all {
		if m, _, err := readManifest(e.Path); err == nil && m.Score != nil {
			ranked = append(ranked, scored{e, *m.Score})
		}
	}
	slices.SortFunc(ranked, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.Step, a.Step))
	})
	ranked = ranked[:min(len(ranked), s.options.KeepBest)]
	return slices.DeleteFunc(slices.Clone(old), func(e Entry) bool {
		return slices.ContainsFunc(ranked, func(r scored) bool { return r.Path == e.Path })
	})
}

// remove renames before it deletes, so that a checkpoint is never seen in parts.
func (s *Store) remove(e Entry) error {
	temp := atomicfile.TempName(e.Path)
	if err := s.options.Disk.Rename(e.Path, temp); err != nil {
		return err
	}
	if err := s.options.Disk.SyncDir(filepath.Dir(e.Path)); err != nil {
		return err
	}
	return s.options.Disk.RemoveAll(temp)
}
