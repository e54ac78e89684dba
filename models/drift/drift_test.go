package drift

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// rows draws rows of two normal features, one that is always 3, and one of three values; shift and
// scale are of the second normal one.
func rows(s *rng.Stream, n int, shift, scale float64, constant float32) []*tensor.Tensor {
	x, d := tensor.New(tensor.Float32, n, 3), tensor.New(tensor.Int64, n)
	for i := range n {
		copy(x.Float32s()[3*i:], []float32{float32(s.Normal()), float32(shift + scale*s.Normal()), constant})
		d.Int64s()[i] = int64(s.IntN(3))
	}
	return []*tensor.Tensor{x, d}
}

func reference(t *testing.T, n int) *Reference {
	t.Helper()
	var c Collector
	s := rng.New(1).Stream()
	for range 4 {
		c.Add([]string{"x", "d"}, rows(s, n/4, 0, 1, 3), n/4)
	}
	r, err := Parse(c.Reference().Text())
	if err != nil || r.Rows != n || len(r.Inputs) != 2 || len(r.Inputs[0].Features) != 3 {
		t.Fatal(r, err)
	}
	return r
}

// TestDrift: the index of what has not changed is near 0, and of what has it is the one that the
// distributions have, for the feature that has moved.
func TestDrift(t *testing.T) {
	// The index of a normal distribution that is shifted by 1, over the deciles of the standard
	// one.
	want := 0.0
	cdf := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	before, at := 0.0, math.Inf(-1)
	for k := 1; k <= 10; k++ {
		next := math.Inf(1)
		if k < 10 {
			next = math.Sqrt2 * math.Erfinv(2*float64(k)/10-1)
		}
		a := cdf(next-1) - cdf(at-1)
		want += (a - 0.1) * math.Log(a/0.1)
		before, at = before+a, next
	}
	if math.Abs(before-1) > 1e-9 {
		t.Fatal(before)
	}
	cases := 0
	for what, x := range sorted.All(map[string]struct {
		shift, scale float64
		constant     float32
		low, high    float64
		feature      string
	}{
		"same":        {0, 1, 3, 0, 0.03, ""},
		"shifted":     {1, 1, 3, want - 0.12, want + 0.12, "x[1]"},
		"wider":       {0, 3, 3, 0.5, 3, "x[1]"},
		"no constant": {0, 1, 2.999, 5, 20, "x[2]"},
		"NaN":         {math.NaN(), 1, 3, 1, 20, "x[1]"},
	}) {
		m := reference(t, 8000).NewMonitor(4000)
		s := rng.New(2).Stream()
		d, moved := m.Observe(rows(s, 3999, x.shift, x.scale, x.constant), 3999)
		if moved || d.Rows != 0 {
			t.Errorf("%s: %+v before there was a window", what, d)
		}
		d, moved = m.Observe(rows(s, 1, x.shift, x.scale, x.constant), 1)
		if !moved || d.Rows != 4000 || !(x.low <= d.PSI && d.PSI <= x.high) || x.feature != "" && m.Name(d.Feature) != x.feature || d != m.Last() {
			t.Errorf("%s: %+v of %s, expected %g to %g of %s", what, d, m.Name(d.Feature), x.low, x.high, x.feature)
		}
		// The window slides: what was seen is forgotten.
		m.Observe(rows(s, 4000, 0, 1, 3), 4000)
		if d := m.Last(); d.PSI > 0.03 {
			t.Errorf("%s: %+v afterwards", what, d)
		}
		cases++
	}
	if cases != 5 {
		t.Errorf("%d cases", cases)
	}
	if m := reference(t, 400).NewMonitor(100); m.Name(3) != "d" || m.Name(4) != "" {
		t.Error(m.Name(3), m.Name(4))
	}
}

// TestObserveAllocates nothing.
func TestObserveAllocates(t *testing.T) {
	m := reference(t, 800).NewMonitor(160)
	list := rows(rng.New(3).Stream(), 8, 0, 1, 3)
	if n := testing.AllocsPerRun(200, func() { m.Observe(list, 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestParseBad has metadata that are refused.
func TestParseBad(t *testing.T) {
	n := 0
	for text, says := range sorted.All(map[string]string{
		"{": "metadata onnxrl.observations", "{}": "0 rows of 0 inputs",
		`{"rows":1,"inputs":[{"name":"x"}]}`:                                                     "0 features",
		`{"rows":1,"inputs":[{"name":"x","features":[{"edges":[1],"shares":[1]}]}]}`:             `input "x", feature 0: 1 shares`,
		`{"rows":1,"inputs":[{"name":"x","features":[{"edges":[2,1],"shares":[0.1,0.2,0.7]}]}]}`: "which rise",
	}) {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}

// BenchmarkObserve has rows of 4 and of 360 features.
func BenchmarkObserve(b *testing.B) {
	for _, features := range []int{4, 360} {
		b.Run(fmt.Sprint(features), func(b *testing.B) {
			s, x := rng.New(1).Stream(), tensor.New(tensor.Float32, 1024, features)
			for i := range x.Float32s() {
				x.Float32s()[i] = float32(s.Normal())
			}
			var c Collector
			c.Add([]string{"x"}, []*tensor.Tensor{x}, 1024)
			m, list := c.Reference().NewMonitor(DefaultWindow), []*tensor.Tensor{x.Rows(0, 1)}
			b.ReportAllocs()
			for b.Loop() {
				m.Observe(list, 1)
			}
		})
	}
}
