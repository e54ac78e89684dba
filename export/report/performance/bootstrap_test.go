package performance_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	p "github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// autoregressive is a series of uniform noise with the given dependence on the value before, from a
// generator that takes one line in any language.
func autoregressive(n int, phi float64, seed uint64) []float64 {
	r, x := make([]float64, n), 0.0
	for i := range r {
		seed = seed*6364136223846793005 + 1442695040888963407
		x = phi*x + float64(seed>>11)/(1<<53) - 0.5
		r[i] = x * 0.01
	}
	return r
}

func TestBlockLength(t *testing.T) {
	// The first rows are what arch (optimal_block_length, stationary) gives. With dependence it
	// takes twice one lag more than the paper does, so that only the order of magnitude is
	// comparable.
	cases := 0
	for _, c := range []struct {
		n         int
		phi       float64
		seed      uint64
		want, tol float64
	}{
		{250, 0, 1, 2.0904586364427065, 1e-9},
		{750, 0, 2, 1.558054796054899, 1e-9},
		{750, 0.3, 3, 6.691772489831801, 4},
		{750, 0.8, 4, 19.44829791736708, 8},
		{60, 0.5, 5, 2.884010384575583, 3},
	} {
		if got := p.BlockLength(autoregressive(c.n, c.phi, c.seed)); math.Abs(got-c.want) > c.tol {
			t.Errorf("%d returns with phi %g: %.16g, want %.16g ± %g", c.n, c.phi, got, c.want, c.tol)
		}
		cases++
	}
	for _, r := range [][]float64{nil, {1}, make([]float64, 100), {0.1, 0.2, 0.1}} {
		if got := p.BlockLength(r); got != 1 {
			t.Errorf("%d degenerate returns: %g, want 1", len(r), got)
		}
		cases++
	}
	if cases != 9 {
		t.Errorf("%d cases", cases)
	}
}

// The variance of a resampled sum is known exactly: n (C₀ + 2 Σ (1−i/n)(1−1/L)^i Cᵢ) with the
// circular autocovariances C (Politis & Romano 1994, lemma 1).
func TestResampledVariance(t *testing.T) {
	r := autoregressive(200, 0.6, 11)
	n := float64(len(r))
	logs := make([]float64, len(r))
	for i, x := range r {
		logs[i] = math.Log1p(x)
	}
	mu := stat.Mean(logs, nil)
	for _, length := range []float64{1, 4, 25} {
		d, err := p.Resample([][]float64{r, r}, 0, p.Plan{Resamples: 20000, Block: length, Key: rng.New(3)})
		if err != nil {
			t.Fatal(err)
		}
		growth := make([]float64, len(d.TotalReturn[0]))
		for i, x := range d.TotalReturn[0] {
			growth[i] = math.Log1p(x)
			if d.Sharpe[0][i] != d.Sharpe[1][i] || x != d.TotalReturn[1][i] {
				t.Fatalf("resample %d differs between equal records", i)
			}
		}
		var want float64
		for i := range logs {
			var c float64
			for k := range logs {
				c += (logs[k] - mu) * (logs[(k+i)%len(logs)] - mu) / n
			}
			if i > 0 {
				c *= 2 * (1 - float64(i)/n) * math.Pow(1-1/length, float64(i))
			}
			want += n * c
		}
		if got := stat.Variance(growth, nil); math.Abs(got/want-1) > 0.05 {
			t.Errorf("blocks of %g: variance %.4g, want %.4g", length, got, want)
		}
		if got, want := stat.Mean(growth, nil), n*mu; math.Abs(got-want) > 5*stat.StdDev(growth, nil)/math.Sqrt(20000) {
			t.Errorf("blocks of %g: mean %.4g, want %.4g", length, got, want)
		}
	}
}

// An interval of 95 % holds the true Sharpe ratio of independent returns about that often.
func TestIntervalCoverage(t *testing.T) {
	const runs = 200
	covered, block := 0, 0.0
	for seed := range uint64(runs) {
		s := rng.New(seed).Split("returns").Stream()
		r := make([]float64, 250)
		for i := range r {
			r[i] = 0.001 + 0.01*s.Normal()
		}
		d, err := p.Resample([][]float64{r}, 0, p.Plan{Resamples: 300, Key: rng.New(seed).Split("resample")})
		if err != nil {
			t.Fatal(err)
		}
		iv := p.IntervalOf(p.Sharpe(r), d.Sharpe[0], 0.95)
		if iv.Low <= 0.1 && 0.1 <= iv.High {
			covered++
		}
		if !(iv.Low < iv.Point && iv.Point < iv.High) {
			t.Errorf("seed %d: the point is outside of its interval %v", seed, iv)
		}
		block += d.Block / runs
	}
	if covered < 175 || covered > 198 {
		t.Errorf("%d of %d intervals hold the true ratio, expected about 190", covered, runs)
	}
	if block > 4 {
		t.Errorf("blocks of %g on average for independent returns", block)
	}
}

// TestNoInterval: what all resamples have alike bounds nothing.
func TestNoInterval(t *testing.T) {
	for _, c := range []struct {
		what    string
		record  []float64
		block   float64
		defined bool
	}{
		{"some returns", []float64{0.01, -0.02, 0.03, 0.01, -0.01, 0.02}, 0, true},
		// Resamples vary where they have both, and then they are the record.
		{"two returns", []float64{0.01, -0.02}, 1, false},
		{"a single trade", append(make([]float64, 40), 0.02), 1, false},
		{"a block as long as the record", []float64{0.01, -0.02, 0.03, 0.01, -0.01, 0.02}, 6, false},
	} {
		d, err := p.Resample([][]float64{c.record}, 0, p.Plan{Resamples: 400, Block: c.block})
		if err != nil {
			t.Fatal(err)
		}
		iv := p.IntervalOf(p.Sharpe(c.record), d.Sharpe[0], 0.95).Scale(3)
		if iv.Low.Defined() != c.defined || iv.High.Defined() != c.defined || iv.Positive.Defined() != c.defined || !iv.Point.Defined() {
			t.Errorf("%s: %+v", c.what, iv)
		}
		text, err := json.Marshal(iv)
		if err != nil || bytes.Contains(text, []byte("null")) == c.defined {
			t.Errorf("%s: %s, %v", c.what, text, err)
		}
	}
}

func TestResampleRefuses(t *testing.T) {
	good := []float64{0.1, -0.1, 0.2}
	plan := p.Plan{Resamples: 10}
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		records [][]float64
		plan    p.Plan
	}{
		"no record":      {nil, plan},
		"one return":     {[][]float64{{1}}, plan},
		"no resample":    {[][]float64{good}, p.Plan{}},
		"unequal length": {[][]float64{good, good[:2]}, plan},
		"missing":        {[][]float64{{0.1, math.NaN(), 0}}, plan},
		"less than all":  {[][]float64{{0.1, -1.5, 0}}, plan},
		"short block":    {[][]float64{good}, p.Plan{Resamples: 10, Block: 0.5}},
	}) {
		if _, err := p.Resample(c.records, 0, c.plan); err == nil {
			t.Errorf("%s: no error", name)
		}
		cases++
	}
	if cases != 7 {
		t.Errorf("%d cases", cases)
	}
	// A total loss, and a constant: the total return is there, the ratio is not.
	d, err := p.Resample([][]float64{{-1, -1, -1}, {0.01, 0.01, 0.01}}, 0, plan)
	if err != nil {
		t.Fatal(err)
	}
	for b := range d.Sharpe[0] {
		if d.TotalReturn[0][b] != -1 || !math.IsNaN(d.Sharpe[0][b]) || !math.IsNaN(d.Sharpe[1][b]) {
			t.Errorf("resample %d: %g, %g, %g", b, d.TotalReturn[0][b], d.Sharpe[0][b], d.Sharpe[1][b])
		}
	}
}
