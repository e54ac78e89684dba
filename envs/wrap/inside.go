package wrap

import "onnxrl/envs"

// Unwrap returns the factory inside.
func (f *factory) Unwrap() envs.Factory { return f.Factory }

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

// StartsWithZeros reports whether zeros stand for the observations before an episode's first one, and not that one itself.
func (w *FrameStack) StartsWithZeros() bool { return w.zero }
