package artifact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/configs"
)

// Resolve finds the version that a reference means. The reference names no store. The error is an
// [ErrNotFound] that says what there is instead.
func (s *Store) Resolve(ref string) (Version, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return Version{}, err
	}
	if r.Store != "" {
		return Version{}, fmt.Errorf("artefact reference %q: it names the store %s, and %s is asked", ref, r.Store, s.dir)
	}
	return s.ResolveReference(r)
}

// ResolveReference is [Store.Resolve] for a parsed reference, whose Store it ignores.
func (s *Store) ResolveReference(r Reference) (Version, error) {
	v, err := s.resolve(r)
	if err != nil {
		r.Store = ""
		return Version{}, fmt.Errorf("artefact %s in %s: %w", r, s.dir, err)
	}
	return v, nil
}

// Find opens the store of a reference, which is the one given where the reference names none, and
// resolves it there.
func Find(ref, store string) (*Store, Version, error) {
	if err := Unnamed(ref); err != nil {
		return nil, Version{}, err
	}
	r, err := ParseReference(ref)
	if err != nil {
		return nil, Version{}, misplaced(ref, err)
	}
	if r.Store != "" {
		store = r.Store
	}
	s, err := Open(store, Options{MustExist: true})
	if err != nil {
		return nil, Version{}, misplaced(ref, fmt.Errorf("artefact reference %q: %w", ref, err))
	}
	v, err := s.ResolveReference(r)
	return s, v, err
}

// Unnamed is an error where a path is that of a store, with or without "//" behind it, and says which
// artefacts it has; it is nil for all other paths.
func Unnamed(path string) error {
	dir := strings.TrimRight(path, "/")
	s, err := Open(dir, Options{MustExist: true})
	if err != nil {
		return nil // It is something else, or not there.
	}
	defer s.Close() // Nothing was written.
	index, err := s.readIndex()
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is an artefact store; expected %s//NAME: %s", dir, dir, there(entries(index), Reference{}))
}

// misplaced is err, or an error that names the reference that was meant where what comes before a
// stroke is the directory of a store, and not all that comes before two.
func misplaced(ref string, err error) error {
	for i := range ref {
		dir, rest := strings.TrimRight(ref[:i], "/"), strings.TrimLeft(ref[i:], "/")
		if ref[i] != '/' || dir == "" || rest == "" || dir+"//"+rest == ref {
			continue
		}
		if _, bad := ParseReference(dir + "//" + rest); bad != nil {
			continue
		}
		if s, bad := Open(dir, Options{MustExist: true}); bad == nil {
			return errors.Join(fmt.Errorf("artefact reference %q: %s is the store; did you mean %s//%s?", ref, dir, dir, rest), s.Close())
		}
	}
	return err
}

func (s *Store) resolve(r Reference) (Version, error) {
	if err := s.alive(); err != nil {
		return Version{}, err
	}
	index, err := s.readIndex()
	if err != nil {
		return Version{}, err
	}
	list := entries(index)
	if r.Digest != "" {
		return s.byDigest(list, r)
	}
	for _, e := range list {
		if slices.Contains(e.tags, tag(r.Name, r.Alias)) {
			v, err := s.load(e)
			if err == nil && v.Manifest.Name != r.Name {
				err = fmt.Errorf("%w: the alias stands for a version of %s", ErrDamaged, v.Manifest.Name)
			}
			return v, err
		}
	}
	return Version{}, notFound(list, r)
}

// byDigest finds the one version whose digest begins as r's does.
func (s *Store) byDigest(list []entry, r Reference) (Version, error) {
	var found []Version
	for _, e := range list {
		if !strings.HasPrefix(e.desc.Digest.String(), r.Digest) {
			continue
		}
		v, err := s.load(e)
		if errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			return Version{}, err
		}
		if r.Name == "" || v.Manifest.Name == r.Name {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return Version{}, ErrNotFound
	case 1:
		return found[0], nil
	}
	var names []string
	for _, v := range found {
		names = append(names, v.String())
	}
	return Version{}, fmt.Errorf("%w: %d versions have a digest that begins so: %s", ErrNotFound, len(found), strings.Join(names, ", "))
}

// notFound says which aliases, or which artefacts, there are.
func notFound(list []entry, r Reference) error {
	return fmt.Errorf("%w: %s", ErrNotFound, there(list, r))
}

// there says what a store has instead of a reference.
func there(list []entry, r Reference) string {
	var names, aliases []string
	for _, e := range list {
		for _, t := range e.tags {
			name, alias, ok := splitTag(t)
			if !ok {
				continue
			}
			if name == r.Name {
				aliases = append(aliases, alias)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(aliases)
	switch {
	case len(aliases) > 0:
		return "aliases of " + r.Name + ": " + configs.Nearest(r.Alias, aliases)
	case len(names) == 0:
		return "the store is empty"
	}
	return "names in the store: " + configs.Nearest(r.Name, names)
}

// List returns all versions by name and, of one name, in the order of publication. Versions that
// cannot be read are left out, and the error names them.
func (s *Store) List() ([]Version, error) {
	list, err := s.versions()
	if err != nil {
		err = fmt.Errorf("list artefacts in %s: %w", s.dir, err)
	}
	return list, err
}

func (s *Store) versions() ([]Version, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	index, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	var list []Version
	var errs []error
	for _, e := range entries(index) {
		v, err := s.load(e)
		switch {
		case errors.Is(err, errForeign):
		case err != nil:
			errs = append(errs, err)
		default:
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b Version) int {
		if c := strings.Compare(a.Manifest.Name, b.Manifest.Name); c != 0 {
			return c
		}
		return a.Published.Compare(b.Published)
	})
	return list, errors.Join(errs...)
}

// Alias moves an alias to the version that a reference means; the alias is one of that version's
// artefact.
func (s *Store) Alias(ctx context.Context, ref, alias string) (Version, error) {
	if err := CheckAlias(alias); err != nil {
		return Version{}, err
	}
	r, err := ParseReference(ref)
	if err != nil {
		return Version{}, err
	}
	var v Version
	// Resolved under the lock: another alias that the reference goes through may be moving.
	err = s.update(ctx, func(index *ocispec.Index) error {
		if v, err = s.ResolveReference(r); err != nil {
			return err
		}
		i := slices.IndexFunc(index.Manifests, func(e ocispec.Descriptor) bool { return e.Digest.String() == v.Digest })
		setTag(index, tag(v.Manifest.Name, alias), index.Manifests[i])
		return nil
	})
	if err != nil {
		return Version{}, fmt.Errorf("move alias %q: %w", alias, err)
	}
	return s.Resolve(v.Digest)
}

// RemoveAlias lets an alias of an artefact stand for nothing; the version that it stood for stays.
// An alias that is not there is an [ErrNotFound].
func (s *Store) RemoveAlias(ctx context.Context, name, alias string) error {
	err := errors.Join(CheckName(name), CheckAlias(alias), s.alive())
	if err == nil {
		err = s.update(ctx, func(index *ocispec.Index) error {
			if !removeTag(index, tag(name, alias)) {
				return notFound(entries(index), Reference{Name: name, Alias: alias})
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("remove alias %s from %s: %w", tag(name, alias), s.dir, err)
	}
	return nil
}
