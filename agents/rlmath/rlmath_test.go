package rlmath_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestTargets(t *testing.T) {
	c := &comparer{t: t}
	r, d := []float64{1, 2, 3}, []float64{0.9, 0, 0.5}
	q := []float64{1, 5, 3, 7, 2, 9, -4, -2, -3}      // target network
	online := []float64{3, 1, 2, 1, 1, 0, -9, -8, -1} // chooses
	got := make([]float64, 3)
	rlmath.QTargets(got, r, d, q, nil)
	c.all("Q-learning", got, []float64{1 + 0.9*5, 2, 3 + 0.5*-2}, 1e-12)
	rlmath.DoubleQTargets(got, r, d, q, online, nil)
	c.all("double Q-learning", got, []float64{1 + 0.9*1, 2, 3 + 0.5*-3}, 1e-12)
	// The best action of the first and third row is excluded, and every one of the second, which is
	// terminal.
	mask := []bool{false, true, true, false, false, false, true, true, false}
	rlmath.DoubleQTargets(got, r, d, q, online, mask)
	c.all("with masks", got, []float64{1 + 0.9*3, 2, 3 + 0.5*-2}, 1e-12)

	q1, q2, logp := []float64{1, -2, 4}, []float64{3, -5, 4}, []float64{-1, -2, 0.5}
	rlmath.TwinTargets(got, r, d, q1, q2)
	c.all("TD3", got, []float64{1 + 0.9, 2, 5}, 1e-12)
	soft := make([]float64, 3)
	rlmath.SoftTargets(soft, r, d, q1, q2, logp, 0)
	c.all("SAC without entropy", soft, got, 0)
	rlmath.SoftTargets(soft, r, d, q1, q2, logp, 0.2)
	c.all("SAC", soft, []float64{1 + 0.9*(1+0.2), 2, 3 + 0.5*(4-0.1)}, 1e-12)

	// Discrete: the expectation over actions. An excluded action's absurd value must not count.
	logPi := []float64{0.1, 0.3, 99}
	rlmath.LogSoftmax(logPi, logPi, []bool{true, true, false})
	p := math.Exp(logPi[0])
	v := p*(1-0.2*logPi[0]) + (1-p)*(-2-0.2*logPi[1])
	rlmath.DiscreteSoftTargets(got[:1], r[:1], d[:1], []float64{1, -2, 1e30}, []float64{2, 7, 1e30}, logPi, 0.2)
	c.near("discrete SAC", got[0], 1+0.9*v, 1e-12)
	c.total(6*3 + 1)
}

func TestDistributions(t *testing.T) {
	c := &comparer{t: t}
	logs := func(x ...float64) []float64 {
		rlmath.LogSoftmax(x, x, nil)
		return x
	}
	p, q := logs(0.3, -1, 2), logs(1, 1, -0.5)
	c.near("KL of equals", rlmath.CategoricalKL(p, p), 0, 0)
	// KL(p‖q) = cross-entropy − entropy.
	cross := 0.0
	for i := range p {
		cross -= math.Exp(p[i]) * q[i]
	}
	c.near("KL", rlmath.CategoricalKL(p, q), cross-rlmath.Entropy(p), 1e-12)
	// Large logits stay finite.
	big := logs(1000, 999, -1000)
	c.near("large logits", big[0], -math.Log(1+math.Exp(-1)), 1e-12)

	// Gaussian: KL by quadrature in one dimension; its entropy is that of the density.
	mean0, std0, mean1, std1 := []float64{0.4}, []float64{math.Log(0.7)}, []float64{-0.2}, []float64{math.Log(1.3)}
	kl, h := 0.0, 0.0
	for x := -9.0; x < 9; x += 1e-3 {
		l0 := rlmath.GaussianLogProb([]float64{x}, mean0, std0)
		kl += math.Exp(l0) * (l0 - rlmath.GaussianLogProb([]float64{x}, mean1, std1)) * 1e-3
		h -= math.Exp(l0) * l0 * 1e-3
	}
	c.near("Gaussian KL", rlmath.GaussianKL(mean0, std0, mean1, std1), kl, 1e-6)
	c.near("Gaussian entropy", rlmath.GaussianEntropy(std0), h, 1e-6)

	// tanh: equal to the textbook form where that works, and finite where it does not.
	for _, u := range []float64{0, 0.5, -2, 4} {
		y := math.Tanh(u)
		c.near("log(1−tanh²)", rlmath.TanhLogDet([]float64{u}), math.Log(1-y*y), 1e-9)
	}
	c.near("tanh at 40", rlmath.TanhLogDet([]float64{40, -40}), 4*(math.Ln2-40), 1e-12)
	c.near("tanh of float32", rlmath.TanhLogDet([]float32{20}), 2*(math.Ln2-20), 1e-7)

	if got := []int{rlmath.Argmax([]float64{1, 3, 3, 2}), rlmath.Argmax([]float64{math.NaN(), 1}), rlmath.Argmax([]float32{}), rlmath.Argmax([]float64{math.NaN()})}; got[0] != 1 || got[1] != 1 || got[2] != -1 || got[3] != -1 {
		t.Errorf("Argmax: %v", got)
	}
	c.total(3 + 2 + 4 + 2)
}

func TestStatistics(t *testing.T) {
	c := &comparer{t: t}
	x := []float64{3, -1, 4, 1, -5, 9}
	rlmath.Normalize(x)
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
		squares += v * v
	}
	c.near("mean", sum, 0, 1e-12)
	c.near("variance", squares/5, 1, 1e-7)
	one := []float32{7}
	rlmath.Normalize(one)
	c.near("a minibatch of one", float64(one[0]), 7, 0)
	same := []float32{2, 2, 2}
	rlmath.Normalize(same)
	c.near("equal advantages", float64(same[1]), 0, 0)

	target := []float64{1, 2, 3, 4}
	c.near("perfect prediction", rlmath.ExplainedVariance(target, target), 1, 0)
	c.near("perfect up to a shift", rlmath.ExplainedVariance([]float64{11, 12, 13, 14}, target), 1, 1e-12)
	c.near("constant prediction", rlmath.ExplainedVariance(repeat(9, 4), target), 0, 1e-12)
	c.near("wrong sign", rlmath.ExplainedVariance([]float64{-1, -2, -3, -4}, target), -3, 1e-12)
	if ev := rlmath.ExplainedVariance(target, repeat(2, 4)); !math.IsNaN(ev) {
		t.Errorf("constant targets: %v", ev)
	}

	rho := make([]float32, 2)
	rlmath.Ratios(rho, []float32{500, 0}, []float32{0, 500})
	c.near("clamped ratio", math.Log(float64(rho[0])), rlmath.MaxLogRatio, 1e-6)
	c.near("clamped ratio", math.Log(float64(rho[1])), -rlmath.MaxLogRatio, 1e-6)
	c.total(10)
}

func TestWrongLengthsPanic(t *testing.T) {
	x, y := make([]float64, 4), make([]float64, 3)
	calls := map[string]func(){
		"GAE":               func() { rlmath.GAE(x, x, x, x, y, 1, 1) },
		"width":             func() { rlmath.LambdaReturns(x, x, x, x, 1, 3) },
		"width 0":           func() { rlmath.DiscountedReturns(x, x, x, nil) },
		"n":                 func() { rlmath.NStepReturns(x, x, x, x, 0, 1) },
		"actions":           func() { rlmath.QTargets(y, y, y, x, nil) },
		"mask":              func() { rlmath.LogSoftmax(x, x, make([]bool, 3)) },
		"estimate":          func() { rlmath.ApproxKL(0, x, x) },
		"FoldTruncation":    func() { rlmath.FoldTruncation(x, x, y, make([]bool, 4)) },
		"VTrace":            func() { rlmath.VTrace(x, x, x, x, x, x, y, rlmath.DefaultVTrace(), 1) },
		"ExplainedVariance": func() { rlmath.ExplainedVariance(x, y) },
	}
	n := 0
	for name, call := range sorted.All(calls) {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
				n++
			}()
			call()
		}()
	}
	if n != len(calls) || n != 10 {
		t.Errorf("%d calls", n)
	}
	// Nothing at all is fine.
	rlmath.GAE[float32](nil, nil, nil, nil, nil, 1, 1)
	rlmath.LambdaReturns[float32](nil, nil, nil, nil, 1, 1)
	rlmath.DoubleQTargets[float32](nil, nil, nil, nil, nil, nil)
}

// work is every function on a rollout of 2,048 steps, or 256 × 8.
func work(width int) map[string]func() {
	const n = 2048
	w := newWalk(1, n/width, width)
	r, d, v0, v1, rho := narrow(w.r), narrow(w.d), narrow(w.v0), narrow(w.v1), narrow(w.rho)
	dst, pg, last := make([]float32, n), make([]float32, n), make([]bool, n)
	mask := make([]bool, 64)
	for i := range mask {
		mask[i] = i%3 > 0
	}
	q := v0[:64*32]
	return map[string]func(){
		"DiscountedReturns":   func() { rlmath.DiscountedReturns(dst, r, d, v1[n-width:]) },
		"LambdaReturns":       func() { rlmath.LambdaReturns(dst, r, d, v1, 0.95, width) },
		"NStepReturns":        func() { rlmath.NStepReturns(dst, r, d, v1, 5, width) },
		"GAE":                 func() { rlmath.GAE(dst, r, d, v0, v1, 0.95, width) },
		"TDErrors":            func() { rlmath.TDErrors(dst, r, d, v0, v1) },
		"VTrace":              func() { rlmath.VTrace(dst, pg, r, d, v0, v1, rho, rlmath.DefaultVTrace(), width) },
		"Ratios":              func() { rlmath.Ratios(dst, v0, v1) },
		"FoldTruncation":      func() { rlmath.FoldTruncation(r, d, v1, last) },
		"ClippedSurrogate":    func() { rlmath.ClippedSurrogate(v0, v1, r, 0.2) },
		"ApproxKL":            func() { rlmath.ApproxKL(rlmath.K3, v0, v1) },
		"LogSoftmax":          func() { rlmath.LogSoftmax(dst[:64], r[:64], mask) },
		"Entropy":             func() { rlmath.Entropy(dst[:64]) },
		"GaussianLogProb":     func() { rlmath.GaussianLogProb(r[:17], v0[:17], v1[:17]) },
		"TanhLogDet":          func() { rlmath.TanhLogDet(r[:17]) },
		"Normalize":           func() { rlmath.Normalize(dst) },
		"ExplainedVariance":   func() { rlmath.ExplainedVariance(v0, v1) },
		"DoubleQTargets":      func() { rlmath.DoubleQTargets(dst[:64], r[:64], d[:64], q, q, nil) },
		"SoftTargets":         func() { rlmath.SoftTargets(dst, r, d, v0, v1, rho, 0.2) },
		"TwinTargets":         func() { rlmath.TwinTargets(dst, r, d, v0, v1) },
		"DiscreteSoftTargets": func() { rlmath.DiscreteSoftTargets(dst[:64], r[:64], d[:64], q, q, q, 0.2) },
	}
}

func TestNothingIsAllocated(t *testing.T) {
	n := 0
	for name, f := range sorted.All(work(8)) {
		if a := testing.AllocsPerRun(10, f); a != 0 {
			t.Errorf("%s: %v allocations", name, a)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d functions", n)
	}
}

func BenchmarkRollout(b *testing.B) {
	for _, width := range []int{1, 8} {
		list := work(width)
		for _, name := range []string{"DiscountedReturns", "LambdaReturns", "NStepReturns", "GAE", "VTrace", "Ratios", "ClippedSurrogate", "Normalize", "ExplainedVariance"} {
			b.Run(name+map[int]string{1: "/2048x1", 8: "/256x8"}[width], func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					list[name]()
				}
			})
		}
	}
}
