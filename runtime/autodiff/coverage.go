package autodiff

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// specOps lists the operators whose inputs the ONNX specification, version 1.22, marks as
// differentiable (docs/Operators.md).
var specOps = []string{
	"Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "AveragePool", "BatchNormalization", "Cast", "CastLike", "CausalConvWithState", "Celu",
	"CenterCropPad", "Clip", "Col2Im", "Compress", "Concat", "Conv", "ConvTranspose", "Cos", "Cosh", "CumProd", "CumSum", "DepthToSpace", "Det", "Div", "Dropout",
	"Einsum", "Elu", "Erf", "Exp", "Expand", "Flatten", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool",
	"GlobalMaxPool", "GridSample", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "LRN", "LSTM", "LeakyRelu",
	"LinearAttention", "Log", "LogSoftmax", "LpNormalization", "LpPool", "MatMul", "Max", "MaxPool", "MaxRoiPool", "MaxUnpool", "Mean",
	"MeanVarianceNormalization", "Min", "Mish", "Mod", "Mul", "Neg", "NegativeLogLikelihoodLoss", "PRelu", "Pad", "Pow", "RNN", "Reciprocal", "ReduceL1",
	"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu", "Reshape",
	"Resize", "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sin", "Sinh", "Slice", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign",
	"SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Swish", "TensorScatter", "Tan", "Tanh", "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu",
	"Unsqueeze", "Where",
}

// RuleKind says how an operator is differentiated.
type RuleKind int

// The kinds of rules.
const (
	NoRule RuleKind = iota
	VJPRule
	ExpandRule
	ZeroRule
)

// String prints none, rule, expansion or zero.
func (k RuleKind) String() string {
	switch k {
	case NoRule:
		return "none"
	case VJPRule:
		return "rule"
	case ExpandRule:
		return "expansion"
	case ZeroRule:
		return "zero"
	}
	return fmt.Sprintf("RuleKind(%d)", int(k))
}

// OpCoverage is one line of the coverage table.
type OpCoverage struct {
	Op string
	// Kind is that of the newest rule; Since the oldest version that any rule is written for, 0
	// without one.
	Kind  RuleKind
	Since int
}

// Coverage lists the operators that the ONNX specification marks as differentiable, in alphabetical
// order, with what this package does about each. Whether a rule is right is another matter: package
// opcases checks it.
func Coverage() []OpCoverage {
	out := make([]OpCoverage, len(specOps))
	for i, op := range specOps {
		out[i] = coverageOf(onnx.DomainStandard, op)
	}
	return out
}

func coverageOf(domain, op string) OpCoverage {
	c := OpCoverage{Op: op}
	newest := -1
	for _, r := range rules()[[2]string{domain, op}] {
		if first := slices.Min(r.Versions); c.Since == 0 || first < c.Since {
			c.Since = first
		}
		if last := slices.Max(r.Versions); last <= newest {
			continue
		}
		newest = slices.Max(r.Versions)
		switch {
		case r.Zero:
			c.Kind = ZeroRule
		case r.Expand != nil && r.VJP == nil:
			c.Kind = ExpandRule
		default:
			c.Kind = VJPRule
		}
	}
	return c
}
