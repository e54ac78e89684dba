package prove

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sized lists the operators that take sizes or counts from numbers.
var sized = map[string]bool{
	"Compress": true, "MaxRoiPool": true, "NonMaxSuppression": true, "NonZero": true, "OneHot": true, "Range": true, "Resize": true, "RoiAlign": true, "Unique": true, "Upsample": true,
}

// integral lists the operators that make integers of numbers; Cast is one where it says so.
var integral = map[string]bool{
	"ArgMax": true, "ArgMin": true, "Bernoulli": true, "CastLike": true, "DynamicQuantizeLinear": true, "Multinomial": true, "QuantizeLinear": true, "TopK": true,
}

// passes lists the operators that only hand on integers, on the way to an output, which are their
// first input.
var passes = map[string]bool{"Cast": true, "Flatten": true, "Identity": true, "Reshape": true, "Squeeze": true, "Transpose": true, "Unsqueeze": true}

// steers reports whether what the given values hold may decide sizes, divisors or how long a run
// takes: where they reach an operator that takes sizes from numbers, or integers that are computed
// with, or where there is control flow.
func steers(g *onnx.Graph, values map[string]bool) bool {
	const number, whole = 1, 2
	reached := map[string]int{}
	for v, is := range values {
		if is {
			reached[v] = number
		}
	}
	for _, n := range g.Node { // each after what it reads
		if len(n.Subgraphs()) > 0 {
			return true
		}
		kind := 0
		for i, v := range n.Input {
			if reached[v] == whole && (i > 0 || !passes[n.OpType]) {
				return true
			}
			kind = max(kind, reached[v])
		}
		if kind == 0 {
			continue
		}
		if !known(n) || sized[n.OpType] {
			return true
		}
		switch {
		case integral[n.OpType]:
			kind = whole
		case n.OpType == "Cast":
			if kind = number; !tensor.DType(n.Int("to", 0)).IsFloat() {
				kind = whole
			}
		}
		for _, v := range n.Output {
			if v != "" {
				reached[v] = kind
			}
		}
	}
	return false
}
