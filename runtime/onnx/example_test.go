package onnx_test

import (
	"fmt"
	"os"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// perceptron is one linear layer with a batch that is not fixed.
func perceptron(name, in, out string, units, width int) *onnx.Model {
	batch := func(n int) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(n)}}
	}
	b := onnx.NewBuilder(name, onnx.DefaultOpset)
	x := b.Input(in, batch(width))
	w := b.Initializer("weight", tensor.New(tensor.Float32, width, units))
	h := b.Op("MatMul", []onnx.Value{x, w})
	b.Output(b.Rename(b.Op("Tanh", []onnx.Value{h}), out), batch(units))
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleBuilder() {
	m := perceptron("layer", "x", "y", 3, 4)
	if err := onnx.Check(m); err != nil {
		panic(err)
	}
	_ = onnx.Fprint(os.Stdout, m, onnx.PrintOptions{})
	// Output:
	// model ir=8 opset=18 producer="onnxrl"
	// graph "layer" {
	//   input %x: float32[batch,4]
	//   init %weight: float32[4,3] #17b0761f87
	//   %MatMul = MatMul(%x, %weight)
	//   %Tanh = Tanh(%MatMul)
	//   %y: float32[batch,3] = Identity(%Tanh)
	//   output %y: float32[batch,3]
	// }
}

func ExampleCompose() {
	encoder, head := perceptron("encoder", "obs", "code", 3, 4), perceptron("head", "code", "logits", 2, 3)
	m, err := onnx.Compose(encoder, head, map[onnx.Value]onnx.Value{"code": "code"}, onnx.ComposeOptions{PrefixA: "enc/", PrefixB: "head/", Name: "agent"})
	if err != nil {
		panic(err)
	}
	m, err = onnx.BindDims(m, map[string]int{"batch": 1})
	if err != nil {
		panic(err)
	}
	// Weights become inputs while training.
	m, err = onnx.InitializersToInputs(m, []onnx.Value{"enc/weight", "head/weight"})
	if err != nil {
		panic(err)
	}
	for _, v := range m.Graph.Input {
		t, _ := v.TensorType()
		fmt.Println(v.Name, t)
	}
	// Output:
	// enc/obs float32[1,4]
	// enc/weight float32[4,3]
	// head/weight float32[3,2]
}

func ExampleCheck() {
	m := perceptron("layer", "x", "y", 3, 4)
	m.Graph.Node[1].OpType = "Tahn"
	m.Graph.Node[2].Input[0] = "typo"
	fmt.Println(onnx.Check(m))
	// Output:
	// model is not valid: node "Tanh" (Tahn): there is no such operator
	// 	node Identity -> "y": input "typo" is not defined
}

func ExampleDiff() {
	a := perceptron("layer", "x", "y", 3, 4)
	b := a.Clone()
	b.Graph.Node[1].OpType = "Relu"
	_ = onnx.Diff(a, b).Fprint(os.Stdout)
	// Output:
	// nodes
	//   - %Tanh = Tanh(%MatMul)
	//   + %Tanh = Relu(%MatMul)
}

func ExampleExpand() {
	b := onnx.NewBuilder("g", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2))
	b.Output(b.Rename(b.Op("HardSwish", []onnx.Value{x}), "y"), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	// Composite operators are replaced by the bodies that the standard gives for them.
	m, err = onnx.Expand(m, func(n *onnx.Node, opset int) (*onnx.Function, error) {
		if n.OpType != "HardSwish" {
			return nil, nil
		}
		return onnx.SchemaBody(n.Domain, n.OpType, opset), nil
	})
	if err != nil {
		panic(err)
	}
	for _, n := range m.Graph.Node {
		fmt.Println(n.OpType, n.Output[0])
	}
	// Output:
	// HardSigmoid HardSwish/HS_X
	// Mul HardSwish
	// Identity y
}
