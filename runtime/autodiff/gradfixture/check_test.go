package gradfixture_test

import (
	"path/filepath"
	"testing"

	"onnxrl/runtime/autodiff/gradfixture"
	"onnxrl/runtime/portable"
)

// run checks every fixture below dir on both engines and requires exact counts, so that a fixture that is not found cannot pass.
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
				r := gradfixture.Check(t.Context(), c, d)
				if !r.OK() {
					t.Errorf("%s: error %g: %v", filepath.Base(d), r.MaxError, r.Err)
				}
				for _, k := range r.Tensors {
					if k.Error > gradfixture.Tolerance {
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

func TestTorch(t *testing.T) { run(t, "../testdata/torch", 14, 131) }

// TestRounding: only the gradient of the keys' bias, zero in theory, is excused, and what was excused is told.
func TestRounding(t *testing.T) {
	c := portable.New()
	defer c.Close()
	r := gradfixture.Check(t.Context(), c, "../testdata/torch/encoder_attention")
	var excused []string
	for _, k := range r.Tensors {
		if k.Rounding != 0 {
			excused = append(excused, k.Name)
			if k.Rounding <= gradfixture.Tolerance || k.Error > gradfixture.Tolerance {
				t.Errorf("%s: error %g, with rounding %g", k.Name, k.Error, k.Rounding)
			}
		}
	}
	if len(r.Tensors) != 22 || len(excused) != 1 || excused[0] != "k.bias" {
		t.Errorf("%d tensors, excused: %q", len(r.Tensors), excused)
	}
}

// TestLayers checks layers exported by both of PyTorch's exporters; cmd/peers/torch_fixtures.py wrote them, and many more.
func TestLayers(t *testing.T) { run(t, "../testdata/layers", 81, 393) }
