package app

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fixedModel takes 4 rows at once, as PyTorch writes a model unless told otherwise: a convolution
// with an opset's DequantizeLinear without axes, and a product.
func fixedModel(t *testing.T, channels int) string {
	t.Helper()
	b := onnx.NewBuilder("fixed", 11)
	weight := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		for i := range w.Float32s() {
			w.Float32s()[i] = float32(i%7-3) / 16
		}
		return b.Initializer(name, w)
	}
	x := b.Input("input", onnx.TypeOf(tensor.Float32, 4, 8, 3, 3))
	y := b.Op("Conv", []onnx.Value{x, weight("conv.weight", channels, 8, 3, 3)})
	y = b.Op("Reshape", []onnx.Value{y, b.Ints(4, channels)})
	y = b.Op("Add", []onnx.Value{y, b.Op("Gather", []onnx.Value{weight("table", 1024/channels+1, channels), b.Ints(5)})})
	b.Output(b.Rename(b.Op("Gemm", []onnx.Value{y, weight("fc.weight", 64, channels), weight("fc.bias", 64)}, onnx.AttrInt("transB", 1)), "output"), onnx.TypeOf(tensor.Float32, 4, 64))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fixed.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestExportFixedBatch exports a model with a batch of 4 in lower precision: it is checked 4 rows at
// a time, what stays float32 is listed, and int8 is refused where its nodes weigh more than it saves.
func TestExportFixedBatch(t *testing.T) {
	t.Parallel()
	path := fixedModel(t, 64)
	for _, precision := range []string{"fp16", "int8"} {
		x := exported(t, path, "--precision", precision, "--rows", "10", "--out", filepath.Join(t.TempDir(), "x.onnx"))
		if x.Batch != 4 || x.Rows != 12 || x.Loss == nil || x.Loss.Rows != 12 || x.Loss.MaxDelta > 0.1 || len(x.Files) != 1 || x.Models[1].Bytes >= x.Models[0].Bytes {
			t.Errorf("%s: %+v, loss %+v", precision, x, x.Loss)
		}
		switch {
		case x.KeptSmall != 1:
			t.Errorf("%s: %d small weights stay float32", precision, x.KeptSmall)
		case precision == "fp16" && len(x.Kept) != 0, precision == "int8" && (len(x.Kept) != 1 || x.Kept[0].Name != "table"):
			t.Errorf("%s: %+v stay float32", precision, x.Kept)
		}
	}
	out := filepath.Join(t.TempDir(), "triton")
	apptest.Refuse(t, []string{"export", path, "--format", "triton", "--out", out}, `input "input" takes 4 rows at once: --format triton needs a batch that is free`)
	apptest.Refuse(t, []string{"export", fixedModel(t, 16), "--precision", "int8", "--out", out + ".onnx", "--rows", "4"}, "int8 would take ", "fp16 takes ", "use --precision fp16")
}
