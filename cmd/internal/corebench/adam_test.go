package corebench

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// TestMeasureAdam checks that the benchmark measures something; how fast is for
// BenchmarkAdamAgainstMemcpy to show, since other load would fail a test.
func TestMeasureAdam(t *testing.T) {
	r, err := measureAdam(1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.AdamNs > 0 && r.MemcpyNs > 0 && r.Ratio == r.AdamNs/r.MemcpyNs && r.Target == 1.3 && r.Level != "") {
		t.Errorf("row %+v", r)
	}
	if !strings.Contains(r.String(), "1000 parameters") {
		t.Errorf("line %q", r)
	}
	if _, err := measureAdam(0, 1); err == nil {
		t.Error("no parameters accepted")
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
			for _, n := range adamSizes {
				r, err := measureAdam(n, 100)
				if err != nil {
					b.Fatal(err)
				}
				b.Log(r)
			}
		}
	}
}
