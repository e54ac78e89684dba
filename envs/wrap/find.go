package wrap

import "github.com/onnxrl/onnxrl/envs"

// Find looks for an environment of type T: e itself, the one inside it, and so on inwards.
func Find[T any](e envs.Env) (T, bool) {
	for {
		if t, ok := e.(T); ok {
			return t, true
		}
		w, ok := e.(interface{ Unwrap() envs.Env })
		if !ok {
			var none T
			return none, false
		}
		e = w.Unwrap()
	}
}
