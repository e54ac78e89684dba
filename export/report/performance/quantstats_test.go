package performance_test

import (
	"math"
	"testing"
	"time"

	p "github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// businessDays gives n dates from Monday to Friday.
func businessDays(first string, n int) []time.Time {
	var all []time.Time
	d, _ := time.Parse(time.DateOnly, first)
	for ; len(all) < n; d = d.AddDate(0, 0, 1) {
		if d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			all = append(all, d)
		}
	}
	return all
}

// drifting is the noise of autoregressive at four times its size, plus a constant.
func drifting(n int, phi float64, seed uint64, drift float64) []float64 {
	r := autoregressive(n, phi, seed)
	for i := range r {
		r[i] = 4*r[i] + drift
	}
	return r
}

// Every metric that QuantStats, pandas or SciPy has under the same convention is equal to theirs.
func TestQuantStats(t *testing.T) {
	var v struct {
		Cases []struct {
			N       int
			Phi     float64
			Seed    uint64
			Drift   float64
			Metrics map[string]float64
		}
	}
	load(t, "quantstats.json", &v)
	checked := 0
	for _, c := range v.Cases {
		r, b := drifting(c.N, c.Phi, c.Seed, c.Drift), drifting(c.N, 0, c.Seed+100, 0.0002)
		for i := range b {
			b[i] = 0.5*b[i] + 0.5*r[i]
		}
		m, err := p.Measure(p.Input{Dates: businessDays("2019-01-02", c.N+1), Value: p.Growth(r), Benchmark: p.Growth(b), PeriodsPerYear: 252})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range sorted.All(c.Metrics) {
			if got := m.Get(key); !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
				t.Errorf("seed %d: %s = %.15g, want %.15g", c.Seed, key, got, want)
			}
			checked++
		}
	}
	if checked != 98 {
		t.Errorf("%d values compared, expected 98", checked)
	}
}
