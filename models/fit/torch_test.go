package fit

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// TestEnginesAndPyTorchAgree trains PyTorch exports on the batches that PyTorch trained them on and
// compares the loss of every step. cmd/peers/fit_torch.py has made the fixtures and tries more
// networks.
func TestEnginesAndPyTorchAgree(t *testing.T) {
	cases, err := filepath.Glob("testdata/torch/*/losses.json")
	if err != nil || len(cases) != 14 {
		t.Fatalf("%d fixtures, want 14 (%v)", len(cases), err)
	}
	for _, path := range cases[:longtest.Cases(t, len(cases), 4)] {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want []float64
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			cfg := Defaults()
			if _, err := configs.Load(filepath.Join(dir, "fit.yaml"), nil, &cfg); err != nil {
				t.Fatal(err)
			}
			m, err := onnx.Load(filepath.Join(dir, cfg.Model))
			if err != nil {
				t.Fatal(err)
			}
			cfg.Data.Path = filepath.Join(dir, cfg.Data.Path)
			for _, c := range testengines.All(t) {
				r := run(t, c, m, cfg, runOptions{})
				if len(r.losses) != len(want) || len(want) != 20 {
					t.Fatalf("%s: %d steps, PyTorch made %d", c.Name(), len(r.losses), len(want))
				}
				for i := range want {
					if !(math.Abs(r.losses[i]-want[i]) <= 2e-6*math.Abs(want[i])) {
						t.Errorf("%s: loss of step %d is %.8g, PyTorch's %.8g", c.Name(), i+1, r.losses[i], want[i])
					}
				}
			}
		})
	}
}
