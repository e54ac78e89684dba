package agents

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// roundedLogProb is how far above 0 rounding may carry the log-probability of a certain action.
const roundedLogProb = 1e-4

// CheckLogProb reports a log-probability that no action of elements of a type can have: an infinite
// one, and of a choice one above 0, whose probability would exceed 1. A choice is whole numbers or
// truth values. The logarithm of a density, of floating-point actions, may be above 0. NaN, for one
// that is not known, is accepted.
func CheckLogProb(action tensor.DType, p float64) error {
	if math.IsInf(p, 0) {
		return fmt.Errorf("log_prob: the log-probability is %v, expected a finite number", p)
	}
	if p > roundedLogProb && !action.IsFloat() {
		return fmt.Errorf("log_prob: the log-probability is %v, expected at most 0: a discrete action has a probability of at most 1", p)
	}
	return nil
}
