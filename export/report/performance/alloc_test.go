package performance

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// A resample and its statistics allocate nothing.
func TestResamplingAllocatesNothing(t *testing.T) {
	stream := rng.New(1).Stream()
	r := make([]float64, 750)
	for i := range r {
		r[i] = 0.01 * stream.Normal()
	}
	s := newResampler([][]float64{r, r}, 0)
	if n := testing.AllocsPerRun(100, func() {
		s.draw(stream, 3)
		s.statistics(0)
		s.statistics(1)
	}); n != 0 {
		t.Errorf("%g allocations for a resample", n)
	}
}
