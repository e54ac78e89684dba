package constraint

import (
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// multiplier is λ of one constraint. Of its two methods one is in use.
type multiplier struct {
	// lambda and grad are [1], for the optimiser of lagrange.
	lambda, grad []float32
	groups       []optim.Group
	opt          optim.Optimizer
	pid          controller
}

// controller is what pid remembers.
type controller struct {
	// Integral is I, Error and Cost are smoothed, and Costs the last values of Cost, the oldest
	// first.
	Integral float64   `json:"integral"`
	Error    float64   `json:"error"`
	Cost     float64   `json:"cost"`
	Costs    []float64 `json:"costs"`
}

func newMultiplier(c Config) (*multiplier, error) {
	m := &multiplier{lambda: []float32{float32(c.LagrangianMultiplierInit)}, grad: make([]float32, 1), pid: controller{Integral: c.LagrangianMultiplierInit, Costs: []float64{0}}}
	m.groups = []optim.Group{{Name: "lambda", Params: m.lambda, Grads: m.grad, LRScale: 1}}
	var err error
	m.opt, err = optim.New(optim.Config{Kind: "adam"})
	return m, err
}

// move takes one step, given the estimate of the measure.
func (m *multiplier) move(c *Config, measure float64) error {
	if c.Method == PIDController {
		m.lambda[0] = float32(m.pid.step(&c.PID, measure, c.Limit))
	} else {
		// λ goes up where the limit is exceeded: down the gradient of −λ·(measure − limit).
		m.grad[0] = float32(c.Limit - measure)
		optim.SetLR(m.groups, c.LambdaLR)
		if err := m.opt.Step(m.groups); err != nil {
			return err
		}
	}
	m.lambda[0] = max(m.lambda[0], 0)
	if c.LagrangianUpperBound > 0 {
		m.lambda[0] = min(m.lambda[0], float32(c.LagrangianUpperBound))
	}
	return nil
}

// step is OmniSafe's PIDLagrangian.pid_update.
func (p *controller) step(c *PID, cost, limit float64) float64 {
	delta := cost - limit
	p.Integral = max(0, p.Integral+c.KI*delta)
	p.Error = c.DeltaPEMAAlpha*p.Error + (1-c.DeltaPEMAAlpha)*delta
	p.Cost = c.DeltaDEMAAlpha*p.Cost + (1-c.DeltaDEMAAlpha)*cost
	rise := max(0, p.Cost-p.Costs[0])
	if n := len(p.Costs) + 1 - c.DDelay; n > 0 {
		p.Costs = append(p.Costs[:0], p.Costs[n:]...)
	}
	p.Costs = append(p.Costs, p.Cost)
	return c.KP*p.Error + p.Integral + c.KD*rise
}
