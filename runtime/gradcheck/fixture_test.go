package gradcheck_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// run checks every fixture below dir on both engines and requires exact counts, so that a fixture
// that is not found cannot pass.
func run(t *testing.T, dir string, models, tensors int) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != models {
		t.Errorf("%d fixtures in %s, expected %d", len(dirs), dir, models)
	}
	for _, c := range append(native(t), portable.New()) {
		t.Run(c.Name(), func(t *testing.T) {
			n, worst := 0, 0.0
			for _, d := range dirs {
				r := gradcheck.CheckFixture(t.Context(), c, d)
				if !r.OK() {
					t.Errorf("%s: error %g: %v", filepath.Base(d), r.MaxError, r.Err)
				}
				for _, k := range r.Tensors {
					if k.Error > gradcheck.FixtureTolerance {
						t.Errorf("%s: %s %q: error %g %s", filepath.Base(d), k.Kind, k.Name, k.Error, k.Problem)
					}
				}
				n += len(r.Tensors)
				worst = max(worst, r.MaxError)
			}
			if n != tensors {
				t.Errorf("%d tensors compared, expected %d", n, tensors)
			}
			t.Logf("%d models, %d tensors, max error %.2g", len(dirs), n, worst)
		})
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTorch(t *testing.T) { run(t, "../autodiff/testdata/torch", 14, 131) }

// TestRounding: only the gradient of the keys' bias, zero in theory, is excused, and the
// report names it.
func TestRounding(t *testing.T) {
	c := portable.New()
	defer c.Close()
	r := gradcheck.CheckFixture(t.Context(), c, "../autodiff/testdata/torch/encoder_attention")
	var excused []string
	for _, k := range r.Tensors {
		if k.Rounding != 0 {
			excused = append(excused, k.Name)
			if k.Rounding <= gradcheck.FixtureTolerance || k.Error > gradcheck.FixtureTolerance {
				t.Errorf("%s: error %g, with rounding %g", k.Name, k.Error, k.Rounding)
			}
		}
	}
	if len(r.Tensors) != 22 || len(excused) != 1 || excused[0] != "k.bias" {
		t.Errorf("%d tensors, excused: %q", len(r.Tensors), excused)
	}
}

// TestLayers checks layers exported by both of PyTorch's exporters; cmd/peers/torch_fixtures.py
// wrote them, and many more.
func TestLayers(t *testing.T) { run(t, "../autodiff/testdata/layers", 81, 393) }

// TestTimesNet checks networks whose shapes depend on the data: periods are chosen by the spectrum.
// cmd/peers/timesnet_fixtures.py wrote them, with PyTorch's gradients at three points.
func TestTimesNet(t *testing.T) { run(t, "../autodiff/testdata/timesnet", 2, 192) }

// TestTimesNetPeriods makes sure that the points give one compiled program different shapes, some
// of which need padding.
func TestTimesNetPeriods(t *testing.T) {
	f, err := gradcheck.ReadFixture("../autodiff/testdata/timesnet/written")
	if err != nil {
		t.Fatal(err)
	}
	m := f.Model.ShallowClone()
	var images []string
	for _, n := range m.Graph.Node {
		if n.OpType == "Gelu" {
			images = append(images, n.Output[0])
			m.Graph.Output = append(m.Graph.Output, onnx.NewValueInfo(onnx.Value(n.Output[0]), onnx.TensorType{DType: tensor.Float32}))
		}
	}
	var in []map[string]*tensor.Tensor
	for _, p := range f.Points {
		in = append(in, p.Inputs)
	}
	for _, c := range append(native(t), portable.New()) {
		got, err := gradcheck.RunAll(t.Context(), c, m, in)
		if err != nil {
			t.Fatal(err)
		}
		seen, padded := map[string]bool{}, 0
		for _, out := range got {
			for _, name := range images {
				s := out[name].Shape()
				seen[fmt.Sprint(s)] = true
				if s[2]*s[3] > 20 {
					padded++
				}
			}
		}
		if len(images) != 4 || len(got) != 3 || len(seen) != 6 || padded != 4 {
			t.Errorf("%s: %d images at %d points of shapes %v, %d padded", c.Name(), len(images), len(got), seen, padded)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
