package app

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// rooted is y = sqrt(relu(x·w)): finite everywhere, but its gradient is not where relu gives 0.
func rooted(t *testing.T) string {
	return apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		b.SetScope("/net/")
		h := b.Op("Relu", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})})
		return []onnx.Value{b.Rename(b.Op("Sqrt", []onnx.Value{h}), "y")}
	}))
}

// logged is y = log(x)·0, whose first value that is not finite is an infinity and whose next is
// NaN.
func logged(t *testing.T) string {
	return apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		l := b.Op("Log", []onnx.Value{x})
		y := b.Op("Mul", []onnx.Value{l, b.Float(0)})
		return []onnx.Value{b.Rename(b.Op("MatMul", []onnx.Value{y, w}), "y")}
	}))
}

func TestGradTrace(t *testing.T) {
	t.Parallel()
	for _, engine := range apptest.Engines() {
		run := func(code int, args ...string) gradTrace {
			t.Helper()
			r := apptest.Run(t, append([]string{"grad", "trace", "--json", "--engine", engine}, args...)...)
			if r.Code != code {
				t.Fatalf("%v: exit status %d, expected %d\n%s%s", args, r.Code, code, r.Out, r.Err)
			}
			got := apptest.Decode[gradTrace](t, r.Out)
			if got.OK != (code == 0) || got.OK != (got.First == nil) || got.Engine != engine || got.Values == 0 {
				t.Errorf("%v: %+v", args, got)
			}
			return got
		}
		// Finite forward, infinite backward: the finding lies in the gradient and is traced to its
		// forward node.
		run(0, rooted(t), "x=zeros", "--bind", "batch=2")
		run(0, rooted(t), "x=ones", "--bind", "batch=2")
		got := run(1, rooted(t), "x=zeros", "--bind", "batch=2", "--grad")
		if got.First.Range.NonFinite() == 0 || got.ForwardNode != "/net/Sqrt" || len(got.First.Inputs) == 0 || !strings.Contains(got.First.Node, "grad//net/Sqrt/") {
			t.Errorf("gradient of a root at 0: %+v", got)
		}
		got = run(1, logged(t), "x=zeros", "--bind", "batch=2")
		if f := got.First; f.Value != "Log" || f.Op != "Log" || f.Range.NegInf != 8 || f.Inputs[0].Value != "x" || f.Inputs[0].Range.Max != 0 {
			t.Errorf("logarithm of 0: %+v", got.First)
		}
		if got.FirstNaN == nil || got.FirstNaN.Value != "Mul" || got.FirstNaN.Range.NaN != 8 {
			t.Errorf("first NaN: %+v", got.FirstNaN)
		}
		if got = run(1, logged(t), "x=zeros", "--bind", "batch=2", "--nan"); got.First.Value != "Mul" {
			t.Errorf("NaN only: %+v", got.First)
		}
		// Scores that are masked with minus infinity are meant to be infinite.
		masked := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
			mask := b.Const(tensor.Of([]float32{0, 0, float32(math.Inf(-1)), 0}, 4))
			return []onnx.Value{b.Op("Softmax", []onnx.Value{b.Op("Add", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), mask})})}
		}))
		if got = run(0, masked, "--bind", "batch=2", "--grad"); !slices.Contains(got.Masks, "Add") || len(got.InfiniteConstants) != 1 {
			t.Errorf("masked scores: %+v", got.Report)
		}
		run(0, torchFixtures+"/encoder_attention/model.onnx", torchFixtures+"/encoder_attention", "--grad")
	}
	r := apptest.Run(t, "grad", "trace", logged(t), "x=zeros", "--bind", "batch=2", "--all", "--engine", "portable")
	for _, s := range []string{`first value that is not finite: "Log"`, `made by node "Log" (Log)`, `input   "x": float32[2 4] in [0, 0], mean 0`, `first NaN: "Mul"`} {
		if !strings.Contains(r.Out, s) {
			t.Errorf("the text does not say %q:\n%s", s, r.Out)
		}
	}
	if n := len(strings.Split(strings.SplitN(r.Out, "first value", 2)[0], "\n")) - 1; n != 7 {
		t.Errorf("--all listed %d values, expected 7:\n%s", n, r.Out)
	}
}

func TestNaNWeights(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		return []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})}
	})
	bad := tensor.New(tensor.Float32, 4, 4)
	bad.Float32s()[5] = float32(math.NaN())
	m.Graph.Initializer[0] = onnx.ProtoOf("w", bad)
	path := apptest.Save(t, m)
	r := apptest.Run(t, "grad", "trace", path, "--bind", "batch=2", "--engine", "portable")
	if r.Code != 1 || !strings.Contains(r.Out, `first value that is not finite: "w"`) || !strings.Contains(r.Out, "element 5") {
		t.Errorf("exit status %d:\n%s", r.Code, r.Out)
	}
	if r = apptest.Run(t, "graph", "check", path); r.Code != 1 || !strings.Contains(r.Out, `initializer "w"`) {
		t.Errorf("graph check: exit status %d:\n%s", r.Code, r.Out)
	}
	bounded := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		limit := b.Const(tensor.Of([]float32{1, float32(math.Inf(1)), 2, 3}, 4))
		return []onnx.Value{b.Op("Min", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), limit})}
	}))
	apptest.Says(t, apptest.Succeed(t, "graph", "check", bounded), "is valid")
	apptest.Refuse(t, []string{"compare", path, "--bind", "batch=2", "--engines", enginePair()}, `"w"`, "NaN")
	apptest.Refuse(t, []string{"grad", "build", path, "--bind", "batch=2", "-o", path + ".g"}, `"w"`, "NaN")
}

// npyFile writes a float32 matrix as NumPy does.
func npyFile(t *testing.T, rows, cols int, v ...float32) string {
	t.Helper()
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", rows, cols)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(head)))
	b = append(b, head...)
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInputs(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		i := b.Input("index", onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}})
		h := b.Op("Gather", []onnx.Value{w, i})
		return []onnx.Value{b.Rename(b.Op("Add", []onnx.Value{x, h}), "y")}
	})
	model := apptest.Save(t, m)
	x := npyFile(t, 2, 4, 1, 2, 3, 4, 5, 6, 7, 8)
	dir := t.TempDir()
	pb := filepath.Join(dir, "input_0.pb")
	if err := onnx.WriteTensor(pb, "index", tensor.Of([]int64{3, 0}, 2)); err != nil {
		t.Fatal(err)
	}
	unnamed := filepath.Join(t.TempDir(), "i.pb")
	if err := onnx.WriteTensor(unnamed, "", tensor.Of([]int64{3, 0}, 2)); err != nil {
		t.Fatal(err)
	}
	// w's rows 3 and 0 are 0.5 … 0.875 and -1 … -0.625, so y spans 1.5 … 7.375.
	for _, args := range [][]string{
		{x, pb}, {"x=" + x, "index=" + pb}, {pb, x}, {"x=" + x, dir}, {x, unnamed}, {"--input", "x=" + x, "--input", pb},
	} {
		out := apptest.Succeed(t, append([]string{"grad", "trace", model, "--all", "--engine", "portable"}, args...)...)
		if !strings.Contains(out, "float32[2 4] in [1.5, 7.375]") {
			t.Errorf("%v: y has other values:\n%s", args, out)
		}
	}
	trace := func(args ...string) string {
		return apptest.Succeed(t, append([]string{"grad", "trace", model, "--all", "--engine", "portable", "--bind", "batch=5"}, args...)...)
	}
	if a, b, c := trace("--seed", "1"), trace("--seed", "1"), trace("--seed", "2"); a != b || a == c {
		t.Errorf("a seed does not decide the inputs:\n%s\n%s\n%s", a, b, c)
	}
	for kind, want := range sorted.All(map[string]string{"x=ones": "float32[5 4] in [1, 1]", "x=zeros": "float32[5 4] in [0, 0]", "index=3..4": "int64[5] in [3, 3]"}) {
		if out := trace(kind); !strings.Contains(out, want) {
			t.Errorf("%s: expected %s in\n%s", kind, want, out)
		}
	}
	text := filepath.Join(t.TempDir(), "x.pb")
	if err := os.WriteFile(text, []byte("hello, this is no tensor"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{x, "--bind", "batch=3"}, "expected float32[3,4]"},
		{[]string{"index=" + x}, "expected int64[batch], got float32[2 4]"},
		{[]string{x, "x=" + x}, "given twice"},
		{[]string{"z=" + x}, "no such input; it has x, index"},
		{[]string{"x=gaussian"}, "expected a file, normal, zeros, ones or LO..HI"},
		{[]string{text}, text},
		{[]string{t.TempDir()}, "no input_0.pb"},
		{[]string{x + "x"}, "no such file"},
		{[]string{x, pb, unnamed}, "have values already"},
		{[]string{"--bind", "batch=100000000000"}, "more than"},
		{[]string{"--bind", "batch=2", "--bind", "batch=3"}, "given as 2 and as 3"},
		{[]string{"--bind", "batch=-2"}, "expected NAME=NUMBER"},
	} {
		apptest.Refuse(t, append([]string{"grad", "trace", model}, c.args...), c.says)
	}
}
