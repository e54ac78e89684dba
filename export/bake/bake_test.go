package bake

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// network is y = x·w, z = the larger column of y, for rows of 3, with its parameters.
func network(t *testing.T) (*onnx.Model, *models.Network, *models.Params) {
	t.Helper()
	b := onnx.NewBuilder("net", 18)
	batch := func(d tensor.DType, dims ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N")}}
		for _, n := range dims {
			tt.Dims = append(tt.Dims, onnx.Known(n))
		}
		return tt
	}
	w := tensor.Of([]float32{1, -2, 0.5, 0.25, -1, 3}, 3, 2)
	y := b.Rename(b.Op("MatMul", []onnx.Value{b.Input("x", batch(tensor.Float32, 3)), b.Initializer("w", w)}), "y")
	z := b.Rename(b.Op("ArgMax", []onnx.Value{y}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)), "z")
	b.Output(y, batch(tensor.Float32, 2))
	b.Output(z, batch(tensor.Int64))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	net, values, err := models.FromModel(m, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { params.Close() })
	if err := params.Load(values); err != nil {
		t.Fatal(err)
	}
	return m, net, params
}

func samples(rows int) []*tensor.Tensor {
	x := tensor.New(tensor.Float32, rows, 3)
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(math.Sin(float64(i)))
	}
	return []*tensor.Tensor{x}
}

func TestWriteProvesAndKeepsTheLineage(t *testing.T) {
	m, net, params := network(t)
	for _, c := range testengines.All(t) {
		path := filepath.Join(t.TempDir(), "out.onnx")
		r, err := Write(t.Context(), path, c, Pair{Network: net, Params: params, Baked: m, Samples: samples(100)}, map[string]string{"seed": "7", "task": "test"})
		if err != nil {
			t.Fatal(err)
		}
		// 4 batches of 1 and of 7 rows, and one of all.
		if rows := 4 + 4*7 + 100; r.Rows != rows || r.Values != 3*rows || r.MaxError > 1e-6 {
			t.Errorf("%s: report %+v, want %d rows", c.Name(), r, rows)
		}
		got, err := onnx.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range sorted.All(map[string]string{"onnxrl.seed": "7", "onnxrl.task": "test", "onnxrl.parity": "max error"}) {
			if v, ok := got.Meta(key); !ok || !strings.Contains(v, want) {
				t.Errorf("%s: metadata %s is %q", c.Name(), key, v)
			}
		}
		if len(m.MetadataProps) != 0 {
			t.Error("the model itself has changed")
		}
	}
}

// TestEveryRowIsProved counts the rows of blocks of several sizes.
func TestEveryRowIsProved(t *testing.T) {
	m, net, params := network(t)
	v, err := NewProver(portable.New(), Pair{Network: net, Params: params, Baked: m})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, k := range []struct{ rows, compared int }{
		{2500, 4 + 4*7 + 2500}, {1024, 4 + 28 + 1024}, {1, 3}, {8, 4 + 7 + 8}, {20, 4 + 14 + 20},
	} {
		if err := v.Add(t.Context(), samples(k.rows), nil, nil); err != nil {
			t.Fatal(err)
		}
		want += k.compared
		if r, err := v.Report(); err != nil || r.Rows != want {
			t.Errorf("after %d rows: %d compared, want %d, %v", k.rows, r.Rows, want, err)
		}
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func TestFewRowsAreEnough(t *testing.T) {
	m, net, params := network(t)
	r, err := Prove(t.Context(), portable.New(), Pair{Network: net, Params: params, Baked: m, Samples: samples(3)})
	if err != nil || r.Rows != 9 {
		t.Errorf("%+v, %v; want three rows one by one and twice together", r, err)
	}
}

// TestDifferencesAreFound changes one thing of the baked model at a time; nothing may be written.
func TestDifferencesAreFound(t *testing.T) {
	set := func(i int, v float32) func(m *onnx.Model) {
		return func(m *onnx.Model) {
			x := tensor.Of([]float32{1, -2, 0.5, 0.25, -1, 3}, 3, 2)
			x.Float32s()[i] = v
			m.Graph.Initializer[0] = onnx.ProtoOf("w", x)
		}
	}
	cases := []struct {
		name string
		edit func(m *onnx.Model)
		want string
	}{
		{"a weight", set(0, 1.001), `output "y", batch 1, row`},
		{"a weight that is not a number", set(3, float32(math.NaN())), `the baked one NaN`},
		{"an integer output", func(m *onnx.Model) {
			for _, n := range m.Graph.Node {
				if n.OpType == "ArgMax" {
					n.OpType = "ArgMin"
				}
			}
		}, `output "z"`},
		{"the order of outputs", func(m *onnx.Model) { slices.Reverse(m.Graph.Output) }, `output "y" is float32[1 2] when trained, and the baked model has "z"`},
		{"a missing output", func(m *onnx.Model) { m.Graph.Output = m.Graph.Output[:1] }, "2 outputs when trained and 1 when baked"},
		{"a fixed batch", func(m *onnx.Model) {
			m.Graph.Input[0].Type = onnx.NewValueInfo("", onnx.TypeOf(tensor.Float32, 1, 3)).Type
		}, "baked model"},
	}
	for _, c := range testengines.All(t) {
		for _, k := range cases {
			m, net, params := network(t)
			k.edit(m)
			path := filepath.Join(t.TempDir(), "out.onnx")
			_, err := Write(t.Context(), path, c, Pair{Network: net, Params: params, Baked: m, Samples: samples(100)}, nil)
			if err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%s, %s: error %v, want %q", c.Name(), k.name, err, k.want)
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("%s, %s: the file was written", c.Name(), k.name)
			}
		}
	}
}

func TestSamplesAreChecked(t *testing.T) {
	m, net, params := network(t)
	for _, s := range [][]*tensor.Tensor{nil, {nil}, samples(0), append(samples(2), samples(2)...), {tensor.Scalar(float32(1))}} {
		if _, err := Prove(t.Context(), portable.New(), Pair{Network: net, Params: params, Baked: m, Samples: s}); err == nil || !strings.Contains(err.Error(), "samples") {
			t.Errorf("%v: error %v", s, err)
		}
	}
}
