package constraint

import (
	"math"
	"slices"
)

// Tail returns the value at risk ν and the conditional value at risk at level alpha of losses,
// which it sorts: ν is the smallest loss that at least a share of alpha does not exceed, and
//
//	CVaR = ν + mean (loss − ν)⁺ / (1 − alpha)
//
// whose minimum over ν is there (Rockafellar & Uryasev 2000).
func Tail(losses []float64, alpha float64) (atRisk, conditional float64) {
	slices.Sort(losses)
	n := float64(len(losses))
	// A product such as 0.95·100 may exceed the whole number by a rounding.
	atRisk = losses[max(int(math.Ceil(alpha*n-1e-9)), 1)-1]
	sum := 0.0
	for _, x := range losses {
		sum += max(x-atRisk, 0)
	}
	return atRisk, atRisk + sum/n/(1-alpha)
}
