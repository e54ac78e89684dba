package optimbench

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// TestAdam checks that the benchmark measures something; how fast is for
// BenchmarkAdamAgainstMemcpy to show, since other load would fail a test.
func TestAdam(t *testing.T) {
	r, err := Adam(1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.AdamNs > 0 && r.MemcpyNs > 0 && r.Ratio == r.AdamNs/r.MemcpyNs && r.Target == 1.3 && r.Level != "") {
		t.Errorf("row %+v", r)
	}
	if !strings.Contains(r.String(), "1000 parameters") {
		t.Errorf("line %q", r)
	}
	if _, err := Adam(0, 1); err == nil {
		t.Error("no parameters accepted")
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v, want 2.5", m)
	}
}

// BenchmarkAdamAgainstMemcpy reports the ratio of the medians of 100 rounds per
// size and vector instruction set of this CPU, whatever b.N is.
func BenchmarkAdamAgainstMemcpy(b *testing.B) {
	defer func() {
		if err := kernel.SetLevel(slices.Max(kernel.Levels())); err != nil {
			b.Error(err)
		}
	}()
	for b.Loop() {
		for _, l := range kernel.Levels()[1:] {
			if err := kernel.SetLevel(l); err != nil {
				b.Fatal(err)
			}
			for _, n := range Sizes {
				r, err := Adam(n, 100)
				if err != nil {
					b.Fatal(err)
				}
				b.Log(r)
			}
		}
	}
}
