package optim

import "github.com/onnxrl/onnxrl/runtime/optim/kernel"

// newRMSProp is RMSProp with coupled decay, centred and with momentum if the
// Config says so. TensorFlow's, which Stable-Baselines3 calls RMSpropTFLike, has
// eps under the root and mean squares that begin at 1.
func newRMSProp(c Config) rule {
	m := &method[kernel.RMSPropCoef]{
		slots: []string{"v"},
		coef: func(g *Group) kernel.RMSPropCoef {
			k := kernel.RMSPropCoef{
				GradScale: g.gradScale(), L2: g.Decay,
				Alpha: float32(c.Alpha), AlphaC: float32(1 - c.Alpha),
				Momentum: float32(c.Momentum), LR: g.LR,
			}
			if c.EpsInside {
				k.EpsInside = float32(c.Eps)
			} else {
				k.Eps = float32(c.Eps)
			}
			return k
		},
	}
	if c.Ones {
		m.start = 1
	}
	switch withMomentum := c.Momentum != 0; {
	case c.Centred && withMomentum:
		m.slots = append(m.slots, "mean", "momentum")
		m.kernel = func(params, grads []float32, s slots, c *kernel.RMSPropCoef) {
			kernel.RMSPropCentredMomentum(params, grads, s[0], s[1], s[2], c)
		}
	case c.Centred:
		m.slots = append(m.slots, "mean")
		m.kernel = func(params, grads []float32, s slots, c *kernel.RMSPropCoef) {
			kernel.RMSPropCentred(params, grads, s[0], s[1], c)
		}
	case withMomentum:
		m.slots = append(m.slots, "momentum")
		m.kernel = func(params, grads []float32, s slots, c *kernel.RMSPropCoef) {
			kernel.RMSPropMomentum(params, grads, s[0], s[1], c)
		}
	default:
		m.kernel = func(params, grads []float32, s slots, c *kernel.RMSPropCoef) {
			kernel.RMSProp(params, grads, s[0], c)
		}
	}
	return m
}
