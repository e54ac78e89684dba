package rlmath_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// walk is a random batch of sequences: rewards, discounts with terminations, values, importance
// weights.
type walk struct {
	steps, width               int
	r, d, v, v0, v1, rho, logp []float64
}

func newWalk(seed uint64, steps, width int) walk {
	s := rng.New(seed).Stream()
	w := walk{steps: steps, width: width}
	draw := func(n int, f func() float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	n := steps * width
	w.r = draw(n, s.Normal)
	w.d = draw(n, func() float64 {
		if s.Bernoulli(0.15) {
			return 0
		}
		return 0.9 + 0.1*s.Float64()
	})
	w.v = draw(n+width, s.Normal)
	w.v0, w.v1 = w.v[:n], w.v[width:]
	w.rho = draw(n, func() float64 { return math.Exp(s.Normal()) })
	w.logp = draw(n, s.Normal)
	return w
}

func single[T any](x []T, col, width int) []T {
	var out []T
	for i := col; i < len(x); i += width {
		out = append(out, x[i])
	}
	return out
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// forms lists the functions of sequences next to their definitions, written as sums over the future
// and without any recursion backwards.
var forms = []struct {
	name  string
	fast  func(w walk) []float64
	fast4 func(w walk) []float32
	naive func(w walk, t int) float64 // of one column
}{
	{
		"discounted returns",
		func(w walk) []float64 {
			dst := make([]float64, len(w.r))
			rlmath.DiscountedReturns(dst, w.r, w.d, w.v1[len(w.v1)-w.width:])
			return dst
		},
		func(w walk) []float32 {
			dst := make([]float32, len(w.r))
			rlmath.DiscountedReturns(dst, narrow(w.r), narrow(w.d), narrow(w.v1[len(w.v1)-w.width:]))
			return dst
		},
		func(w walk, t int) float64 { return nStep(w, t, w.steps) },
	},
	{
		"3-step returns",
		func(w walk) []float64 {
			dst := make([]float64, len(w.r))
			rlmath.NStepReturns(dst, w.r, w.d, w.v1, 3, w.width)
			return dst
		},
		func(w walk) []float32 {
			dst := make([]float32, len(w.r))
			rlmath.NStepReturns(dst, narrow(w.r), narrow(w.d), narrow(w.v1), 3, w.width)
			return dst
		},
		func(w walk, t int) float64 { return nStep(w, t, min(t+3, w.steps)) },
	},
	{
		"λ-returns",
		func(w walk) []float64 {
			dst := make([]float64, len(w.r))
			rlmath.LambdaReturns(dst, w.r, w.d, w.v1, 0.8, w.width)
			return dst
		},
		func(w walk) []float32 {
			dst := make([]float32, len(w.r))
			rlmath.LambdaReturns(dst, narrow(w.r), narrow(w.d), narrow(w.v1), 0.8, w.width)
			return dst
		},
		// (1−λ)·Σ λᵏ⁻¹·(k-step return) + λᵀ⁻ᵗ⁻¹·(the longest one).
		func(w walk, t int) float64 {
			sum, weight := 0.0, 1.0
			for end := t + 1; end < w.steps; end++ {
				sum += (1 - 0.8) * weight * nStep(w, t, end)
				weight *= 0.8
			}
			return sum + weight*nStep(w, t, w.steps)
		},
	},
	{
		"GAE",
		func(w walk) []float64 {
			dst := make([]float64, len(w.r))
			rlmath.GAE(dst, w.r, w.d, w.v0, w.v1, 0.95, w.width)
			return dst
		},
		func(w walk) []float32 {
			dst := make([]float32, len(w.r))
			rlmath.GAE(dst, narrow(w.r), narrow(w.d), narrow(w.v0), narrow(w.v1), 0.95, w.width)
			return dst
		},
		func(w walk, t int) float64 {
			sum, weight := 0.0, 1.0
			for k := t; k < w.steps; k++ {
				sum += weight * (w.r[k] + w.d[k]*w.v1[k] - w.v0[k])
				weight *= w.d[k] * 0.95
			}
			return sum
		},
	},
	{
		"V-trace targets",
		func(w walk) []float64 { vs, _ := vtrace(w, 0.9); return vs },
		func(w walk) []float32 {
			vs, pg := make([]float32, len(w.r)), make([]float32, len(w.r))
			c := rlmath.VTraceConfig{Lambda: 0.9, ClipRho: 1.5, ClipC: 1.1, ClipPGRho: 2}
			rlmath.VTrace(vs, pg, narrow(w.r), narrow(w.d), narrow(w.v0), narrow(w.v1), narrow(w.rho), c, w.width)
			return vs
		},
		// Equation 1 of the paper.
		func(w walk, t int) float64 {
			sum, weight := w.v0[t], 1.0
			for k := t; k < w.steps; k++ {
				sum += weight * min(1.5, w.rho[k]) * (w.r[k] + w.d[k]*w.v1[k] - w.v0[k])
				weight *= w.d[k] * 0.9 * min(1.1, w.rho[k])
			}
			return sum
		},
	},
}

func vtrace(w walk, lambda float64) (vs, pg []float64) {
	vs, pg = make([]float64, len(w.r)), make([]float64, len(w.r))
	rlmath.VTrace(vs, pg, w.r, w.d, w.v0, w.v1, w.rho, rlmath.VTraceConfig{Lambda: lambda, ClipRho: 1.5, ClipC: 1.1, ClipPGRho: 2}, w.width)
	return vs, pg
}

// nStep is the return of a column from step t up to, and without, step end.
func nStep(w walk, t, end int) float64 {
	sum, weight := 0.0, 1.0
	for k := t; k < end; k++ {
		sum += weight * w.r[k]
		weight *= w.d[k]
	}
	return sum + weight*w.v1[end-1]
}

func column(w walk, c int) walk {
	o := walk{steps: w.steps, width: 1, r: single(w.r, c, w.width), d: single(w.d, c, w.width), v: single(w.v, c, w.width), rho: single(w.rho, c, w.width)}
	o.v0, o.v1 = o.v[:w.steps], o.v[1:]
	return o
}

func TestAgainstDefinitions(t *testing.T) {
	c := &comparer{t: t}
	want := 0
	for _, shape := range [][2]int{{1, 1}, {1, 3}, {2, 1}, {17, 1}, {17, 4}, {5, 3}} {
		w := newWalk(uint64(shape[0]*10+shape[1]), shape[0], shape[1])
		for _, f := range forms {
			wide, thin := f.fast(w), f.fast4(w)
			for col := range w.width {
				one := column(w, col)
				for i := range w.steps {
					v := f.naive(one, i)
					c.near(f.name, wide[i*w.width+col], v, 1e-12)
					c.near(f.name+" in float32", float64(thin[i*w.width+col]), v, 3e-5)
					want += 2
				}
			}
		}
	}
	if want != 2*5*(1+3+2+17+68+15) {
		t.Errorf("%d comparisons were planned", want)
	}
	c.total(want)
}

func TestProperties(t *testing.T) {
	c := &comparer{t: t}
	w := newWalk(3, 40, 3)
	n := len(w.r)
	a, b := make([]float64, n), make([]float64, n)

	// GAE with λ = 1 is the return minus the value; with λ = 0 the TD error.
	rlmath.GAE(a, w.r, w.d, w.v0, w.v1, 1, 3)
	rlmath.DiscountedReturns(b, w.r, w.d, w.v1[n-3:])
	rlmath.SubTo(b, b, w.v0)
	c.all("GAE(1)", a, b, 1e-12)
	rlmath.GAE(a, w.r, w.d, w.v0, w.v1, 0, 3)
	rlmath.TDErrors(b, w.r, w.d, w.v0, w.v1)
	c.all("GAE(0)", a, b, 1e-12)

	// GAE plus the value is the λ-return.
	rlmath.GAE(a, w.r, w.d, w.v0, w.v1, 0.7, 3)
	rlmath.AddTo(a, a, w.v0)
	rlmath.LambdaReturns(b, w.r, w.d, w.v1, 0.7, 3)
	c.all("GAE + v", a, b, 1e-12)

	// λ-returns at the ends of the range, n-step returns at the ends of theirs.
	rlmath.LambdaReturns(a, w.r, w.d, w.v1, 0, 3)
	rlmath.NStepReturns(b, w.r, w.d, w.v1, 1, 3)
	c.all("λ = 0", a, b, 1e-12)
	rlmath.LambdaReturns(a, w.r, w.d, w.v1, 1, 3)
	rlmath.NStepReturns(b, w.r, w.d, w.v1, 1000, 3)
	c.all("λ = 1", a, b, 1e-12)

	// V-trace on-policy: targets are λ-returns, for λ = 1 the returns of all remaining steps;
	// advantages are targets minus values.
	on := w
	on.rho = repeat(1, n)
	for _, lambda := range []float64{1, 0.6} {
		vs, pg := vtrace(on, lambda)
		rlmath.LambdaReturns(a, w.r, w.d, w.v1, lambda, 3)
		c.all("V-trace on-policy", vs, a, 1e-12)
		rlmath.SubTo(a, vs, w.v0)
		c.all("advantages on-policy", pg, a, 1e-12)
	}
	// Without thresholds the target of a two-step chain is the importance-sampled return.
	two := column(newWalk(9, 2, 1), 0)
	vs, pg := make([]float64, 2), make([]float64, 2)
	inf := math.Inf(1)
	rlmath.VTrace(vs, pg, two.r, two.d, two.v0, two.v1, two.rho, rlmath.VTraceConfig{Lambda: 1, ClipRho: inf, ClipC: inf, ClipPGRho: inf}, 1)
	is := two.v0[0] + two.rho[0]*(two.r[0]+two.d[0]*two.v1[0]-two.v0[0]) + two.rho[0]*two.rho[1]*two.d[0]*(two.r[1]+two.d[1]*two.v1[1]-two.v0[1])
	c.near("importance-sampled return", vs[0], is, 1e-12)

	// A reward without future: everything is the reward.
	zero := make([]float64, n)
	rlmath.LambdaReturns(a, w.r, zero, w.v1, 0.7, 3)
	c.all("discount 0", a, w.r, 0)
	c.total(10*n + 1)
}

// TestTruncation compares a batch in which an episode is cut off with the same episodes computed on
// their own.
func TestTruncation(t *testing.T) {
	c := &comparer{t: t}
	const steps, cut = 9, 4
	w := newWalk(21, steps, 1)
	for i := range w.d {
		w.d[i] = 0.97
	}
	// The value of the final observation differs from that of the next episode's first one, which
	// follows in v.
	const final = 5.5
	last, vFinal := make([]bool, steps), make([]float64, steps)
	last[cut], vFinal[cut] = true, final
	r, d := slices.Clone(w.r), slices.Clone(w.d)
	rlmath.FoldTruncation(r, d, vFinal, last)

	parts := []struct{ from, to int }{{0, cut + 1}, {cut + 1, steps}}
	alone := func(p struct{ from, to int }) (r, d, v0, v1 []float64) {
		v1 = slices.Clone(w.v1[p.from:p.to])
		if p.to == cut+1 {
			v1[len(v1)-1] = final
		}
		return w.r[p.from:p.to], w.d[p.from:p.to], w.v0[p.from:p.to], v1
	}
	got, want, pg, wantPG := make([]float64, steps), make([]float64, steps), make([]float64, steps), make([]float64, steps)
	rlmath.GAE(got, r, d, w.v0, w.v1, 0.9, 1)
	for _, p := range parts {
		pr, pd, v0, v1 := alone(p)
		rlmath.GAE(want[p.from:p.to], pr, pd, v0, v1, 0.9, 1)
	}
	c.all("GAE", got, want, 1e-12)
	rlmath.LambdaReturns(got, r, d, w.v1, 0.9, 1)
	for _, p := range parts {
		pr, pd, _, v1 := alone(p)
		rlmath.LambdaReturns(want[p.from:p.to], pr, pd, v1, 0.9, 1)
	}
	c.all("λ-returns", got, want, 1e-12)
	rlmath.NStepReturns(got, r, d, w.v1, 3, 1)
	for _, p := range parts {
		pr, pd, _, v1 := alone(p)
		rlmath.NStepReturns(want[p.from:p.to], pr, pd, v1, 3, 1)
	}
	c.all("n-step returns", got, want, 1e-12)
	rlmath.VTrace(got, pg, r, d, w.v0, w.v1, w.rho, rlmath.DefaultVTrace(), 1)
	for _, p := range parts {
		pr, pd, v0, v1 := alone(p)
		rlmath.VTrace(want[p.from:p.to], wantPG[p.from:p.to], pr, pd, v0, v1, w.rho[p.from:p.to], rlmath.DefaultVTrace(), 1)
	}
	c.all("V-trace", got, want, 1e-12)
	c.all("V-trace advantages", pg, wantPG, 1e-12)

	// A termination may be marked too: it has discount 0 and stays as it was.
	r, d = []float64{2}, []float64{0}
	rlmath.FoldTruncation(r, d, []float64{100}, []bool{true})
	c.all("terminated", append(r, d...), []float64{2, 0}, 0)
	c.total(5*steps + 2)
}
