package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Verified says what was compared of one version.
type Verified struct {
	// Version is what could be read of it: at least the digest.
	Version Version
	// Files and Bytes count what was compared with its digest, image manifest and manifest
	// included.
	Files int
	Bytes int64
	// Golden counts the values of outputs that were compared with the golden ones, 0 where there
	// are none or no engine was given; Worst is the largest |Δ| / (1 + |y|).
	Golden int
	Worst  float64
	// Err is what is wrong with it.
	Err error
}

// Verify compares every file of the versions with its digest and, with an engine, what the models
// give with the golden outputs. Without references it verifies everything that the store lists. It
// goes on after an error; the error joins those of all versions.
func (s *Store) Verify(ctx context.Context, c engine.Compiler, refs ...string) ([]Verified, error) {
	list, err := s.verify(ctx, c, refs)
	errs := []error{err}
	for _, v := range list {
		errs = append(errs, v.Err)
	}
	if err := errors.Join(errs...); err != nil {
		return list, fmt.Errorf("verify %s: %w", s.dir, err)
	}
	return list, nil
}

func (s *Store) verify(ctx context.Context, c engine.Compiler, refs []string) ([]Verified, error) {
	var list []Verified
	if err := s.alive(); err != nil {
		return nil, err
	}
	if len(refs) > 0 {
		for _, ref := range refs {
			v, err := s.Resolve(ref)
			if err != nil {
				list = append(list, Verified{Err: err})
				continue
			}
			list = append(list, s.verifyVersion(ctx, c, v))
		}
		return list, ctx.Err()
	}
	index, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	for _, e := range entries(index) {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		v, err := s.load(e)
		switch {
		case errors.Is(err, errForeign):
		case err != nil:
			list = append(list, Verified{Version: v, Err: err})
		default:
			list = append(list, s.verifyVersion(ctx, c, v))
		}
	}
	return list, nil
}

// verifyVersion verifies what load has not: the files and the golden outputs.
func (s *Store) verifyVersion(ctx context.Context, c engine.Compiler, v Version) Verified {
	r := Verified{Version: v, Files: 2, Bytes: v.size + v.config}
	for _, f := range v.Files {
		if err := s.verifyBlob(ctx, f.desc); err != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("%s: file %q: %w", v, f.Title, err))
			continue
		}
		r.Files++
		r.Bytes += f.Size
	}
	if c != nil && r.Err == nil {
		r.Golden, r.Worst, r.Err = v.CheckGolden(ctx, c)
	}
	return r
}
