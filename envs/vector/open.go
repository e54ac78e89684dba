package vector

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Maker is implemented by an envs.Factory whose environments come as whole vectors, because
// stepping them together costs less than stepping one after the other: those of other processes,
// for instance.
type Maker interface {
	// NewVector returns a vector of n environments, the same ones as those of Factory.New with the
	// indices below n, with Options.Limit and Options.Truncate. It follows the rules of the package
	// comment.
	NewVector(split envs.Split, n int, o Options) (Env, error)
}

// Open returns a vector of n environments of a factory, which must outlive it: the factory's own
// kind where it is a Maker, also with wrappers around it (wrap.Apply), and else a Local of its
// environments.
func Open(f envs.Factory, split envs.Split, n int, o Options) (Env, error) {
	if n < 1 {
		return nil, fmt.Errorf("open a vector of %d environments: expected at least 1", n)
	}
	if m, ok := maker(f); ok {
		v, err := m.NewVector(split, n, o)
		if err != nil {
			// A nil pointer of an implementation's would be no nil Env.
			return nil, err
		}
		return v, nil
	}
	list, err := envs.Make(f, split, n)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if t, ok := wrap.Find[envs.Trainee](e); ok && o.Train {
			t.Train()
		}
	}
	v, err := New(list, o)
	if err != nil {
		for _, e := range list {
			err = errors.Join(err, e.Close())
		}
		return nil, err
	}
	return v, nil
}

// SaveState is the SaveState of v, or envs.ErrCannotSave.
func SaveState(v Env) ([]byte, error) {
	if s, ok := v.(Saver); ok {
		return s.SaveState()
	}
	return nil, fmt.Errorf("save a vector of %s: %w", v.Spec().Name, envs.ErrCannotSave)
}

// LoadState is the LoadState of v, or envs.ErrCannotSave.
func LoadState(v Env, data []byte) error {
	if s, ok := v.(Saver); ok {
		return s.LoadState(data)
	}
	return fmt.Errorf("load a vector of %s: %w", v.Spec().Name, envs.ErrCannotSave)
}

// limited returns the environments of a list cut off after limit steps. The list itself stays as it
// is.
func limited(list []envs.Env, limit int) ([]envs.Env, error) {
	cut := make([]envs.Env, len(list))
	for i, e := range list {
		var err error
		if cut[i], err = wrap.NewTimeLimit(e, limit); err != nil {
			return nil, err
		}
	}
	return cut, nil
}
