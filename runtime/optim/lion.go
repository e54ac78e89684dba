package optim

import "github.com/onnxrl/onnxrl/runtime/optim/kernel"

// newLion is Lion (Chen et al. 2023) with decoupled decay.
func newLion(c Config) rule {
	return &method[kernel.LionCoef]{
		slots: []string{"m"},
		coef: func(g *Group) kernel.LionCoef {
			return kernel.LionCoef{
				GradScale: g.gradScale(),
				Beta1:     float32(c.Beta1), Beta1C: float32(1 - c.Beta1),
				Beta2: float32(c.Beta2), Beta2C: float32(1 - c.Beta2),
				LR: g.LR, Keep: keep(g),
			}
		},
		kernel: func(params, grads []float32, s slots, c *kernel.LionCoef) {
			kernel.Lion(params, grads, s[0], c)
		},
	}
}
