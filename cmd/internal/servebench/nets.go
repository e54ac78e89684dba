package servebench

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The networks that are served: a policy whose run takes microseconds, and a network whose run
// dominates whatever is around it.
const (
	policyName, policyInputs = "policy-2x64", 17
	wideName, wideInputs     = "mlp-4x1024", 64
)

// mlp is a network with a symbolic batch, input "x" and output "y". Weights are uniform in
// ±1/√fan-in, drawn from the seed.
func mlp(name string, seed uint64, sizes ...int) (*onnx.Model, error) {
	batched := func(n int) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(n)}}
	}
	b, s := onnx.NewBuilder(name, 17), rng.New(seed).Split(name).Stream()
	x := b.Input("x", batched(sizes[0]))
	for i := range len(sizes) - 1 {
		in, out := sizes[i], sizes[i+1]
		parameter := func(name string, shape ...int) onnx.Value {
			t, bound := tensor.New(tensor.Float32, shape...), float32(1/math.Sqrt(float64(in)))
			s.FillUniform32(t.Float32s(), -bound, bound)
			return b.Initializer(fmt.Sprintf("fc%d.%s", i+1, name), t)
		}
		x = b.Op("Gemm", []onnx.Value{x, parameter("weight", out, in), parameter("bias", out)}, onnx.AttrInt("transB", 1))
		if i+2 < len(sizes) {
			x = b.Op("Tanh", []onnx.Value{x})
		}
	}
	b.Output(b.Rename(x, "y"), batched(sizes[len(sizes)-1]))
	return b.Model()
}

func policy(seed uint64) (*onnx.Model, error) { return mlp(policyName, seed, policyInputs, 64, 64, 6) }

func wide() (*onnx.Model, error) { return mlp(wideName, 1, wideInputs, 1024, 1024, 1024, 1024, 6) }
