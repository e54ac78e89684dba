package sac

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/optim"
)

// temperature is α, the weight of the entropy, and what adjusts it: gradient descent on −log α·(log
// π + H̄), with log α as the parameter.
type temperature struct {
	auto  bool
	fixed float64
	// target is H̄.
	target float64
	log    []float32
	grad   []float32
	groups []optim.Group
	opt    optim.Optimizer
}

func newTemperature(c EntCoef, target float64) (*temperature, error) {
	t := &temperature{auto: c.Auto, fixed: c.Value, target: target, log: make([]float32, 1), grad: make([]float32, 1)}
	if !c.Auto {
		return t, nil
	}
	t.log[0] = float32(math.Log(c.Value))
	t.groups = []optim.Group{{Name: "log_ent_coef", Params: t.log, Grads: t.grad, LRScale: 1}}
	var err error
	t.opt, err = optim.New(optim.Config{Kind: "adam"})
	return t, err
}

// alpha returns the present value.
func (t *temperature) alpha() float32 {
	if !t.auto {
		return float32(t.fixed)
	}
	return float32(math.Exp(float64(t.log[0])))
}

// step adjusts an automatic temperature, given the mean of log π over a batch and the target
// entropy of the batch, and returns the loss before.
func (t *temperature) step(logProb, target, lr float64) (loss float64, err error) {
	gap := logProb + target
	loss = -float64(t.log[0]) * gap
	t.grad[0] = float32(-gap)
	optim.SetLR(t.groups, lr)
	return loss, t.opt.Step(t.groups)
}
