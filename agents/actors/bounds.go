package actors

import (
	"log/slog"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// bounds are the fields of the observation that are looked at for elements outside of their Box.
// Many environments overstep theirs, and learning goes on; but who has written one, or scales by
// its bounds, is to know. Each field is reported once.
type bounds []field

// field is one of the observation.
type field struct {
	index     int
	name      string
	low, high []float64 // of each element
}

// boundsOf lists the fields of numbers that have a bound. Windows show tables, which never change.
func boundsOf(spec *envs.Spec) (list bounds) {
	for i, f := range spec.Observation {
		box, ok := f.Space.(envs.Box)
		if !ok || f.Window != nil || box.Of == tensor.Uint8 {
			continue
		}
		n := 1
		for _, d := range box.Dims {
			n *= d
		}
		x := field{index: i, name: f.Name}
		some := false
		for k := range n {
			r := box.Bounds(k)
			some = some || r.Low-r.Low == 0 || r.High-r.High == 0
			if box.Of == tensor.Float32 {
				// 0.1 as a float32 lies in a box that ends at 0.1.
				r.Low, r.High = min(r.Low, float64(float32(r.Low))), max(r.High, float64(float32(r.High)))
			}
			x.low, x.high = append(x.low, r.Low), append(x.high, r.High)
		}
		if some {
			list = append(list, x)
		}
	}
	return list
}

// check tells the log of the first element outside of its bounds of each field, which it does not
// look at any more.
func (b *bounds) check(batch *vector.Batch, log *slog.Logger) {
	for i := 0; i < len(*b); i++ {
		f := &(*b)[i]
		at, value := -1, 0.0
		if t := batch.Obs[f.index]; t.DType() == tensor.Float32 {
			at, value = outsideOf(f, t.Float32s(), batch.Present)
		} else {
			at, value = outsideOf(f, t.Float64s(), batch.Present)
		}
		if at < 0 {
			continue
		}
		n := len(f.low)
		log.Warn("an observation lies outside of its bounds, which is reported once", "field", f.name, "environment", at/n, "element", at%n, "value", value, "low", f.low[at%n], "high", f.high[at%n])
		*b = append((*b)[:i:i], (*b)[i+1:]...)
		i--
	}
}

// outsideOf returns the position of the first element outside of its bounds in the rows of a batch
// that are present, or -1.
func outsideOf[T float32 | float64](f *field, x []T, present []bool) (int, float64) {
	n := len(f.low)
	for from := 0; from < len(x); from += n {
		if present != nil && !present[from/n] {
			continue
		}
		for k, v := range x[from : from+n] {
			if w := float64(v); w < f.low[k] || w > f.high[k] {
				return from + k, w
			}
		}
	}
	return -1, 0
}
