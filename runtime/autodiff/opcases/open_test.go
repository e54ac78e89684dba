package opcases_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// An opening says which extents of a model's inputs are not known before a run.
type opening struct {
	name string
	// open reports whether an axis of an input is meant; closed lists the operators with rules that
	// need such an extent as a number, with the number of their cases.
	open   func(input, axis, rank int) bool
	closed map[string]int
}

var openings = []opening{
	{"rows", func(input, axis, _ int) bool { return input == 0 && axis == 0 },
		numeric(map[string]int{"Conv": 3, "DFT": 1, "SplitToSequence": 3})},
	{"last", func(input, axis, rank int) bool { return input == 0 && axis == rank-1 },
		numeric(map[string]int{"DFT": 12, "NegativeLogLikelihoodLoss": 4, "SoftmaxCrossEntropyLoss": 8})},
	{"all", func(_, _, _ int) bool { return true },
		numeric(map[string]int{"Conv": 23, "ConvTranspose": 11, "DFT": 12, "DepthToSpace": 1, "GatherND": 3,
			"NegativeLogLikelihoodLoss": 5, "ReduceL1": 2, "ReduceL2": 2, "ReduceLogSum": 2, "ReduceLogSumExp": 2, "ReduceMax": 2,
			"ReduceMean": 2, "ReduceMin": 2, "ReduceProd": 2, "ReduceSum": 2, "ReduceSumSquare": 2, "Scan": 4, "SoftmaxCrossEntropyLoss": 10, "SplitToSequence": 3})},
}

// numeric returns the cases of the operators whose rules need the numbers of whole shapes, and
// others.
func numeric(others map[string]int) map[string]int {
	m := map[string]int{"Attention": 17, "AveragePool": 10, "CausalConvWithState": 3, "CenterCropPad": 4, "Col2Im": 4, "Conv": 2,
		"ConvTranspose": 4, "CumProd": 5, "Det": 5, "Einsum": 3, "GRU": 10, "GridSample": 13, "LRN": 3, "LSTM": 14,
		"LinearAttention": 4, "LpPool": 6, "MaxRoiPool": 3, "MaxUnpool": 3, "RNN": 10, "Resize": 23, "RoiAlign": 3,
		"RotaryEmbedding": 4, "STFT": 3, "TensorScatter": 4}
	maps.Copy(m, others)
	return m
}

// TestOpenShapes differentiates all cases with extents that are not known before a run and compares
// with the gradients of static shapes: the same numbers, or an error that says what is missing. The
// graphs are those of every engine; native ones run them where all extents are open.
func TestOpenShapes(t *testing.T) {
	longtest.Slow(t)
	testOpenShapes(t, 1)
}

// TestOpenShapesOnEveryEngine is TestOpenShapes of all openings on native engines.
func TestOpenShapesOnEveryEngine(t *testing.T) {
	longtest.Nightly(t)
	testOpenShapes(t, len(openings))
}

func testOpenShapes(t *testing.T, onNative int) {
	for i, o := range openings {
		var engines []engine.Compiler
		if i >= len(openings)-onNative {
			engines = native(t)
		}
		for _, c := range append(engines, portable.New()) {
			t.Run(o.name+"/"+c.Name(), func(t *testing.T) {
				defer c.Close()
				openShapes(t, c, o)
			})
		}
	}
}

func openShapes(t *testing.T, c engine.Compiler, o opening) {
	ran, compared, refused := 0, 0, map[string]int{}
	for _, k := range opcases.All() {
		if *onlyOp != "" && k.Op != *onlyOp || len(k.Deviating) > 0 || k.String() == "MaxPool/2d ceil" {
			continue // On ONNX Runtime these have other shapes than the specification says.
		}
		n, err := open(t.Context(), c, k, o)
		switch {
		case err != nil && strings.Contains(err.Error(), "must be known before a run: it depends on the data"):
			refused[k.Op]++
		case k.Op == "SplitToSequence" && errors.As(err, new(*autodiff.UnsupportedError)):
			refused[k.Op]++ // How many tensors a sequence holds is not known either.
		case err != nil:
			t.Errorf("%v: %v", k, err)
		default:
			ran, compared = ran+1, compared+n
		}
	}
	t.Logf("%d cases, %d gradients", ran, compared)
	if *onlyOp == "" && (ran < 660 || compared < 880) {
		t.Errorf("%d cases and %d gradients compared", ran, compared)
	}
	if *onlyOp == "" && !maps.Equal(refused, o.closed) {
		t.Errorf("refused: %#v", refused)
	}
}

// open compares the gradients of one case, and returns their number.
func open(ctx context.Context, c engine.Compiler, k opcases.Case, opened opening) (int, error) {
	p, err := k.Problem()
	if err != nil {
		return 0, err
	}
	obj := autodiff.Objective{Wrt: p.Wrt}
	for _, out := range p.Outputs {
		obj.Losses = append(obj.Losses, autodiff.Loss{Value: out, Weight: 0.75})
	}
	o := autodiff.Options{Objectives: []autodiff.Objective{obj}, DropOutputs: true}
	static, err := autodiff.Grad(p.Model, o)
	if err != nil {
		return 0, err
	}
	m := p.Model.ShallowClone()
	for i, v := range m.Graph.Input {
		t, _ := v.TensorType()
		for a := range t.Dims {
			if opened.open(i, a, len(t.Dims)) {
				t.Dims[a] = onnx.Symbol("")
			}
		}
		m.Graph.Input[i] = onnx.NewValueInfo(onnx.Value(v.Name), t)
	}
	for i, v := range m.Graph.Output {
		t, _ := v.TensorType()
		m.Graph.Output[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
	}
	dynamic, err := autodiff.Grad(m, o)
	if err != nil {
		return 0, err
	}
	want, err := gradcheck.Run(ctx, c, static.Model, p.Inputs)
	if err != nil {
		return 0, fmt.Errorf("static: %w", err)
	}
	got, err := gradcheck.Run(ctx, c, dynamic.Model, p.Inputs)
	if err != nil {
		return 0, err
	}
	for _, out := range static.Outputs[0] {
		a, b := got[out.Name], want[out.Name]
		if a == nil || a.String() != b.String() {
			return 0, fmt.Errorf("gradient of %q is %v, with static shapes %v", out.Wrt, a, b)
		}
		if b.DType() != tensor.Float32 {
			continue
		}
		most := 1.0
		for _, x := range b.Float32s() {
			most = max(most, math.Abs(float64(x)))
		}
		for i, x := range b.Float32s() {
			if d := math.Abs(float64(x) - float64(a.Float32s()[i])); !(d <= 2e-5*most) && math.Float32bits(x) != math.Float32bits(a.Float32s()[i]) {
				return 0, fmt.Errorf("gradient of %q element %d is %v, with static shapes %v", out.Wrt, i, a.Float32s()[i], x)
			}
		}
	}
	return len(static.Outputs[0]), nil
}
