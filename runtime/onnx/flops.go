package onnx

import (
	"strings"
)

// FLOPs returns the floating-point operations of one run of a node, a multiplication and an
// addition counting as two, and whether it is known: types must be static. Products and
// convolutions are counted exactly, without what padding saves; element-wise operators, reductions
// and normalisations per element, with functions such as Exp counting as one; operators that move
// data cost nothing. Control flow and operators without a formula are not known.
func FLOPs(n *Node, types Types) (int64, bool) {
	if NormalizeDomain(n.Domain) != DomainStandard {
		return 0, false
	}
	f := flopper{n: n, types: types, ok: true}
	v, known := f.count()
	return v, known && f.ok
}

type flopper struct {
	n     *Node
	types Types
	ok    bool
}

func (f *flopper) shape(v Value) []int64 {
	t, known := f.types(v)
	s, static := t.Static()
	if !known || !static {
		f.ok = false
		return nil
	}
	return Int64s(s)
}

func product(s []int64) int64 {
	p := int64(1)
	for _, d := range s {
		p *= d
	}
	return p
}

func (f *flopper) in(i int) []int64  { return f.shape(f.n.In(i)) }
func (f *flopper) out(i int) []int64 { return f.shape(f.n.Out(i)) }

func (f *flopper) count() (int64, bool) {
	n := f.n
	if per, ok := perElement[n.OpType]; ok {
		if per == 0 {
			return 0, true
		}
		return per * product(f.out(0)), true
	}
	if per, ok := perInput[n.OpType]; ok {
		return per * product(f.in(0)), true
	}
	switch n.OpType {
	case "MatMul", "MatMulInteger":
		a, out := f.in(0), f.out(0)
		if len(a) == 0 {
			return 0, false
		}
		return 2 * product(out) * a[len(a)-1], true
	case "Gemm":
		a, out := f.in(0), f.out(0)
		if len(a) != 2 {
			return 0, false
		}
		k := a[1]
		if n.Int("transA", 0) != 0 {
			k = a[0]
		}
		total := 2 * product(out) * k
		if n.In(2) != "" {
			total += product(out)
		}
		return total, true
	case "Conv", "ConvInteger":
		w, out := f.in(1), f.out(0)
		if len(w) < 3 {
			return 0, false
		}
		total := 2 * product(out) * product(w[1:])
		if n.OpType == "Conv" && n.In(2) != "" {
			total += product(out)
		}
		return total, true
	case "ConvTranspose":
		x, w := f.in(0), f.in(1)
		if len(w) < 3 {
			return 0, false
		}
		total := 2 * product(x) * product(w[1:])
		if n.In(2) != "" {
			total += product(f.out(0))
		}
		return total, true
	case "LSTM", "GRU", "RNN":
		x, w, r := f.in(0), f.in(1), f.in(2)
		if len(x) != 3 || len(w) != 3 || len(r) != 3 {
			return 0, false
		}
		// Both weight tensors are [directions, gates*hidden, in]; every step multiplies them once
		// per row of the batch and adds and squashes each gate.
		steps := x[0] * x[1]
		return steps * (2*product(w) + 2*product(r) + 4*w[0]*w[1]), true
	case "Einsum":
		return f.einsum()
	case "AveragePool", "MaxPool", "LpPool":
		k := n.Ints("kernel_shape")
		if len(k) == 0 {
			return 0, false
		}
		return product(f.out(0)) * product(Int64s(k)), true
	case "Attention":
		return f.attention()
	}
	return 0, false
}

// einsum counts one multiplication per further operand and one addition for every point of the
// space that all labels span.
func (f *flopper) einsum() (int64, bool) {
	eq := strings.ReplaceAll(f.n.Str("equation", ""), " ", "")
	left, _, _ := strings.Cut(eq, "->")
	terms := strings.Split(left, ",")
	if strings.Contains(eq, "...") || len(terms) != len(f.n.Input) {
		return 0, false
	}
	extent := map[rune]int64{}
	for i, t := range terms {
		s := f.in(i)
		if len(s) != len([]rune(t)) {
			return 0, false
		}
		for j, l := range []rune(t) {
			extent[l] = max(extent[l], s[j])
		}
	}
	p := int64(1)
	for _, d := range extent {
		p *= d
	}
	return p * int64(len(terms)), true
}

// attention counts the two products of 4-D queries, keys and values, and the softmax between them.
func (f *flopper) attention() (int64, bool) {
	q, k, v := f.in(0), f.in(1), f.in(2)
	if len(q) != 4 || len(k) != 4 || len(v) != 4 {
		return 0, false
	}
	scores := q[0] * q[1] * q[2] * k[2]
	return scores * (2*q[3] + 5 + 2*v[3]), true
}

// perElement is the cost per element of the first output.
var perElement = map[string]int64{}

// perInput is the cost per element of the first input.
var perInput = map[string]int64{}

func init() {
	fill := func(m map[string]int64, cost int64, ops string) {
		for _, op := range strings.Fields(ops) {
			m[op] = cost
		}
	}
	fill(perElement, 0, `Identity Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Gather GatherElements GatherND Expand Tile Pad Shape Size Constant
		ConstantOfShape Cast CastLike Where ScatterElements ScatterND DepthToSpace SpaceToDepth Dropout NonZero Range EyeLike OneHot Trilu Compress ReverseSequence
		IsNaN IsInf Not And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift CenterCropPad Unique BitCast
		SequenceConstruct SequenceEmpty SequenceInsert SequenceAt SequenceLength SequenceErase SplitToSequence ConcatFromSequence Optional OptionalGetElement
		OptionalHasElement RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial StringNormalizer`)
	fill(perElement, 1, `Add Sub Mul Div Pow Mod Neg Abs Sign Floor Ceil Round Exp Log Sqrt Reciprocal Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf
		Relu Clip Equal Greater GreaterOrEqual Less LessOrEqual CumProd`)
	fill(perElement, 2, `LeakyRelu PRelu ThresholdedRelu Shrink Max Min Sum Mean CumSum`)
	fill(perElement, 3, `Elu Celu Selu Softplus Softsign HardSigmoid HardSwish`)
	fill(perElement, 4, `Sigmoid Swish BatchNormalization Resize Upsample`)
	fill(perElement, 5, `Gelu Mish Softmax LogSoftmax Hardmax RMSNormalization LpNormalization`)
	fill(perElement, 8, `LayerNormalization InstanceNormalization GroupNormalization MeanVarianceNormalization LRN`)
	fill(perInput, 1, `ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd GlobalAveragePool GlobalMaxPool ArgMax ArgMin TopK`)
	fill(perInput, 2, `ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum GlobalLpPool`)
	fill(perInput, 3, `ReduceLogSumExp`)
	fill(perInput, 6, `SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss`)
}
