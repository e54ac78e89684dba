package cmaes

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/optimize"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// sphere has its minimum at 1.
func sphere(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += (v - 1) * (v - 1)
	}
	return sum
}

// ellipsoid has axes of lengths that differ by a factor of 1000, not along the coordinates.
func ellipsoid(x []float64) float64 {
	sum, before := 0.0, 0.0
	for i, v := range x {
		u := v - 0.5*before
		sum += math.Pow(1e6, float64(i)/float64(len(x)-1)) * u * u
		before = v
	}
	return sum
}

// generations takes so many steps down f.
func generations(t *testing.T, s *Strategy, n int, f func([]float64) float64) (lowest float64) {
	t.Helper()
	x, losses := make([]float64, len(s.Mean())), make([]float64, s.Members())
	lowest = math.Inf(1)
	for range n {
		for k := range losses {
			s.Member(k, x)
			losses[k] = f(x)
			lowest = min(lowest, losses[k])
		}
		if err := s.Tell(losses); err != nil {
			t.Fatal(err)
		}
	}
	return lowest
}

func TestFindsMinima(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		name        string
		f           func([]float64) float64
		n, evaluate int
		want        float64
	}{{"sphere", sphere, 6, 1500, 1e-10}, {"ellipsoid", ellipsoid, 6, 6000, 1e-8}, {"sphere of 40", sphere, 40, 8000, 1e-6}, {"line", sphere, 1, 400, 1e-8}} {
		s := New(make([]float64, c.n), Config{Key: rng.New(3)})
		if got := generations(t, s, c.evaluate/s.Members(), c.f); !(got <= c.want) {
			t.Errorf("%s: %g after %d evaluations, expected at most %g", c.name, got, c.evaluate, c.want)
		}
		ran++
	}
	if ran != 4 {
		t.Errorf("%d functions", ran)
	}
}

// TestUpdateIsTheFormula compares C with the formula over samples, without the factor.
func TestUpdateIsTheFormula(t *testing.T) {
	s := New([]float64{0.3, -0.2, 0.9}, Config{Key: rng.New(5), Population: 6, Sigma: 0.7})
	covariance := func() (c [3][3]float64) {
		a := s.chol.RawU()
		for i := range 3 {
			for j := range 3 {
				for k := range 3 {
					c[i][j] += a.At(k, i) * a.At(k, j)
				}
			}
		}
		return c
	}
	compared := 0
	losses := make([]float64, 6)
	for range 20 {
		x := make([]float64, 3)
		for k := range losses {
			s.Member(k, x)
			losses[k] = ellipsoid(x)
		}
		before, old := covariance(), s.State()
		pc, mean := slices.Clone(old.PC), slices.Clone(old.Mean)
		ys := make([][]float64, 6)
		for k := range ys {
			ys[k] = slices.Clone(s.samples[k].y)
		}
		if err := s.Tell(losses); err != nil {
			t.Fatal(err)
		}
		order := []int{0, 1, 2, 3, 4, 5}
		slices.SortStableFunc(order, func(a, b int) int {
			if losses[a] < losses[b] {
				return -1
			}
			return 1
		})
		var y [3]float64
		for k, w := range s.weights {
			for i := range y {
				y[i] += w * ys[order[k]][i]
			}
		}
		// Either the path has moved, or what it lost is made up for.
		h := 0.0
		if math.Abs(s.pc[0]-(1-s.cc)*pc[0]) > 1e-12 {
			h = 1
		}
		after := covariance()
		for i := range 3 {
			if want := mean[i] + old.Sigma*y[i]; math.Abs(s.mean[i]-want) > 1e-12 {
				t.Errorf("mean %g, expected %g", s.mean[i], want)
			}
			for j := range 3 {
				want := (1 - s.c1 - s.cmu + s.c1*(1-h)*s.cc*(2-s.cc)) * before[i][j]
				want += s.c1 * s.pc[i] * s.pc[j]
				for k, w := range s.weights {
					want += s.cmu * w * ys[order[k]][i] * ys[order[k]][j]
				}
				if math.Abs(after[i][j]-want) > 1e-9*(1+math.Abs(want)) {
					t.Errorf("C[%d][%d] is %g, expected %g", i, j, after[i][j], want)
				}
				compared++
			}
		}
	}
	if compared != 180 {
		t.Errorf("%d elements compared", compared)
	}
}

// TestState: a strategy that goes on from a state has the bits of one that never stopped, and other
// states are refused.
func TestState(t *testing.T) {
	whole := New(make([]float64, 9), Config{Key: rng.New(3)})
	generations(t, whole, 30, ellipsoid)
	saved := whole.State()
	resumed := New(make([]float64, 9), Config{Key: rng.New(3)})
	generations(t, resumed, 4, sphere)
	if err := resumed.SetState(saved); err != nil {
		t.Fatal(err)
	}
	generations(t, whole, 30, ellipsoid)
	generations(t, resumed, 30, ellipsoid)
	a, b := whole.State(), resumed.State()
	if !slices.Equal(a.Factor, b.Factor) || !slices.Equal(a.Mean, b.Mean) || !slices.Equal(a.PC, b.PC) || !slices.Equal(a.PS, b.PS) || a.Sigma != b.Sigma || a.Generation != 60 || b.Generation != 60 {
		t.Error("a strategy that was resumed differs from one that never stopped")
	}
	short, flat, none := a, a, a
	short.Factor, none.Sigma = a.Factor[:5], 0
	flat.Factor = slices.Clone(a.Factor)
	flat.Factor[9] = 0
	for want, s := range sorted.All(map[string]State{"a factor of 5 numbers": short, "element 1 of the factor's diagonal": flat, "a step size of 0": none}) {
		if err := resumed.SetState(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := whole.Tell(make([]float64, 3)); err == nil || !strings.Contains(err.Error(), "3 losses") {
		t.Errorf("3 losses: %v", err)
	}
	if err := whole.Tell(slices.Repeat([]float64{math.NaN()}, whole.Members())); err == nil {
		t.Error("losses that are no numbers are taken")
	}
}

// TestGonum shows why gonum's CmaEsChol does not take the steps. When it fails, gonum is mended.
func TestGonum(t *testing.T) {
	spread := func(sigma float64) (most float64) {
		problem := optimize.Problem{Func: func(x []float64) float64 {
			for _, v := range x {
				most = max(most, math.Abs(v))
			}
			return sphere(x)
		}}
		method := &optimize.CmaEsChol{InitStepSize: sigma, Population: 10, Src: rand.NewPCG(1, 2)}
		if _, err := optimize.Minimize(problem, make([]float64, 6), &optimize.Settings{FuncEvaluations: 9}, method); err != nil {
			t.Fatal(err)
		}
		return most
	}
	if small, large := spread(1e-6), spread(1); small != large || small < 0.5 {
		t.Errorf("gonum's first samples reach to %g with a step size of 1e-6 and to %g with 1: it may be mended", small, large)
	}
	lowest := math.Inf(1)
	problem := optimize.Problem{Func: func(x []float64) float64 {
		lowest = min(lowest, sphere(x))
		return sphere(x)
	}}
	if _, err := optimize.Minimize(problem, make([]float64, 6), &optimize.Settings{FuncEvaluations: 1500, Converger: optimize.NeverTerminate{}}, &optimize.CmaEsChol{Src: rand.NewPCG(1, 2)}); err != nil {
		t.Fatal(err)
	}
	s := New(make([]float64, 6), Config{Key: rng.New(3)})
	if ours := generations(t, s, 1500/s.Members(), sphere); !(lowest > 1e-4 && ours < 1e-10) {
		t.Errorf("after 1500 evaluations of a sphere gonum is at %g, this package at %g: gonum may be mended", lowest, ours)
	}
	t.Logf("after 1500 evaluations of a six-dimensional sphere gonum is at %g", lowest)
}
