package optim

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// ClipGlobalNorm returns the Euclidean norm of all gradients together and the
// scale min(1, maxNorm/norm), and sets GradScale of every group to that scale:
// the next Step multiplies it in, the gradients stay as they are. An earlier
// GradScale is ignored and replaced. maxNorm = +Inf measures without clipping.
//
// The sum runs in float64 in a fixed order (kernel.SumSquares, groups in
// order), so the norm has the same bits on every CPU. PyTorch divides by
// norm + 1e-6; this does not.
//
// If a gradient is not finite the error is a *NonFiniteError and the groups are
// unchanged.
func ClipGlobalNorm(groups []Group, maxNorm float64) (norm, scale float64, err error) {
	if !(maxNorm > 0) {
		return 0, 0, fmt.Errorf("clip gradients: maximal norm %g, want > 0", maxNorm)
	}
	sum := 0.0
	for i := range groups {
		s := kernel.SumSquares(groups[i].Grads)
		if math.IsInf(s, 0) || math.IsNaN(s) {
			return 0, 0, groups[i].nonFinite("gradient", groups[i].Grads)
		}
		sum += s
	}
	norm, scale = math.Sqrt(sum), 1
	if norm > maxNorm {
		// A Group takes 0 for "no scale", so the factor stays a normal number.
		scale = max(maxNorm/norm, 0x1p-126)
	}
	for i := range groups {
		groups[i].GradScale = float32(scale)
	}
	return norm, scale, nil
}
