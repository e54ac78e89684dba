package meta

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Holder is implemented by environments whose agent holds assets, for decisions on which of them
// may be held.
type Holder interface {
	// Restrict says which assets may be held [N], nil for all: what that means for actions is the
	// environment's. It writes the mask in ts, of the present step.
	Restrict(held []bool, ts *envs.TimeStep)
}

// TradableField says of each asset [N], uint8, whether it can be traded, in environments whose
// actions are not masked; without it, and a mask, all can.
const TradableField = "tradable"

// held are decisions on which assets may be held.
type held struct {
	holder Holder
	// may [N] are those that may be held in the segment, open [N] those that could be chosen.
	may, open []bool
	// tradable is the index of TradableField, -1 for none. mask is the action mask as it was when
	// the decision was due; nil where actions are not masked.
	tradable int
	mask     *tensor.Tensor
}

func newHeld(inside envs.Env) (*held, error) {
	s := inside.Spec()
	h := &held{tradable: -1}
	var ok bool
	if h.holder, ok = wrap.Find[Holder](inside); !ok {
		return nil, fmt.Errorf("%s: the agent of environment %q holds no assets, expected one such as that of trading", Assets, s.Name)
	}
	n := 0
	switch a := s.Action.(type) {
	case envs.Box:
		// The last is the cash's.
		if len(a.Dims) == 1 {
			n = a.Dims[0] - 1
		}
		if i := s.Observation.Index(TradableField); i >= 0 && slices.Equal(s.Observation[i].Space.Shape(), []int{n}) {
			h.tradable = i
		}
	case envs.MultiDiscrete:
		n = len(a.N)
		if slices.Max(a.N) != slices.Min(a.N) {
			n = 0
		}
	}
	if n < 1 {
		return nil, fmt.Errorf("%s: the actions of environment %q are %v, expected weights of assets and the cash, or an order for each", Assets, s.Name, s.Action)
	}
	h.may, h.open = make([]bool, n), make([]bool, n)
	if s.Masked {
		h.mask = tensor.New(tensor.Bool, envs.MaskLen(s.Action))
	} else if _, ok := s.Action.(envs.MultiDiscrete); ok {
		return nil, errors.New(Assets + ": orders that are not masked cannot be left out")
	}
	return h, nil
}

// space has for each asset whether it may be held, and behind that one of the experts where there
// are several.
func (h *held) space(experts int) envs.Space {
	heads := slices.Repeat([]int{2}, len(h.may))
	if experts > 1 {
		heads = append(heads, experts)
	}
	return envs.MultiDiscrete{N: heads}
}

// choose takes over what the heads of an action say of the assets, and returns the others. What
// cannot be chosen is not.
func (h *held) choose(heads []int64) []int64 {
	for i := range h.may {
		h.may[i] = heads[i] == 1 && h.open[i]
	}
	return heads[len(h.may):]
}

// restrict begins a segment, whose first step is ts.
func (h *held) restrict(ts *envs.TimeStep) { h.holder.Restrict(h.may, ts) }

// lift ends it.
func (h *held) lift(ts *envs.TimeStep) { h.holder.Restrict(nil, ts) }

// number is how many assets may be held.
func (h *held) number() float64 {
	n := 0
	for _, may := range h.may {
		if may {
			n++
		}
	}
	return float64(n)
}

// observe finds out which assets can be chosen at a step of the environment inside, and writes
// their mask [2·N]: leaving one out always, and holding it where it can be traded, which is where
// it has more than one order. If none can, all can be chosen, which makes no difference. It returns
// the rest of the mask.
func (h *held) observe(ts *envs.TimeStep, mask []bool) []bool {
	n, any := len(h.open), false
	for i := range h.open {
		h.open[i] = true
		if h.tradable >= 0 {
			h.open[i] = tensor.Data[uint8](ts.Obs[h.tradable])[i] != 0
		} else if h.mask != nil {
			orders, of := 0, h.mask.Len()/n
			for _, valid := range ts.Mask.Bools()[i*of : (i+1)*of] {
				if valid {
					orders++
				}
			}
			h.open[i] = orders > 1
		}
		any = any || h.open[i]
	}
	for i := range h.open {
		h.open[i] = h.open[i] || !any
		mask[2*i], mask[2*i+1] = true, h.open[i]
	}
	if h.mask != nil {
		copy(h.mask.Bytes(), ts.Mask.Bytes())
	}
	return mask[2*n:]
}
