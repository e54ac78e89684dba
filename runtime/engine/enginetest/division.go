package enginetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// division checks that integer divisions by zero are errors of the run that name the node, whatever
// the type and wherever the node is, and that the smallest number divided by −1 is itself, as in
// two's complement: on the processor both are traps, which would end the process.
func (s *suite) division(t *testing.T) {
	e := s.open(t)
	checked := 0
	for _, op := range []string{"Div", "Mod"} {
		for _, d := range s.DTypes {
			if !d.IsInteger() || d.Bits() < 8 || op == "Div" && d.Bits() < 32 {
				continue
			}
			for _, wrap := range []func(t *testing.T, op string, d tensor.DType) *onnx.Model{divide, divideInBranch, divideInFunction} {
				session, err := e.Compile(wrap(t, op, d), engine.Options{})
				if err != nil {
					t.Errorf("%s of %v: %v", op, d, err)
					continue
				}
				run := func(a, b [3]int64) ([]int64, error) {
					out := make([]*tensor.Tensor, 1)
					if err := session.Run(context.Background(), out, []*tensor.Tensor{integers(d, a[:]), integers(d, b[:])}); err != nil {
						return nil, err
					}
					return numbers(out[0]), nil
				}
				want := map[string][]int64{"Div": {3, 2, 0}, "Mod": {1, 0, 1}}[op]
				if got, err := run([3]int64{7, 6, 1}, [3]int64{2, 3, 5}); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s of %v: %v, %v, expected %v", op, d, got, err, want)
				}
				_, err = run([3]int64{7, 6, 1}, [3]int64{2, 0, 5})
				if !errors.Is(err, engine.ErrDivideByZero) || !strings.Contains(err.Error(), "quotient") {
					t.Errorf("%s of %v by zero: %v, expected %v in node quotient", op, d, err, engine.ErrDivideByZero)
				}
				if least := map[tensor.DType]int64{tensor.Int32: math.MinInt32, tensor.Int64: math.MinInt64}[d]; least != 0 {
					want := map[string][]int64{"Div": {least, -6, -1}, "Mod": {0, 0, 0}}[op]
					if got, err := run([3]int64{least, 6, 1}, [3]int64{-1, -1, -1}); err != nil || !slices.Equal(got, want) {
						t.Errorf("%s of %v by -1: %v, %v, expected %v", op, d, got, err, want)
					}
				}
				if err := session.Close(); err != nil {
					t.Error(err)
				}
				checked++
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d divisions were checked, expected at least 30", checked)
	}
}

func quotient(op, a, b string) *onnx.Node {
	return &onnx.Node{Name: "quotient", OpType: op, Input: []string{a, b}, Output: []string{"q"}}
}

// divide divides its inputs, of three elements each.
func divide(t *testing.T, op string, d tensor.DType) *onnx.Model {
	b := onnx.NewBuilder("divide", opset)
	x, y := b.Input("x", onnx.TypeOf(d, 3)), b.Input("y", onnx.TypeOf(d, 3))
	b.Append(quotient(op, string(x), string(y)))
	b.Output("q", onnx.TypeOf(d, 3))
	return finish(t, b)
}

// divideInBranch does so inside a branch.
func divideInBranch(t *testing.T, op string, d tensor.DType) *onnx.Model {
	b := onnx.NewBuilder("branch", opset)
	b.Input("x", onnx.TypeOf(d, 3))
	b.Input("y", onnx.TypeOf(d, 3))
	yes := b.Const(tensor.Of([]bool{true}))
	branch := func(name string, n *onnx.Node) *onnx.Attribute {
		g := &onnx.Graph{Name: name, Node: []*onnx.Node{n}, Output: []*onnx.ValueInfo{onnx.NewValueInfo(onnx.Value(n.Output[0]), onnx.TypeOf(d, 3))}}
		return &onnx.Attribute{Name: name, Type: onnx.AttributeProto_GRAPH, G: g}
	}
	b.Append(&onnx.Node{Name: "if", OpType: "If", Input: []string{string(yes)}, Output: []string{"r"}, Attribute: []*onnx.Attribute{
		branch("then_branch", quotient(op, "x", "y")),
		branch("else_branch", &onnx.Node{OpType: "Identity", Input: []string{"x"}, Output: []string{"same"}}),
	}})
	b.Output("r", onnx.TypeOf(d, 3))
	return finish(t, b)
}

// divideInFunction does so inside a function of the model.
func divideInFunction(t *testing.T, op string, d tensor.DType) *onnx.Model {
	b := onnx.NewBuilder("function", opset)
	b.Input("x", onnx.TypeOf(d, 3))
	b.Input("y", onnx.TypeOf(d, 3))
	b.Append(&onnx.Node{Name: "call", Domain: "enginetest", OpType: "Quotient", Input: []string{"x", "y"}, Output: []string{"r"}})
	b.Output("r", onnx.TypeOf(d, 3))
	m := finish(t, b)
	m.SetOpset("enginetest", 1)
	m.Functions = []*onnx.Function{{
		Name: "Quotient", Domain: "enginetest", Input: []string{"a", "b"}, Output: []string{"q"},
		OpsetImport: []*onnx.OperatorSet{{Version: opset}}, Node: []*onnx.Node{quotient(op, "a", "b")},
	}}
	return m
}

// integers makes a tensor of an integer type of at least 8 bits.
func integers(d tensor.DType, v []int64) *tensor.Tensor {
	out := tensor.New(d, len(v))
	size := d.Size()
	for i, x := range v {
		for k := range size {
			out.Bytes()[i*size+k] = byte(x >> (8 * k))
		}
	}
	return out
}

// numbers reads such a tensor.
func numbers(t *tensor.Tensor) []int64 {
	out := make([]int64, t.Len())
	size := t.DType().Size()
	for i := range out {
		for k := range size {
			out[i] |= int64(t.Bytes()[i*size+k]) << (8 * k)
		}
		if shift := 64 - 8*size; t.DType() != tensor.Uint8 && t.DType() != tensor.Uint16 && t.DType() != tensor.Uint32 {
			out[i] = out[i] << shift >> shift
		}
	}
	return out
}
