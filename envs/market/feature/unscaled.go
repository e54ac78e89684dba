package feature

import "math"

// Unscaled writes a row as somebody has it who knows no statistics, in float32: the values that
// [Stream.Next] gave, and NaN in every column but the listed flag where it is not defined. An
// exported agent takes such rows and scales them itself.
func (f *Features) Unscaled(row []float64, defined bool, out []float32) {
	for i, v := range row[:len(f.columns)] {
		if !defined && f.columns[i].Group != Listed {
			v = math.NaN()
		}
		out[i] = float32(v)
	}
}
