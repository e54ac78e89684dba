package optim

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// newLAMB is LAMB (You et al. 2020, Algorithm 2) with bias correction: Adam's
// direction plus decay*params, scaled for each group by the trust ratio
// |params| / |direction|, or 1 where either norm is zero. Each group is one
// layer, so Groups does not merge parameters for it.
func newLAMB(c Config) rule {
	var step corrections
	return &method[kernel.LAMBCoef]{
		slots:   []string{"m", "v", "update"},
		scratch: 1,
		begin:   func(t uint64) { step = c.corrections(t) },
		coef: func(g *Group) kernel.LAMBCoef {
			return kernel.LAMBCoef{
				GradScale: g.gradScale(),
				Beta1:     float32(c.Beta1), Beta1C: float32(1 - c.Beta1),
				Beta2: float32(c.Beta2), Beta2C: float32(1 - c.Beta2),
				Eps: float32(step.eps), Step: float32(step.rate), Decay: g.Decay,
			}
		},
		kernel: func(params, grads []float32, s slots, c *kernel.LAMBCoef) {
			kernel.LAMB(params, grads, s[0], s[1], s[2], c)
		},
		after: func(params []float32, s slots, lr float32) {
			ratio := 1.0
			w, u := math.Sqrt(kernel.SumSquares(params)), math.Sqrt(kernel.SumSquares(s[2]))
			if w > 0 && u > 0 {
				ratio = w / u
			}
			kernel.Axpy(params, s[2], float32(-float64(lr)*ratio))
		},
	}
}
