package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestBatchIsOne: compare, grad build and grad trace run on a batch of one where nobody says
// another number, whatever the batch is called; other extents still need one.
func TestBatchIsOne(t *testing.T) {
	t.Parallel()
	file := func(dims ...onnx.Dim) string {
		b := onnx.NewBuilder("batch", 18)
		x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: append(dims, onnx.Known(3))})
		w := tensor.New(tensor.Float32, 3, 2)
		for i := range w.Float32s() {
			w.Float32s()[i] = float32(i) - 2.5
		}
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", w)}), "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: append(dims, onnx.Known(2))})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	out := filepath.Join(t.TempDir(), "g.onnx")
	commands := [][]string{
		{"compare", "MODEL", "--engines", "portable,portable"}, {"compare", "MODEL", "--engines", "portable,portable", "--grad"},
		{"grad", "trace", "MODEL", "--engine", "portable"}, {"grad", "trace", "MODEL", "--engine", "portable", "--grad"}, {"grad", "build", "MODEL", "-o", out},
	}
	runs := 0
	for _, c := range []struct {
		dims []onnx.Dim
		bind []string
		want string // the error, empty: none
		says string // what grad build says
	}{
		{[]onnx.Dim{onnx.Symbol("batch")}, nil, "", "batch is 1"},
		{[]onnx.Dim{onnx.Symbol("s77")}, nil, "", "s77 is 1"},
		{[]onnx.Dim{onnx.Symbol("")}, nil, "", ""},
		{[]onnx.Dim{onnx.Symbol("time"), onnx.Symbol("batch_size")}, []string{"--bind", "time=4"}, "", "batch_size is 1"},
		{[]onnx.Dim{onnx.Symbol("time"), onnx.Symbol("batch_size")}, nil, "--bind time=NUMBER", ""},
		{[]onnx.Dim{onnx.Symbol("N"), onnx.Symbol("time")}, nil, "--bind time=NUMBER", ""},
		{[]onnx.Dim{onnx.Symbol("N")}, []string{"--bind", "N=5"}, "", ""},
	} {
		for _, command := range commands {
			args := append([]string{}, command...)
			for i := range args {
				if args[i] == "MODEL" {
					args[i] = file(c.dims...)
				}
			}
			r := apptest.Run(t, append(args, c.bind...)...)
			switch {
			case c.want != "" && (r.Code == 0 || !strings.Contains(r.Err, c.want)):
				t.Errorf("%v of %v: exit status %d, want %q:\n%s", command, c.dims, r.Code, c.want, r.Err)
			case c.want == "" && r.Code != 0:
				t.Errorf("%v of %v: exit status %d\n%s", command, c.dims, r.Code, r.Err)
			case command[1] == "build" && c.want == "" && (!strings.Contains(r.Err, c.says) || c.says == "" && strings.Contains(r.Err, "is 1")):
				t.Errorf("%v of %v says %q, want %q", command, c.dims, r.Err, c.says)
			}
			runs++
		}
	}
	if runs != 35 {
		t.Errorf("%d runs", runs)
	}
}
