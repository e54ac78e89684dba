package network_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// reading is a model with an input of a rank, in a file.
func reading(t *testing.T, extents ...int) string {
	t.Helper()
	dims := []onnx.Dim{onnx.Symbol("batch")}
	for _, n := range extents {
		dims = append(dims, onnx.Known(n))
	}
	b := onnx.NewBuilder("reading", 17)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: dims})
	b.Output(b.Rename(b.Op("Flatten", []onnx.Value{x}), "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(12)}})
	m, err := b.Model()
	path := filepath.Join(t.TempDir(), "reading.onnx")
	if err == nil {
		err = onnx.Save(path, m, onnx.SaveOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMatricesAreFlattened says which observations are windows in time: those that the environment
// declares, and matrices for networks that read windows.
func TestMatricesAreFlattened(t *testing.T) {
	matrix := envs.Field{Name: "table", Space: envs.NewBox(-1, 1, 3, 4)}
	declared := matrix
	declared.Series = true
	n := 0
	for text, windows := range sorted.All(map[string]bool{
		"": false, "encoder: {kind: mlp}": false, "encoder: {kind: gru}": true, "policy: {kind: gru}": true,
		"encoder: {kind: file, path: " + reading(t, 12) + "}": false, "encoder: {kind: file, path: " + reading(t, 3, 4) + "}": true,
	}) {
		c := defaults()
		doc, err := configs.Parse("agent.yaml", []byte("hidden: [7]\n"+text+"\n"))
		if err == nil {
			err = doc.Decode(&c)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []envs.Field{matrix, declared} {
			spec := envs.Spec{Name: "toy", Observation: envs.Dict{field}, Action: envs.Discrete{N: 2}}
			f, err := c.Frame(spec, encoder.Kinds())
			if err != nil {
				t.Fatal(err)
			}
			if want := windows || field.Series; (f.Series == 0) != want || (len(f.Flat) == 0) != want {
				t.Errorf("%q, declared %v: a window %v, expected %v", text, field.Series, f.Series == 0, want)
			}
			n++
		}
		// A block of numbers is no window of assets either.
		block := envs.Spec{Name: "toy", Observation: envs.Dict{{Name: "block", Space: envs.NewBox(-1, 1, 2, 3, 2)}}, Action: envs.NewBox(-1, 1, 5)}
		if f, err := c.Frame(block, encoder.Kinds()); !windows && (err != nil || f.Assets != 0 || len(f.Flat) != 1) {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
	if n != 12 {
		t.Errorf("%d cases", n)
	}
}

// TestImagesAreNotFlattened refuses bytes of rank 3 where fully connected layers would read them.
func TestImagesAreNotFlattened(t *testing.T) {
	image := envs.Box{Of: tensor.Uint8, Dims: []int{3, 2, 2}, Low: []float64{0}, High: []float64{255}}
	for text, refused := range sorted.All(map[string]bool{"": true, "encoder: {kind: mlp}": true, "encoder: {kind: file, path: " + reading(t, 12) + "}": false}) {
		c := defaults()
		doc, err := configs.Parse("agent.yaml", []byte("hidden: [7]\n"+text+"\n"))
		if err == nil {
			err = doc.Decode(&c)
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Frame(envs.Spec{Name: "toy", Observation: envs.Dict{{Name: "camera", Space: image}}, Action: envs.Discrete{N: 2}}, encoder.Kinds())
		if err != nil {
			t.Fatal(err)
		}
		_, err = network.NewTorso(c, f, encoder.Kinds(), layer.Zeros())
		if refused != (err != nil) || refused && (!strings.Contains(err.Error(), `observation "camera" of toy is an image, uint8[3 2 2]`) || !strings.Contains(err.Error(), "mlp")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
