package trading

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
)

// WeightRules say how actions become target weights of the assets and the cash, and how far a step
// goes towards them.
type WeightRules struct {
	// Simplex is how an action becomes weights that are not negative and sum to 1: softmax (the
	// default), of scores in [-5, 5], or projection, the nearest weights to a point of [-1, 1] by
	// Euclidean distance, which can be exactly 0.
	Simplex string `yaml:"simplex,omitzero"`
	// MaxTurnover is the most that is bought and sold in a step, as a part of the portfolio's
	// value; all trades are scaled down to it. 0 is no limit.
	MaxTurnover float64 `yaml:"max_turnover,omitzero"`
	// MinTrade is the part of the portfolio's value below which a trade is not made, unless it
	// sells the last of an asset.
	MinTrade float64 `yaml:"min_trade,omitzero"`
}

// The words of actions and of WeightRules.
const (
	Orders  = "orders"
	Weights = "weights"

	Softmax    = "softmax"
	Projection = "projection"
)

func (w *WeightRules) check(p *configs.Problems, actions string) {
	p.OneOf("actions", actions, "", Orders, Weights)
	p.Check(actions == Weights || *w == WeightRules{}, "weights", "is for actions: weights")
	p.OneOf("weights.simplex", w.Simplex, "", Softmax, Projection)
	p.Check(w.MaxTurnover >= 0 && !math.IsInf(w.MaxTurnover, 0), "weights.max_turnover", "%g, expected a part of the portfolio's value, or 0", w.MaxTurnover)
	p.Check(w.MinTrade >= 0 && w.MinTrade < 1, "weights.min_trade", "%g, expected a fraction in [0, 1)", w.MinTrade)
}

// bound is the largest absolute value of an element of an action. For softmax one asset of 16 can
// then have up to 0.999 of the value. Projection is the same for actions that are shifted by a
// number, so that any interval of length 1 reaches all weights; [-1, 1] has room on both sides of
// where policies begin.
func (w *WeightRules) bound() float64 {
	if w.Simplex == Projection {
		return 1
	}
	return 5
}

// Of writes the weights [n] that an action [n] means. They are permuted with it, to the bit.
// scratch [n] is overwritten.
func (w *WeightRules) Of(weights []float64, action []float32, scratch []float64) {
	for i, x := range action {
		weights[i] = float64(x)
	}
	if w.Simplex == Projection {
		project(weights, scratch)
		return
	}
	most := slices.Max(weights)
	for i, x := range weights {
		weights[i] = math.Exp(x - most)
	}
	sum := total(weights)
	for i := range weights {
		weights[i] /= sum
	}
}

// Action writes an action that means the weights, up to rounding to float32.
func (w *WeightRules) Action(action, weights []float32) {
	if w.Simplex == Projection {
		for i, x := range weights {
			action[i] = min(max(x, -1), 1)
		}
		return
	}
	// All scores may be shifted: the middle of their range becomes 0.
	least, most := math.Inf(1), math.Inf(-1)
	for _, x := range weights {
		l := math.Log(float64(x))
		least, most = min(least, l), max(most, l)
	}
	bound := w.bound()
	middle := (max(least, most-2*bound) + most) / 2
	for i, x := range weights {
		action[i] = float32(min(max(math.Log(float64(x))-middle, -bound), bound))
	}
}

// project makes x the point of the simplex that is nearest to it (Held, Wolfe and Crowder 1974):
// max(x − θ, 0), where θ is the largest of (u₁+…+u_j − 1)/j over the elements u in descending
// order.
func project(x, sorted []float64) {
	copy(sorted, x)
	slices.Sort(sorted)
	sum, theta := -1.0, math.Inf(-1)
	for j := range sorted {
		sum += sorted[len(sorted)-1-j]
		theta = max(theta, sum/float64(j+1))
	}
	for i := range x {
		x[i] = max(x[i]-theta, 0)
	}
}

// sumTolerance is what weights may miss 1 by: a model gives them in float32.
const sumTolerance = 1e-5

// CheckWeights reports weights [N+1], of the assets and the cash, that are not numbers, are
// negative, or do not sum to 1.
func CheckWeights(assets []string, weights []float64) error {
	if len(weights) != len(assets)+1 {
		return fmt.Errorf("%d weights, expected one for each of %d assets and one for the cash", len(weights), len(assets))
	}
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			name := "cash"
			if i < len(assets) {
				name = assets[i]
			}
			return fmt.Errorf("the weight of %s is %g, expected a number that is not negative", name, w)
		}
	}
	if s := total(weights); math.Abs(s-1) > sumTolerance {
		return fmt.Errorf("the weights of %d assets and the cash sum to %.7g, expected 1", len(assets), s)
	}
	return nil
}

// total is a sum that does not depend on the order of its terms, to the bit. Each term is split
// into a multiple of a power of two, so coarse that all of these are added without rounding, and a
// rest, which is split again (Demmel and Nguyen 2013).
func total(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	if most == 0 || most-most != 0 {
		return most
	}
	_, e := math.Frexp(most)
	carry := bits.Len(uint(len(x)))
	coarse, fine := math.Ldexp(1.5, e+carry), math.Ldexp(1.5, e+2*carry-52)
	var sum, rest float64
	for _, v := range x {
		q := v + coarse - coarse
		sum += q
		rest += v - q + fine - fine
	}
	return sum + rest
}
