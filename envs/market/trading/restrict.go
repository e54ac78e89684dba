package trading

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
)

// Restrict says which of the assets, or the slots whoever is in them, may be held [N] from the next
// step on, until it is called again or an episode begins; nil for all. Of the others nothing is
// bought: the order is masked, in ts too, and one that is given nevertheless is one to hold;
// selling is not restricted. The target weights of the others are shared by [RestrictWeights], so
// that they are sold as far as that can be done.
func (e *Env) Restrict(held []bool, ts *envs.TimeStep) {
	if held != nil && len(held) != len(e.held) {
		panic(fmt.Sprintf("trading: %d assets may be held or not, expected %d", len(held), len(e.held)))
	}
	copy(e.held, held)
	e.restricted = slices.Contains(held, false)
	if ts.Mask != nil {
		e.sides(ts)
	}
}

// maskRestricted leaves the purchase of what may not be held out.
func (e *Env) maskRestricted(mask []bool) {
	if !e.restricted {
		return
	}
	for i, held := range e.held {
		mask[i*actions+Buy] = mask[i*actions+Buy] && held
	}
}

// allowed returns orders without purchases of what may not be held.
func (e *Env) allowed(orders []int64) []int64 {
	if !e.restricted {
		return orders
	}
	e.orders = append(e.orders[:0], orders...)
	for i, held := range e.held {
		if !held && orders[i] == Buy {
			e.orders[i] = Hold
		}
	}
	return e.orders
}

// LeastKept is the part of target weights that is shared in full, see [RestrictWeights].
const LeastKept = 0.01

// RestrictWeights gives the weights [N+1] of the assets that may not be held [N] to the others and
// the cash, in proportion to what these have, as the scores of a masked softmax would. What is kept
// grows at most a hundredfold; where that is less than all, the cash has the rest. scratch [N+1] is
// overwritten.
func RestrictWeights(weights []float64, held []bool, scratch []float64) {
	n := len(held)
	if !slices.Contains(held, false) {
		return
	}
	for i, may := range held {
		if !may {
			weights[i] = 0
		}
	}
	copy(scratch, weights)
	kept := total(scratch[:n+1])
	factor := 1 / max(kept, LeastKept)
	for i := range weights {
		weights[i] *= factor
	}
	weights[n] += max(1-kept*factor, 0)
}
