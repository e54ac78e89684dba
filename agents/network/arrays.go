package network

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Arrays are what a learner carries, by the names it is saved under: slices of bool, byte, int64,
// float32 or float64.
type Arrays map[string]any

// Save puts all of them into a checkpoint.
func (a Arrays) Save(w *checkpoint.Writer) {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch x := a[name].(type) {
		case []bool:
			w.PutBools(name, x)
		case []byte:
			w.PutBytes(name, x)
		case []int64:
			w.PutInt64s(name, x)
		case []float32:
			w.PutFloat32s(name, x)
		case []float64:
			w.PutFloat64s(name, x)
		default:
			panic(fmt.Sprintf("network: array %q is %T", name, x))
		}
	}
}

// Load overwrites all of them with those that Save put there, which are as long.
func (a Arrays) Load(r *checkpoint.Reader) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch x := a[name].(type) {
		case []bool:
			errs = append(errs, r.BoolsInto(name, x, len(x)))
		case []byte:
			errs = append(errs, r.BytesInto(name, x, len(x)))
		case []int64:
			errs = append(errs, r.Int64sInto(name, x, len(x)))
		case []float32:
			errs = append(errs, r.Float32sInto(name, x, len(x)))
		case []float64:
			errs = append(errs, r.Float64sInto(name, x, len(x)))
		default:
			panic(fmt.Sprintf("network: array %q is %T", name, x))
		}
	}
	return errors.Join(errs...)
}
