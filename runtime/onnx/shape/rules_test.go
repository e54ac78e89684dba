package shape

import (
	"cmp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// differentiable lists the operators whose inputs the ONNX specification (v1.22, docs/Operators.md)
// tags as differentiable.
const differentiable = `Abs Acos Acosh Add Asin Asinh Atan Atanh AveragePool BatchNormalization Cast CastLike CausalConvWithState Celu CenterCropPad Clip Col2Im
	Compress Concat Conv ConvTranspose Cos Cosh CumProd CumSum DepthToSpace Det Div Dropout Einsum Elu Erf Exp Expand Flatten GRU Gather GatherElements GatherND Gelu
	Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN LSTM LeakyRelu
	LinearAttention Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization Min Mish Mod Mul Neg
	NegativeLogLikelihoodLoss PRelu Pad Pow RNN Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
	ReduceSumSquare Relu Reshape Resize ScatterElements ScatterND Selu Shrink Sigmoid Sin Sinh Slice Softmax SoftmaxCrossEntropyLoss Softplus Softsign SpaceToDepth
	Split Sqrt Squeeze Sub Sum Swish Tan Tanh TensorScatter ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where`

func TestTableIsComplete(t *testing.T) {
	list := strings.Fields(differentiable)
	if len(list) != 119 {
		t.Errorf("%d differentiable operators, want 119", len(list))
	}
	for _, op := range list {
		if !Known("", op) || !Known("ai.onnx", op) {
			t.Errorf("%s is not in the table", op)
		}
	}
	// Opset 28 has 203 operators outside the machine-learning and training domains.
	standard := 0
	for k, op := range sorted.Func(operators, func(a, b opKey) int { return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.op, b.op)) }) {
		if k.domain == onnx.DomainStandard {
			standard++
		}
		if newest != schema.Latest("") {
			t.Fatalf("the rules are for opsets up to %d, the table of operators goes to %d", newest, schema.Latest(""))
		}
		if op.infer == nil || op.since < 1 {
			t.Errorf("%s has no rule or no first opset", k.op)
		}
	}
	if standard != 203 {
		t.Errorf("%d standard operators, want 203", standard)
	}
}

// BenchmarkApply is what a builder pays per emitted node: the types are static and nothing is
// constant.
func BenchmarkApply(b *testing.B) {
	e, err := NewEnv(model(18, &onnx.Graph{
		Input:       infos(b, "x float32[256,64]", "w float32[64,64]", "v float32[64]"),
		Initializer: []*onnx.TensorProto{onnx.ProtoOf("s", intTensor(&content{dtype: 7, shape: []int{2}, ints: []val{num(64), num(-1)}}))},
	}), nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []*onnx.Node{
		node("Mul(x, x) -> y"), node("Add(x, v) -> y"), node("Gemm(x, w, v) -> y"), node("Transpose(x) -> y", onnx.AttrInts("perm", 1, 0)), node("Reshape(x, s) -> y"),
	} {
		b.Run(c.OpType, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Apply(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
