package artifact

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// model is y = x·w + k with a weight of the given number of rows, so that different k and rows give different files.
func model(t testing.TB, rows int, k float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("net", 18)
	batch := func(dims ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N")}}
		for _, n := range dims {
			tt.Dims = append(tt.Dims, onnx.Known(n))
		}
		return tt
	}
	w := tensor.New(tensor.Float32, rows, 2)
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(i%7) - 3
	}
	x := b.Input("x", batch(rows))
	y := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", w)})
	y = b.Rename(b.Op("Add", []onnx.Value{y, b.Initializer("k", tensor.Of([]float32{k}, 1))}), "y")
	b.Output(y, batch(2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func modelBytes(t testing.TB, rows int, k float32) []byte {
	t.Helper()
	text, err := onnx.Marshal(model(t, rows, k))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// golden are inputs and outputs of model.
func golden(rows int, k float32) *Golden {
	const n = 3
	x, y := tensor.New(tensor.Float32, n, rows), tensor.New(tensor.Float32, n, 2)
	for r := range n {
		for i := range rows {
			x.Float32s()[r*rows+i] = float32(r + i)
			for c := range 2 {
				y.Float32s()[r*2+c] += float32(r+i) * (float32((2*i+c)%7) - 3)
			}
		}
		y.Float32s()[r*2] += k
		y.Float32s()[r*2+1] += k
	}
	return &Golden{Inputs: map[string]*tensor.Tensor{"x": x}, Outputs: map[string]*tensor.Tensor{"y": y}}
}

func draft(t testing.TB, name string, k float32) Draft {
	t.Helper()
	return Draft{Manifest: Manifest{Name: name, Kind: "model"}, ModelBytes: modelBytes(t, 4, k), Golden: golden(4, k)}
}

// clock counts seconds from a fixed time.
func clock() func() time.Time {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Second)
		return at
	}
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func publish(t testing.TB, s *Store, d Draft) Version {
	t.Helper()
	v, err := s.Publish(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func resolve(t testing.TB, s *Store, ref string) Version {
	t.Helper()
	v, err := s.Resolve(ref)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verifyAll verifies every version of a store and returns how many there are.
func verifyAll(t testing.TB, dir string) int {
	t.Helper()
	s := open(t, dir, Options{MustExist: true})
	list, err := s.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestPublishedIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "store")
	s := open(t, dir, Options{Now: clock()})
	seed := uint64(1) << 63
	d := draft(t, "qtmrl/us-16", 1)
	parent := publish(t, s, draft(t, "encoder", 9))
	d.Aliases = []string{"best", "v1.0"}
	d.Files = []NewFile{{Title: "config.yaml", MediaType: "application/yaml", Data: []byte("seed: 1\n")}}
	d.Manifest.Inputs = []Port{{Name: "x", Description: "returns", Bounds: &Bounds{Low: []Bound{-1}, High: []Bound{Bound(math.Inf(1))}}}}
	d.Manifest.Metrics = map[string]float64{"validation/sharpe": 1.25, "b": -1}
	d.Manifest.Seed, d.Manifest.EnvStep, d.Manifest.CodeVersion = &seed, 1000, "v0.1"
	d.Manifest.Parents = []string{parent.Digest}
	d.Manifest.Features = []byte(`{"window": 20,   "order": ["open","close"]}`)
	v := publish(t, s, d)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("encoder"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed store: %v", err)
	}

	s = open(t, dir, Options{MustExist: true})
	for _, ref := range []string{"qtmrl/us-16", "qtmrl/us-16:best", "qtmrl/us-16:v1.0", "qtmrl/us-16@" + v.Digest, v.Digest, v.Digest[:15], v.String()} {
		got := resolve(t, s, ref)
		if got.Digest != v.Digest || !slices.Equal(got.Aliases, []string{"best", "latest", "v1.0"}) || got.Published.Second() != 2 {
			t.Errorf("%s: %s with %v of %v", ref, got, got.Aliases, got.Published)
		}
	}
	m := resolve(t, s, "qtmrl/us-16").Manifest
	if m.Schema != Schema || m.IR == 0 || m.Opsets["ai.onnx"] != 18 || *m.Seed != seed || m.Metrics["validation/sharpe"] != 1.25 || m.Golden.Rows != 3 || m.Golden.Tolerance != DefaultTolerance {
		t.Errorf("manifest %+v", m)
	}
	x := m.Inputs[0]
	if x.DType != "float32" || !slices.Equal(x.Shape, []int{-1, 4}) || !slices.Equal(x.Axes, []string{"N", ""}) || x.Description != "returns" || x.Bounds.High[0] != Bound(math.Inf(1)) || m.Outputs[0].Name != "y" {
		t.Errorf("ports %+v %+v", m.Inputs, m.Outputs)
	}
	if !strings.Contains(string(m.Features), `"window": 20`) {
		t.Errorf("features %s", m.Features)
	}
	got, err := v.Model()
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := onnx.Marshal(got); !bytes.Equal(text, d.ModelBytes) {
		t.Error("the model has changed")
	}
	if text, err := os.ReadFile(v.ModelFile()); err != nil || !bytes.Equal(text, d.ModelBytes) {
		t.Errorf("model file: %v", err)
	}
	g, err := v.Golden()
	if err != nil || !bytes.Equal(g.Inputs["x"].Bytes(), d.Golden.Inputs["x"].Bytes()) || !bytes.Equal(g.Outputs["y"].Bytes(), d.Golden.Outputs["y"].Bytes()) {
		t.Errorf("golden %v, %v", g, err)
	}
	if n := verifyAll(t, dir); n != 2 {
		t.Errorf("%d versions", n)
	}
	line, err := s.Lineage("qtmrl/us-16:best")
	if err != nil || len(line) != 2 || line[1].Version.Manifest.Name != "encoder" || line[1].Depth != 1 {
		t.Errorf("lineage %v, %v", line, err)
	}
}
