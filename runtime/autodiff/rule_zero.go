package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

// zeroOps lists the operators through which no gradient flows by definition. Nothing gets here by
// omission: an operator that is in no list is an error.
var zeroOps = []string{
	// Comparisons, logic and bits: the results are not floating-point.
	"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf",
	"BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
	// Positions, counts and shapes.
	"ArgMax", "ArgMin", "NonZero", "Shape", "Size", "NonMaxSuppression",
	// Values made from shapes and positions.
	"OneHot", "Range", "ConstantOfShape", "EyeLike", "Constant",
	"HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix",
	// Piecewise constant functions: the derivative is 0 wherever it exists.
	"Floor", "Ceil", "Round", "Sign", "Hardmax",
	// Random draws depend on their input's shape or, for Bernoulli and Multinomial, jump with it.
	"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial",
	// Quantised values are integers; a straight-through estimate is the model's choice, not ours.
	"QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv",
	// Text.
	"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer",
}

// lastZero is the newest opset of which it is known that none of these operators has another
// meaning in it.
const lastZero = 28

func zeroRules() []Rule {
	rules := make([]Rule, len(zeroOps))
	for i, op := range zeroOps {
		versions := slices.DeleteFunc(schema.Versions(onnx.DomainStandard, op), func(v int) bool { return v > lastZero })
		rules[i] = Rule{Op: op, Versions: versions, Zero: true}
	}
	return rules
}
