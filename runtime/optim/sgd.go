package optim

import "github.com/onnxrl/onnxrl/runtime/optim/kernel"

// newSGD is stochastic gradient descent, with momentum if there is any. Decay
// is coupled. The momentum buffer starts as the first gradient, undamped, as in
// PyTorch.
func newSGD(c Config) rule {
	if c.Momentum == 0 {
		return &method[kernel.SGDCoef]{
			coef: func(g *Group) kernel.SGDCoef {
				return kernel.SGDCoef{GradScale: g.gradScale(), L2: g.Decay, LR: g.LR}
			},
			kernel: func(params, grads []float32, _ slots, c *kernel.SGDCoef) { kernel.SGD(params, grads, c) },
		}
	}
	update := kernel.Momentum
	if c.Nesterov {
		update = kernel.Nesterov
	}
	var take float32
	return &method[kernel.MomentumCoef]{
		slots: []string{"momentum"},
		begin: func(t uint64) {
			take = 1
			if t > 1 {
				take = float32(1 - c.Dampening)
			}
		},
		coef: func(g *Group) kernel.MomentumCoef {
			return kernel.MomentumCoef{GradScale: g.gradScale(), L2: g.Decay, Momentum: float32(c.Momentum), Take: take, LR: g.LR}
		},
		kernel: func(params, grads []float32, s slots, c *kernel.MomentumCoef) { update(params, grads, s[0], c) },
	}
}
