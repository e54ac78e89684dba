package sac

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// temperature is α, the weight of the entropy, and what adjusts it: gradient descent on −log α·(log
// π + H̄), with log α as the parameter.
type temperature struct {
	// name is what checkpoints call it.
	name  string
	auto  bool
	fixed float64
	// target is H̄.
	target float64
	log    []float32
	grad   []float32
	groups []optim.Group
	opt    optim.Optimizer
}

func newTemperature(c Config, f *network.Frame) (*temperature, error) {
	target := c.TargetEntropy.Value
	if c.TargetEntropy.Auto {
		target = autoTarget(f)
	}
	return newAdjusted("ent_coef", c.EntCoef, target)
}

// newAdjusted returns a number above 0 that is adjusted, or is not.
func newAdjusted(name string, c EntCoef, target float64) (*temperature, error) {
	t := &temperature{name: name, auto: c.Auto, fixed: c.Value, target: target, log: make([]float32, 1), grad: make([]float32, 1)}
	if !t.auto {
		return t, nil
	}
	t.log[0] = float32(math.Log(t.fixed))
	t.groups = []optim.Group{{Name: "log_" + name, Params: t.log, Grads: t.grad, LRScale: 1}}
	var err error
	t.opt, err = optim.New(optim.Config{Kind: "adam"})
	return t, err
}

// follow takes over what another one has adjusted, where both are automatic.
func (t *temperature) follow(o *temperature) error {
	if !t.auto || !o.auto {
		return nil
	}
	copy(t.log, o.log)
	return t.opt.SetState(o.opt.State())
}

// save saves the logarithm, 0 unless it is automatic, and then its optimiser's state.
func (t *temperature) save(w *checkpoint.Writer) {
	w.PutFloat32s("log_"+t.name, t.log)
	if t.auto {
		network.SaveOptimizer(w.Scope("optim").Scope(t.name), t.opt)
	}
}

// load goes on from what was adjusted, where it was and is to be. t is as it was made otherwise.
func (t *temperature) load(r *checkpoint.Reader) error {
	log, o := make([]float32, 1), r.Scope("optim").Scope(t.name)
	if err := r.Float32sInto("log_"+t.name, log, 1); err != nil {
		return err
	}
	if !t.auto || len(o.Names()) == 0 {
		o.Skip()
		return nil
	}
	copy(t.log, log)
	return network.LoadOptimizer(o, t.opt)
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
