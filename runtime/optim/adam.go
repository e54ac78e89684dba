package optim

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// corrections are the bias corrections of step t, folded as Kingma & Ba (2015)
// suggest at the end of section 2: with s = sqrt(1 - beta2^t), the update
// m/(1-beta1^t) / (sqrt(v)/s + eps) equals m * (s/(1-beta1^t)) / (sqrt(v) + eps*s).
type corrections struct {
	rate float64 // s / (1 - beta1^t), multiplies the learning rate
	eps  float64 // eps * s
}

func (c Config) corrections(t uint64) corrections {
	s := math.Sqrt(1 - power(c.Beta2, t))
	return corrections{rate: s / (1 - power(c.Beta1, t)), eps: c.Eps * s}
}

// power returns x^t by squaring, for 0 <= x < 1. Only products are involved, so
// no architecture can round it differently by fusing; math.Pow costs as much
// as hundreds of parameters.
func power(x float64, t uint64) float64 {
	p := 1.0
	for ; t > 0; t >>= 1 {
		if t&1 != 0 {
			p *= x
		}
		x *= x
	}
	return p
}

// newAdam is Adam with coupled decay, or AdamW (Loshchilov & Hutter 2019) with
// decay decoupled: params *= 1 - lr*decay before the update.
func newAdam(c Config, decoupled bool) rule {
	var step corrections
	m := &method[kernel.AdamCoef]{
		slots: []string{"m", "v"},
		begin: func(t uint64) { step = c.corrections(t) },
		coef: func(g *Group) kernel.AdamCoef {
			k := kernel.AdamCoef{
				GradScale: g.gradScale(),
				Beta1:     float32(c.Beta1), Beta1C: float32(1 - c.Beta1),
				Beta2: float32(c.Beta2), Beta2C: float32(1 - c.Beta2),
				Eps:  float32(step.eps),
				Step: float32(float64(g.LR) * step.rate),
				L2:   g.Decay,
				Keep: 1,
			}
			if decoupled {
				k.L2, k.Keep = 0, keep(g)
			}
			return k
		},
		kernel: func(params, grads []float32, s slots, c *kernel.AdamCoef) {
			kernel.Adam(params, grads, s[0], s[1], c)
		},
	}
	if c.AMSGrad {
		m.slots = append(m.slots, "v_max")
		m.kernel = func(params, grads []float32, s slots, c *kernel.AdamCoef) {
			kernel.AMSGrad(params, grads, s[0], s[1], s[2], c)
		}
	}
	return m
}

// keep is what decoupled decay leaves of a parameter in one step.
func keep(g *Group) float32 { return float32(1 - float64(g.LR)*float64(g.Decay)) }
