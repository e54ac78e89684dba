package loss

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestLabelsOutsideFail: neither a loss nor its gradient takes a negative label for a class counted
// from the end, on any engine and whichever way the loss is written.
func TestLabelsOutsideFail(t *testing.T) {
	own := func(op string) *onnx.Model {
		b := onnx.NewBuilder("own", 18)
		x := b.Input("x", onnx.TypeOf(tensor.Float32, 2, 3))
		y := b.Input(TargetInput("y"), onnx.TypeOf(tensor.Int64, 2))
		b.Output(b.Rename(b.Op(op, []onnx.Value{x, y}), Output), onnx.TypeOf(tensor.Float32))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	attached, _, err := Attach(identity(t, 3), []Term{{Output: "y", Kind: "cross_entropy"}})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	for name, m := range sorted.All(map[string]*onnx.Model{"cross_entropy": attached, "SoftmaxCrossEntropyLoss": own("SoftmaxCrossEntropyLoss"), "NegativeLogLikelihoodLoss": own("NegativeLogLikelihoodLoss")}) {
		g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: Output}}, Wrt: []string{"x"}}}, Bind: map[string]int{"batch": 2}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, eng := range testengines.All(t) {
			for _, backward := range []bool{false, true} {
				graph := m
				if backward {
					graph = g.Model
				}
				s, err := eng.Compile(graph, engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, label := range []int64{0, 2, -1, -3, 3} {
					in := make([]*tensor.Tensor, len(s.Inputs()))
					for i, p := range s.Inputs() {
						in[i] = map[string]*tensor.Tensor{
							"x": tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3), TargetInput("y"): tensor.Of([]int64{1, label}, 2), WeightInput: tensor.Of([]float32{1, 1}, 2),
						}[p.Name]
					}
					err := s.Run(t.Context(), make([]*tensor.Tensor, len(s.Outputs())), in)
					if ok := label >= 0 && label < 3; ok != (err == nil) {
						t.Errorf("%s: error %v", fmt.Sprintf("%s on %s, backward %v, label %d", name, eng.Name(), backward, label), err)
					}
					runs++
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if want := 3 * 2 * 5 * len(testengines.All(t)); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}
