package apptest

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Table is training data for fit: y = sin(2a) + b·c, rows of a, b, c, y.
func Table(rows int) [][]float32 {
	s := rng.New(11).Split("table").Stream()
	out := make([][]float32, rows)
	for i := range out {
		r := make([]float32, 4)
		s.FillUniform32(r, -1, 1)
		r[3] = float32(math.Sin(2*float64(r[0]))) + r[1]*r[2]
		out[i] = r
	}
	return out
}

// TableColumns are what the columns of Table are called in files.
var TableColumns = []string{"f.a", "f.b", "f.c", "label"}

// CSVFile writes the rows of Table to a file of the test's own and returns its path.
func CSVFile(t *testing.T, rows [][]float32) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.Join(TableColumns, ",") + "\n")
	for _, r := range rows {
		for i, v := range r {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		b.WriteByte('\n')
	}
	return Write(t, "table.csv", b.String())
}

// ParquetFile is CSVFile as Parquet.
func ParquetFile(t *testing.T, rows [][]float32) string {
	t.Helper()
	var fields []arrow.Field
	for _, c := range TableColumns {
		fields = append(fields, arrow.Field{Name: c, Type: arrow.PrimitiveTypes.Float32})
	}
	path := filepath.Join(t.TempDir(), "table.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := parquetfile.Create(f, arrow.NewSchema(fields, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for i, v := range r {
			w.Field(i).(*array.Float32Builder).Append(v)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// MLPModel writes the network x float32[batch,3] -> Gemm fc1 -> Tanh -> Gemm fc2 -> y
// float32[batch,1] and returns its path.
func MLPModel(t *testing.T) string { return MLPOf(t, 1) }

// MLPOf is MLPModel with y float32[batch,outputs].
func MLPOf(t *testing.T, outputs int) string {
	t.Helper()
	s := rng.New(5).Split("weights").Stream()
	b := onnx.NewBuilder("mlp", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(3)}})
	layer := func(name string, in onnx.Value, from, to int) onnx.Value {
		w, bias := tensor.New(tensor.Float32, to, from), tensor.New(tensor.Float32, to)
		s.FillNormal32(w.Float32s(), 0, 1/math.Sqrt(float64(from)))
		s.FillNormal32(bias.Float32s(), 0, 0.1)
		return b.Op("Gemm", []onnx.Value{in, b.Initializer(name+".weight", w), b.Initializer(name+".bias", bias)}, onnx.AttrInt("transB", 1))
	}
	y := b.Rename(layer("fc2", b.Op("Tanh", []onnx.Value{layer("fc1", x, 3, 16)}), 16, outputs), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(outputs)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return Save(t, m)
}

// FitArgs is a whole command line of fit; flags in more replace the usual ones.
func FitArgs(model, data string, more ...string) []string {
	args := []string{"fit", "-q", "--model", model, "--data", data}
	usual := []string{"--input", "x=f.*", "--target", "y=label", "--loss", "mse", "--epochs", "3", "--batch", "32", "--lr", "0.01", "--seed", "3"}
	for i := 0; i < len(usual); i += 2 {
		if !slices.Contains(more, usual[i]) {
			args = append(args, usual[i:i+2]...)
		}
	}
	return append(args, more...)
}
