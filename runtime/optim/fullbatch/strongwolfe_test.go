package fullbatch

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// search drives a line search over a function of the step, for at most limit evaluations.
func search(s optimize.Linesearcher, phi func(step float64) (f, g float64), step float64, limit int) (end float64, asked int, err error) {
	f, g := phi(0)
	op := s.Init(f, g, step)
	for asked < limit {
		if op == optimize.MajorIteration {
			return step, asked, nil
		}
		f, g = phi(step)
		asked++
		if op, step, err = s.Iterate(f, g); err != nil {
			return step, asked, err
		}
	}
	return step, asked, nil
}

// TestStrongWolfeHolds: whatever the function, the search ends where the conditions hold, and in
// half of the evaluations of gonum's searches, which is the reason for having it.
func TestStrongWolfeHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	searches, most, total := 0, 0, 0
	var theirs, bad [2]int
	for range 5000 {
		// A bowl with waves, or a wall of infinite losses; gradients of many sizes.
		size, low, wave, often, wall := math.Exp(3*r.NormFloat64()), math.Exp(2*r.NormFloat64()), 0.5*r.Float64(), 5*r.Float64(), math.Inf(1)
		if r.IntN(3) == 0 {
			wall = 2 * low
		}
		phase := 2 * math.Pi * r.Float64()
		phi := func(x float64) (f, g float64) {
			if x >= wall {
				return math.Inf(1), math.NaN()
			}
			u := x/low - 1
			f, g = u*u/2+wave*math.Sin(often*u+phase), (u+wave*often*math.Cos(often*u+phase))/low
			if !math.IsInf(wall, 1) {
				f, g = f-0.1*math.Log(1-x/wall), g+0.1/(wall-x)
			}
			return size * f, size * g
		}
		f0, g0 := phi(0)
		if !(g0 < 0) {
			continue
		}
		first := math.Exp(2 * r.NormFloat64())
		for i, g := range []optimize.Linesearcher{&optimize.Bisection{CurvatureFactor: curvature}, &optimize.MoreThuente{DecreaseFactor: decrease, CurvatureFactor: curvature}} {
			s2, asked, err := search(g, phi, first, 100)
			theirs[i] += asked
			if f, g := phi(s2); err != nil || !optimize.StrongWolfeConditionsMet(f, g, f0, g0, s2, decrease, curvature) {
				bad[i]++
			}
		}
		step, asked, err := search(&strongWolfe{}, phi, first, 2*maxSearch)
		searches, most, total = searches+1, max(most, asked), total+asked
		if f, g := phi(step); err != nil || !optimize.StrongWolfeConditionsMet(f, g, f0, g0, step, decrease, curvature) {
			t.Fatalf("search %d ends at a step of %g after %d evaluations: %v; loss %g from %g, slope %g from %g", searches, step, asked, err, f, f0, g, g0)
		}
	}
	t.Logf("%d searches, %.2f evaluations each, at most %d", searches, float64(total)/float64(searches), most)
	if searches < 3000 || most > maxSearch {
		t.Errorf("%d searches, up to %d evaluations", searches, most)
	}
	for i, name := range []string{"Bisection", "MoreThuente"} {
		t.Logf("gonum's %s: %.2f evaluations each, %d searches end where the conditions do not hold, or not at all", name, float64(theirs[i])/float64(searches), bad[i])
		if theirs[i] < 2*total {
			t.Errorf("gonum's %s takes %d evaluations, and this search %d: it could be used", name, theirs[i], total)
		}
	}
}

// TestSearchEndsOnSteps: a loss in float32 has steps, on which no point falls by enough; the search
// ends and says so.
func TestSearchEndsOnSteps(t *testing.T) {
	phi := func(x float64) (f, g float64) { return float64(float32(1 + 1e-9*(x-1)*(x-1))), 2e-9 * (x - 1) }
	if _, asked, err := search(&strongWolfe{}, phi, 0.5, 1000); !errors.Is(err, optimize.ErrLinesearcherFailure) || asked > maxSearch {
		t.Errorf("%v after %d evaluations", err, asked)
	}
}

// TestSearchReturnsToTheBest: where the limit ends a search in an interval, the lower end is taken,
// and evaluated again unless it was the last.
func TestSearchReturnsToTheBest(t *testing.T) {
	// The loss falls by enough everywhere before 1, but its slope is steep on both sides.
	phi := func(x float64) (f, g float64) {
		if x < 1 {
			return -x, -1
		}
		return 10 * x, 10
	}
	step, asked, err := search(&strongWolfe{}, phi, 0.3, 100)
	if f, _ := phi(step); err != nil || asked > maxSearch+1 || f > -0.9 {
		t.Errorf("step %g with a loss of %g after %d evaluations: %v", step, f, asked, err)
	}
}

// TestFirstScale: the first step has PyTorch's length.
func TestFirstScale(t *testing.T) {
	for _, c := range []struct {
		grads []float32
		want  float64
	}{
		{[]float32{3, -4}, 7.0 / 5}, // ‖g‖₂/‖g‖₁ = 5/7
		{[]float32{0.3, -0.4}, 2},   // ‖g‖₂ = 0.5, since ‖g‖₁ < 1
		{[]float32{0, 0}, 1},
		{[]float32{float32(math.NaN()), 1}, 1},
	} {
		if got := firstScale(c.grads); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%v: scale %g, want %g", c.grads, got, c.want)
		}
	}
}
