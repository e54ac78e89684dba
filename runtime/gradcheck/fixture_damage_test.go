package gradcheck_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestDamage changes one thing at a time in a fixture that passes; each change must be noticed and
// named.
func TestDamage(t *testing.T) {
	rewrite := func(name string, f func(name string, x *tensor.Tensor) (string, *tensor.Tensor)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data", name)
			n, x, err := onnx.ReadTensor(path)
			if err != nil {
				t.Fatal(err)
			}
			n, x = f(n, x.Clone())
			if err := onnx.WriteTensor(path, n, x); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, n := range names {
				if err := os.Remove(filepath.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	add := func(d float32) func(string, *tensor.Tensor) (string, *tensor.Tensor) {
		return func(n string, x *tensor.Tensor) (string, *tensor.Tensor) {
			x.Float32s()[0] += d
			return n, x
		}
	}
	second := func(damage func(dir string) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			to := filepath.Join(dir, "data_2")
			if err := os.CopyFS(to, os.DirFS(filepath.Join(dir, "data"))); err != nil {
				t.Fatal(err)
			}
			if err := damage(to); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   string
	}{
		{"a gradient of a parameter", rewrite("grad_param_01.pb", add(0.01)), "param"},
		{"a gradient of an input", rewrite("grad_input_0.pb", add(-0.01)), "input"},
		{"an output", rewrite("output_0.pb", add(0.01)), "output"},
		{"a cotangent", rewrite("cotangent_0.pb", add(0.5)), "param"},
		{"an input", rewrite("input_0.pb", add(0.5)), "output"},
		{"a name that the model lacks", rewrite("grad_param_00.pb", func(_ string, x *tensor.Tensor) (string, *tensor.Tensor) { return "nothing", x }), "no such floating-point value"},
		{"a shape", rewrite("grad_param_00.pb", func(n string, x *tensor.Tensor) (string, *tensor.Tensor) { return n, x.Reshape(x.Len()) }), "expected float32["},
		{"no name", rewrite("grad_param_00.pb", func(_ string, x *tensor.Tensor) (string, *tensor.Tensor) { return "", x }), "no name"},
		{"the same name twice", rewrite("grad_param_00.pb", func(_ string, x *tensor.Tensor) (string, *tensor.Tensor) { return "1.bias", x }), ""},
		{"the shape of an input", rewrite("input_0.pb", func(n string, x *tensor.Tensor) (string, *tensor.Tensor) { return n, x.Reshape(1, x.Len()) }), "check fixture"},
		{"no model", remove("model.onnx"), "model.onnx"},
		{"no input", remove("data/input_0.pb"), "no data/input_"},
		{"no output", remove("data/output_0.pb"), "no data/output_"},
		{"no cotangent", remove("data/cotangent_0.pb"), "no data/cotangent_"},
		{"a second point of other values", second(func(dir string) error {
			path := filepath.Join(dir, "grad_param_01.pb")
			n, x, err := onnx.ReadTensor(path)
			if err != nil {
				return err
			}
			x = x.Clone()
			x.Float32s()[0]++
			return onnx.WriteTensor(path, n, x)
		}), "data_2 param"},
		{"a second point of other shapes", second(func(dir string) error {
			path := filepath.Join(dir, "input_0.pb")
			n, x, err := onnx.ReadTensor(path)
			if err != nil {
				return err
			}
			return onnx.WriteTensor(path, n, x.Clone().Reshape(1, x.Len()))
		}), "all points need the same shapes"},
		{"a second point without a gradient", second(func(dir string) error { return os.Remove(filepath.Join(dir, "cotangent_0.pb")) }), "no data_2/cotangent_"},
		{"a folder without a number", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "data_b"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "data_b: expected a number from 2 on"},
		{"a file cut short", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "data", "grad_input_0.pb"), 9); err != nil {
				t.Fatal(err)
			}
		}, "grad_input_0.pb"},
		{"a number that is none", func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "data", "grad_input_0.pb"), filepath.Join(dir, "data", "grad_input_x.pb")); err != nil {
				t.Fatal(err)
			}
		}, "expected a number"},
	}
	c := portable.New()
	defer c.Close()
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../autodiff/testdata/torch/mlp_tanh")); err != nil {
				t.Fatal(err)
			}
			if r := gradcheck.CheckFixture(t.Context(), c, dir); !r.OK() {
				t.Fatalf("the fixture does not pass undamaged: %+v", r)
			}
			k.damage(t, dir)
			r := gradcheck.CheckFixture(t.Context(), c, dir)
			if r.OK() {
				t.Fatal("the damage was not noticed")
			}
			var text strings.Builder
			if r.Err != nil {
				text.WriteString(r.Err.Error())
			}
			for _, x := range r.Tensors {
				if x.Error > gradcheck.FixtureTolerance {
					text.WriteString(" " + x.Point + " " + x.Kind + " " + x.Name + " " + x.Problem)
				}
			}
			if !strings.Contains(text.String(), k.want) {
				t.Errorf("%q does not contain %q", text.String(), k.want)
			}
		})
	}
	if len(cases) != 20 {
		t.Errorf("%d cases", len(cases))
	}
}
