package autodiff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// many returns a model of one node with n inputs, or of n nodes in a row.
func many(op string, n int) *onnx.Model {
	b := onnx.NewBuilder("many", 18)
	in := make([]onnx.Value, n)
	for i := range in {
		in[i] = b.Input(fmt.Sprintf("x%d", i), onnx.TypeOf(tensor.Float32, 2))
	}
	extent := 2
	var y onnx.Value
	switch op {
	case "Concat":
		extent = 2 * n
		y = b.Op(op, in, onnx.AttrInt("axis", 0))
	case "Add":
		y = in[0]
		for _, x := range in[1:] {
			y = b.Op(op, []onnx.Value{y, x})
		}
	case "Split":
		all := b.Op("Concat", in, onnx.AttrInt("axis", 0))
		y = b.Op("Sum", b.OpN(op, "", n, []onnx.Value{all}, onnx.AttrInt("axis", 0), onnx.AttrInt("num_outputs", n)))
	default:
		y = b.Op(op, in)
	}
	b.Output(y, onnx.TypeOf(tensor.Float32, extent))
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m
}

// gradientTime is how long it takes to differentiate m with respect to all inputs and to check it.
func gradientTime(t *testing.T, m *onnx.Model) time.Duration {
	t.Helper()
	var wrt []string
	for _, v := range m.Graph.Input {
		wrt = append(wrt, v.Name)
	}
	start := time.Now()
	g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: m.Graph.Output[0].Name}}, Wrt: wrt}}})
	if err == nil {
		err = onnx.Check(g.Model)
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// TestManyInputs finds what takes the square of the number of a node's inputs, or of nodes: ten times
// as many take less than 30 times as long, where a square takes 100. A busy machine has three tries.
func TestManyInputs(t *testing.T) {
	testManyInputs(t, "Sum", "Concat")
}

// TestManyInputsOfEveryKind is TestManyInputs of the other operators.
func TestManyInputsOfEveryKind(t *testing.T) {
	longtest.Nightly(t)
	testManyInputs(t, "Max", "Mean", "Min", "Split", "Add")
}

func testManyInputs(t *testing.T, ops ...string) {
	for _, op := range ops {
		t.Run(op, func(t *testing.T) {
			size := longtest.Cases(t, 4000, 1000)
			few, lots := many(op, size), many(op, 10*size)
			var ratio float64
			for range 3 {
				base := max(gradientTime(t, few), gradientTime(t, few))
				if ratio = float64(gradientTime(t, lots)) / float64(base); ratio < 30 {
					return
				}
			}
			t.Errorf("ten times as many inputs took %.0f times as long, expected less than 30", ratio)
		})
	}
}
