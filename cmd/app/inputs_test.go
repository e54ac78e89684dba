package app

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestRangesOfWholeNumbers: numbers of a range are drawn only where the element type has all of
// them.
func TestRangesOfWholeNumbers(t *testing.T) {
	t.Parallel()
	cases := 0
	for _, c := range []struct {
		of   tensor.DType
		kind string
		ok   bool
	}{
		{tensor.Int8, "-128..128", true}, {tensor.Int8, "-129..0", false}, {tensor.Int8, "0..129", false},
		{tensor.Uint8, "0..256", true}, {tensor.Uint8, "-1..5", false}, {tensor.Uint8, "0..257", false},
		{tensor.Bool, "0..2", true}, {tensor.Bool, "0..3", false}, {tensor.Int64, "-5..5", true}, {tensor.Float32, "-1000..1000", true},
	} {
		b := onnx.NewBuilder("m", 21)
		x := b.Input("x", onnx.TensorType{DType: c.of, Ranked: true, Dims: []onnx.Dim{onnx.Known(200)}})
		b.Output(b.Rename(b.Op("Identity", []onnx.Value{x}), "y"), onnx.TensorType{DType: c.of})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		f := inputFlags{inputs: []string{"x=" + c.kind}}
		in, err := f.feeds(m)
		if (err == nil) != c.ok {
			t.Errorf("%v of %s: %v", c.of, c.kind, err)
		}
		cases++
		if !c.ok || c.of != tensor.Int8 {
			continue
		}
		low, high := math.MaxInt8, math.MinInt8
		for _, v := range tensor.Data[int8](in["x"]) {
			low, high = min(low, int(v)), max(high, int(v))
		}
		if low > -100 || high < 100 {
			t.Errorf("%s gives %d to %d", c.kind, low, high)
		}
	}
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
}
