package serve

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// replay runs a session on golden inputs and compares what it gives.
func replay(ctx context.Context, s engine.Session, g *artifact.Golden) error {
	if g == nil {
		return nil
	}
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, p := range s.Inputs() {
		in[i] = g.Inputs[p.Name]
		if in[i] == nil {
			return fmt.Errorf("golden input %q is missing", p.Name)
		}
	}
	out, err := engine.Run(ctx, s, in...)
	if err != nil {
		return fmt.Errorf("run on golden inputs: %w", err)
	}
	tolerance := g.Tolerance
	if tolerance == 0 {
		tolerance = artifact.DefaultTolerance
	}
	for _, name := range slices.Sorted(maps.Keys(g.Outputs)) {
		i := slices.IndexFunc(s.Outputs(), func(p engine.Port) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: there is no output %q", artifact.ErrGolden, name)
		}
		if err := agree(out[i], g.Outputs[name], tolerance); err != nil {
			return fmt.Errorf("%w: output %q: %w", artifact.ErrGolden, name, err)
		}
	}
	return nil
}

// agree compares float32 and float64 within a tolerance of |Δ| / (1 + |y|) and everything else
// exactly.
func agree(got, want *tensor.Tensor, tolerance float64) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("got %v, expected %v", got, want)
	}
	switch want.DType() {
	case tensor.Float32:
		return agreeFloats(got.Float32s(), want.Float32s(), tolerance)
	case tensor.Float64:
		return agreeFloats(got.Float64s(), want.Float64s(), tolerance)
	case tensor.Float16:
		return agreeFloats(halfs(got, tensor.Float16ToFloat32), halfs(want, tensor.Float16ToFloat32), tolerance)
	case tensor.BFloat16:
		return agreeFloats(halfs(got, tensor.BFloat16ToFloat32), halfs(want, tensor.BFloat16ToFloat32), tolerance)
	case tensor.String:
		if !slices.Equal(got.Strings(), want.Strings()) {
			return fmt.Errorf("the strings differ")
		}
	default:
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			return fmt.Errorf("the values differ")
		}
	}
	return nil
}

func agreeFloats[T float32 | float64](got, want []T, tolerance float64) error {
	for i, w := range want {
		g := got[i]
		if g == w || g != g && w != w {
			continue
		}
		if d := math.Abs(float64(g) - float64(w)); !(d <= tolerance*(1+math.Abs(float64(w)))) {
			return fmt.Errorf("element %d is %v, expected %v within %v", i, g, w, tolerance)
		}
	}
	return nil
}

func halfs(t *tensor.Tensor, widen func(uint16) float32) []float32 {
	list := make([]float32, t.Len())
	for i, h := range tensor.Data[uint16](t) {
		list[i] = widen(h)
	}
	return list
}
