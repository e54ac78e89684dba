package optim

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/goccy/go-yaml"
)

// torchVectors is what cmd/peers/optim_vectors.py writes.
type torchVectors struct {
	Torch      string `yaml:"torch"`
	Optimisers []struct {
		Config Config      `yaml:"config"`
		Start  []float32   `yaml:"start"`
		Grads  [][]float32 `yaml:"grads"`
		Params [][]float32 `yaml:"params"`
	} `yaml:"optimisers"`
	Schedules []struct {
		Config Schedule  `yaml:"config"`
		Total  uint64    `yaml:"total"`
		Values []float64 `yaml:"values"`
	} `yaml:"schedules"`
	Clip struct {
		Grads   []float32 `yaml:"grads"`
		MaxNorm float64   `yaml:"max_norm"`
		Norm    float64   `yaml:"norm"`
		Clipped []float32 `yaml:"clipped"`
	} `yaml:"clip"`
}

// loadTorch reads the vectors as YAML, of which JSON is a part, so that the
// configurations go through the decoder that experiments use.
func loadTorch(t *testing.T) torchVectors {
	t.Helper()
	text, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var v torchVectors
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.DisallowUnknownField()).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTorchTrajectories replays PyTorch's gradients and compares parameters
// after each of ten steps.
func TestTorchTrajectories(t *testing.T) {
	const tol = 2e-6
	compared := 0
	for i, c := range loadTorch(t).Optimisers {
		o, err := New(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		p := append([]float32(nil), c.Start...)
		g := make([]float32, len(p))
		groups, err := Groups(c.Config, p, g, []Param{{Name: "w", Len: len(p)}})
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for k := range c.Grads {
			copy(g, c.Grads[k])
			if err := o.Step(groups); err != nil {
				t.Fatal(err)
			}
			for j := range p {
				want := float64(c.Params[k][j])
				d := math.Abs(float64(p[j])-want) / max(1, math.Abs(want))
				if !(d <= tol) {
					t.Fatalf("case %d %+v: step %d, parameter %d is %v, PyTorch has %v", i, c.Config, k+1, j, p[j], want)
				}
				worst = max(worst, d)
				compared++
			}
		}
		t.Logf("%-8s worst difference %.1e", c.Config.Kind, worst)
	}
	if want := 19 * 10 * 21; compared != want {
		t.Fatalf("%d parameters compared, want %d", compared, want)
	}
}

func TestTorchSchedules(t *testing.T) {
	compared := 0
	for i, c := range loadTorch(t).Schedules {
		if err := c.Config.Validate(); err != nil {
			t.Fatal(err)
		}
		for k, want := range c.Values {
			if got := c.Config.At(uint64(k), c.Total); math.Abs(got-want) > 1e-12 {
				t.Errorf("case %d %+v: step %d has %v, PyTorch %v", i, c.Config, k, got, want)
			}
			compared++
		}
	}
	if want := 8 * 30; compared != want {
		t.Fatalf("%d values compared, want %d", compared, want)
	}
}

// TestTorchClip allows for the 1e-6 that PyTorch adds to the norm.
func TestTorchClip(t *testing.T) {
	c := loadTorch(t).Clip
	groups := []Group{{Params: make([]float32, len(c.Grads)), Grads: c.Grads}}
	norm, scale, err := ClipGlobalNorm(groups, c.MaxNorm)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(norm-c.Norm) > 1e-5 {
		t.Errorf("norm %v, PyTorch %v", norm, c.Norm)
	}
	if len(c.Clipped) != 21 {
		t.Fatalf("%d values, want 21", len(c.Clipped))
	}
	for i, g := range c.Grads {
		if d := math.Abs(float64(g)*scale - float64(c.Clipped[i])); d > 1e-6 {
			t.Errorf("gradient %d scales to %v, PyTorch has %v", i, float64(g)*scale, c.Clipped[i])
		}
	}
}
