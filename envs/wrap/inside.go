package wrap

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Unwrap returns the factory inside.
func (f *factory) Unwrap() envs.Factory { return f.Factory }

// Wrapper is what [Apply] returns where there are wrappers: a factory whose wrappers can be put
// around other environments of the same kind, such as the rows of a vector.
type Wrapper interface {
	envs.Factory
	// Unwrap returns the factory inside.
	Unwrap() envs.Factory
	// TimeLimit is the number of steps after which episodes are truncated, 0 for none.
	TimeLimit() int
	// Rows reports whether there are wrappers beside the time limit, and Wrap puts them around an
	// environment of a split, which they own from then on. After an error it remains the caller's.
	Rows() bool
	Wrap(e envs.Env, split envs.Split) (envs.Env, error)
}

var _ Wrapper = (*factory)(nil)

// TimeLimit implements Wrapper.
func (f *factory) TimeLimit() int { return f.c.TimeLimit }

// Rows implements Wrapper.
func (f *factory) Rows() bool { return f.rows(envs.Train).any() }

// Wrap implements Wrapper.
func (f *factory) Wrap(e envs.Env, split envs.Split) (envs.Env, error) {
	return wrap(e, f.rows(split))
}

// rows is the section without what vectors do by themselves.
func (f *factory) rows(split envs.Split) Config {
	c := f.on(split)
	c.TimeLimit = 0
	return c
}

// Inward returns the action that the innermost environment of e takes when e takes a: what the
// wrappers make of it. No environment is stepped. The action belongs to a wrapper, which overwrites
// it with the next one, or is a itself. An *envs.ActionError says that a does not lie in e's space,
// where a wrapper looks.
func Inward(e envs.Env, a *tensor.Tensor) (*tensor.Tensor, error) {
	for {
		if c, ok := e.(interface {
			inward(*tensor.Tensor) (*tensor.Tensor, error)
		}); ok {
			var err error
			if a, err = c.inward(a); err != nil {
				return nil, err
			}
		}
		w, ok := e.(interface{ Unwrap() envs.Env })
		if !ok {
			return a, nil
		}
		e = w.Unwrap()
	}
}

// FindFactory looks for a factory of type T: f itself, the one inside it, and so on inwards.
func FindFactory[T any](f envs.Factory) (T, bool) {
	for {
		if t, ok := f.(T); ok {
			return t, true
		}
		w, ok := f.(interface{ Unwrap() envs.Factory })
		if !ok {
			var none T
			return none, false
		}
		f = w.Unwrap()
	}
}

// StartsWithZeros reports whether zeros stand for the observations before an episode's first one,
// and not that one itself.
func (w *FrameStack) StartsWithZeros() bool { return w.zero }
