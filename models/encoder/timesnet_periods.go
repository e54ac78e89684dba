package encoder

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Periods returns the periods that the frequencies of a window of so many steps have, the longest
// first: steps, steps/2, steps/3 and so on, rounded down, without repetitions, to 2.
func Periods(steps int) []int {
	var list []int
	for i := 1; i <= steps/2; i++ {
		list = append(list, steps/i)
	}
	return slices.Compact(list)
}

// weigh returns the periods of x [rows, D, W] that are computed, and their weights [rows, 1,
// periods].
func (e *TimesNet) weigh(l *layer.Graph, x onnx.Value) ([]int, onnx.Value) {
	steps := l.Extent(x, 2)
	if e.c.PeriodChoice == PeriodsFrozen {
		frequencies := make([]float64, len(e.c.Periods))
		for i, p := range e.c.Periods {
			frequencies[i] = 1 / float64(p)
		}
		return e.c.Periods, l.Unsqueeze(softmax(l, amplitudes(l, x, frequencies)), 1)
	}
	periods := Periods(steps)
	frequencies := make([]float64, steps/2)
	// Row i says which of the periods the frequency i+1 has.
	have := tensor.New(tensor.Float32, len(frequencies), len(periods))
	for i := range frequencies {
		frequencies[i] = float64(i+1) / float64(steps)
		have.Float32s()[i*len(periods)+slices.Index(periods, steps/(i+1))] = 1
	}
	amplitude := amplitudes(l, x, frequencies)
	if e.c.PeriodChoice == PeriodsBatch {
		_, index := strongest(l, l.Mean(amplitude, 0), e.c.TopK)
		weights := softmax(l, l.Op("Gather", []onnx.Value{amplitude, index}, onnx.AttrInt("axis", 1)))
		return periods, l.Unsqueeze(l.MatMul(weights, l.Op("Gather", []onnx.Value{l.Const(have), index})), 1)
	}
	top, index := strongest(l, amplitude, e.c.TopK)
	return periods, l.MatMul(l.Unsqueeze(softmax(l, top), 1), l.Op("Gather", []onnx.Value{l.Const(have), index}))
}

// strongest returns the k largest elements along the last axis, and where they are.
func strongest(l *layer.Graph, x onnx.Value, k int) (values, index onnx.Value) {
	top := l.OpN("TopK", 2, []onnx.Value{x, l.Ints(k)}, onnx.AttrInt("axis", -1))
	return top[0], top[1]
}

func softmax(l *layer.Graph, x onnx.Value) onnx.Value {
	return l.Op("Softmax", []onnx.Value{x}, onnx.AttrInt("axis", -1))
}

// amplitudes returns the amplitudes [rows, n] of x [rows, D, W] at n frequencies, in cycles per
// step: the mean over channels of the absolute value of the Fourier transform.
func amplitudes(l *layer.Graph, x onnx.Value, frequencies []float64) onnx.Value {
	steps, n := l.Extent(x, 2), len(frequencies)
	waves := tensor.New(tensor.Float32, steps, 2*n)
	for t := range steps {
		for i, f := range frequencies {
			sin, cos := math.Sincos(2 * math.Pi * f * float64(t))
			waves.Float32s()[t*2*n+i], waves.Float32s()[t*2*n+n+i] = float32(cos), float32(-sin)
		}
	}
	parts := l.Split(l.MatMul(x, l.Const(waves)), -1, n, n)
	square := l.Shift(l.Add(l.Square(parts[0]), l.Square(parts[1])), 1e-12)
	return l.Mean(l.Op("Sqrt", []onnx.Value{square}), 1)
}
