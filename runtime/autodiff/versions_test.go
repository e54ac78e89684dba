package autodiff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// spaceToDepth makes a model of one operator of an opset.
func spaceToDepth(t *testing.T, opset int, attrs ...*onnx.Attribute) (m *onnx.Model, y string) {
	t.Helper()
	b := onnx.NewBuilder("blocks", opset)
	v := b.Op("SpaceToDepth", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 1, 2, 4, 2))}, append(attrs, onnx.AttrInt("blocksize", 2))...)
	b.Output(v, onnx.TypeOf(tensor.Float32, 1, 8, 2, 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m, string(v)
}

// SpaceToDepth only moves elements, so that its gradient moves its result back.
func TestSpaceToDepthMovesBackInItsMode(t *testing.T) {
	x := tensor.New(tensor.Float32, 1, 2, 4, 2)
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(i)
	}
	for _, mode := range []string{"", "DCR", "CRD"} {
		var attrs []*onnx.Attribute
		if mode != "" {
			attrs = append(attrs, onnx.AttrStr("mode", mode))
		}
		m, y := spaceToDepth(t, 28, attrs...)
		g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: y, Cotangent: "dy"}}, Wrt: []string{"x"}}}})
		if err != nil {
			t.Fatalf("mode %q: %v", mode, err)
		}
		forward := make([]*tensor.Tensor, 1)
		run(t, m, forward, x)
		both := make([]*tensor.Tensor, 2)
		run(t, g.Model, both, x, forward[0])
		if !slices.Equal(both[1].Float32s(), x.Float32s()) {
			t.Errorf("mode %q: %v comes back as %v", mode, forward[0].Float32s(), both[1].Float32s())
		}
	}
}

func run(t *testing.T, m *onnx.Model, out []*tensor.Tensor, in ...*tensor.Tensor) {
	t.Helper()
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
}

// Operators without a rule are refused by the names of operator and version, and so are words
// that the standard does not know.
func TestOtherVersionsAreRefused(t *testing.T) {
	grad := func(m *onnx.Model, y string) error {
		_, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: y}}, Wrt: []string{"x"}}}})
		return err
	}
	newer, y := spaceToDepth(t, schema.Latest("")+1)
	if err := grad(newer, y); err == nil || !strings.Contains(err.Error(), "operator SpaceToDepth is known up to opset 28") {
		t.Errorf("opset %d: %v", schema.Latest("")+1, err)
	}
	err := &autodiff.UnsupportedError{Node: "n", Op: "SpaceToDepth", Opset: 27, Versions: []int{1, 28}}
	if want := "n: operator SpaceToDepth has no gradient rule for version 13, which opset 27 has; versions [1 28] have one"; err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
	odd, y := spaceToDepth(t, 28, onnx.AttrStr("mode", "RCD"))
	if err := grad(odd, y); err == nil || !strings.Contains(err.Error(), `attribute "mode" is "RCD", DCR, CRD expected`) {
		t.Errorf("mode RCD: %v", err)
	}
}
