package offpolicy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
)

// Descent moves parameters down their gradient.
type Descent struct {
	Optimizer optim.Optimizer
	Groups    []optim.Group
	// Rate is the learning rate before the schedule. Clip limits the norm of the gradient; 0 does
	// not.
	Rate, Clip float64
}

// NewDescent returns the descent of the trainable parameters in a scope, all with "", as far as the
// loss of p depends on them, and lists them for [Unmatched]. With a scope the optimiser's state
// begins where the scope does. workers may be nil.
func NewDescent(s *Settings, rate float64, params *models.Params, grads *models.Segment, p *program.Program, scope string, workers *pool.Pool) (*Descent, []optim.Param, error) {
	seg := params.Segment(models.Trainable)
	var list []optim.Param
	for i, spec := range seg.Specs() {
		if off, n := seg.Range(i); (scope == "" || Below(spec.Name, scope)) && !slices.Contains(p.Unreached(), spec.Name) {
			list = append(list, optim.Param{Name: spec.Name, Offset: off, Len: n})
		}
	}
	if len(list) == 0 {
		return nil, nil, errors.New("no parameter of the " + scope + " has a gradient")
	}
	base := 0
	if scope != "" {
		base = list[0].Offset
	}
	for i := range list {
		list[i].Offset -= base
	}
	c := s.Optimizer
	c.LR = rate
	groups, err := optim.Groups(c, seg.Floats()[base:], grads.Floats()[base:], list)
	if err != nil {
		return nil, nil, fmt.Errorf("optimizer: %w", err)
	}
	o, err := optim.New(c, optim.WithPool(workers))
	return &Descent{Optimizer: o, Groups: groups, Rate: rate, Clip: s.MaxGradNorm}, list, err
}

// Follow takes over the state of the optimiser of another descent of the same parameters, unless
// that is nil.
func (d *Descent) Follow(o *Descent) error {
	if o == nil {
		return nil
	}
	if err := d.Optimizer.SetState(o.Optimizer.State()); err != nil {
		return fmt.Errorf("optimizer: %w", err)
	}
	return nil
}

// Unmatched reports patterns of an optimiser's configuration that match none of the parameters that
// have gradients.
func Unmatched(c optim.Config, list []optim.Param) error {
	if bad := c.Unmatched(list); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	return nil
}

// Step takes one step with the gradients that there are. factor is the schedule's. A loss that is
// no number is an error, and changes nothing.
func (d *Descent) Step(loss, factor float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return &agents.DivergedError{Text: fmt.Sprintf("the loss is %v; lower the learning rate, or scale the rewards", loss)}
	}
	optim.SetLR(d.Groups, factor*d.Rate)
	if d.Clip > 0 {
		if _, _, err := optim.ClipGlobalNorm(d.Groups, d.Clip); err != nil {
			return err
		}
	}
	return d.Optimizer.Step(d.Groups)
}
