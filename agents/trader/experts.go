package trader

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Expert is how an expert of a router stands, as of the last decision. What the router may choose
// is decided by the model, from the account's value while the expert was in charge.
type Expert struct {
	// Masked experts are not chosen, and while one that is Cut is in charge less may be held.
	Masked, Cut bool
	// Drawdown and CVaR are those of the expert's own book, fractions; a loss is positive.
	Drawdown, CVaR float64
}

// ExpertLimits are those on the experts of a router.
type ExpertLimits = bake.ExpertLimits

// traded are the experts of a trader's model.
type traded struct {
	list   []Expert
	limits bake.ExpertLimits
	expert *tensor.Tensor // who is in charge
	// allowed [N], losses [2N] and cut [N] are nil without limits, cut without one on CVaR.
	allowed, losses, cut *tensor.Tensor
}

// tradedExperts finds the experts of a model, nil where it has no two.
func tradedExperts(one *served.Policy) (*traded, error) {
	x := &traded{expert: one.Output(bake.ExpertOutput), allowed: one.Output(bake.AllowedOutput), losses: one.Output(bake.LossesOutput), cut: one.Output(models.NextStatePrefix + bake.CutState)}
	shares := one.Output(bake.SharesOutput)
	if x.expert == nil || shares == nil || shares.Len() < 2 {
		return nil, nil
	}
	n := shares.Len()
	for _, o := range []struct {
		name string
		t    *tensor.Tensor
		d    tensor.DType
		size int
	}{
		// Versions of before have no losses and no limits to show.
		{bake.ExpertOutput, x.expert, tensor.Int64, 1}, {bake.AllowedOutput, x.allowed, tensor.Bool, n}, {bake.LossesOutput, x.losses, tensor.Float32, 2 * n}, {models.NextStatePrefix + bake.CutState, x.cut, tensor.Float32, n},
	} {
		if o.t != nil && (o.t.DType() != o.d || o.t.Len() != o.size) {
			return nil, fmt.Errorf("the output %q is %v, expected %d values of %v for %d experts", o.name, o.t, o.size, o.d, n)
		}
	}
	if text, ok := one.Meta(bake.MetaExpertLimits); ok {
		var err error
		if x.limits, err = bake.ParseExpertLimits(text); err != nil {
			return nil, err
		}
	}
	x.list = make([]Expert, n)
	return x, nil
}

// InCharge is the expert that the last decision is of, or that with the largest share in it; −1 of
// a model that is no router of several.
func (t *Trader) InCharge() int {
	if t.experts == nil {
		return -1
	}
	return int(t.experts.expert.Int64s()[0])
}

// Experts returns how the experts stand since the last decision, of a model that is a router of
// several; nil of any other. The order is that of the router's document. It is valid until the next
// call, and nothing is allocated.
func (t *Trader) Experts() []Expert {
	x := t.experts
	if x == nil {
		return nil
	}
	for i := range x.list {
		e := Expert{Masked: x.allowed != nil && !x.allowed.Bools()[i], Cut: x.cut != nil && x.cut.Float32s()[i] > 0.5}
		if x.losses != nil {
			l := x.losses.Float32s()
			e.Drawdown, e.CVaR = float64(l[i]), float64(l[len(x.list)+i])
		}
		x.list[i] = e
	}
	return x.list
}

// ExpertLimits are the limits that the model has on its experts.
func (t *Trader) ExpertLimits() ExpertLimits {
	if t.experts == nil {
		return bake.ExpertLimits{}
	}
	return t.experts.limits
}
