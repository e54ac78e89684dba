package enginetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// labels: a loss takes the classes 0…C−1 and ignore_index, and refuses every other label; none is
// counted from the end.
func (s *suite) labels(t *testing.T) {
	e := s.open(t)
	scores := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	cases := 0
	for _, op := range []string{"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"} {
		for _, d := range []tensor.DType{tensor.Int64, tensor.Int32} {
			for _, ignore := range []int{0, -1, -100} { // 0: no attribute
				b := onnx.NewBuilder("labels", 17)
				in := []onnx.Value{b.Input("scores", onnx.TypeOf(tensor.Float32, 2, 3)), b.Input("labels", onnx.TypeOf(d, 2))}
				var attrs []*onnx.Attribute
				if ignore != 0 {
					attrs = append(attrs, onnx.AttrInt("ignore_index", ignore))
				}
				b.Output(b.Rename(b.Op(op, in, attrs...), "loss"), onnx.TypeOf(tensor.Float32))
				m, err := b.Model()
				if err != nil {
					t.Fatal(err)
				}
				session := compile(t, e, m, engine.Options{})
				for _, label := range []int{0, 2, -1, -3, 3, -100} {
					name := fmt.Sprintf("%s of %v labels, ignore_index %d, label %d", op, d, ignore, label)
					x := tensor.New(d, 2)
					if d == tensor.Int64 {
						x.Int64s()[1] = int64(label)
					} else {
						x.Int32s()[1] = int32(label)
					}
					out := make([]*tensor.Tensor, 1)
					err := session.Run(context.Background(), out, []*tensor.Tensor{scores, x})
					switch ok := label >= 0 && label < 3 || label == ignore; {
					case ok && err != nil:
						t.Errorf("%s: %v", name, err)
					case ok && math.IsNaN(float64(out[0].Float32s()[0])):
						t.Errorf("%s: the loss is NaN", name)
					case !ok && err == nil:
						t.Errorf("%s: accepted, the loss is %v", name, out[0].Float32s())
					}
					cases++
				}
			}
		}
	}
	if cases != 72 {
		t.Errorf("%d cases", cases)
	}
}
