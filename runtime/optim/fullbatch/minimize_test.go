package fullbatch

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// rosenbrock has its minimum, 0, at all ones.
func rosenbrock(p, g []float32) (float64, error) {
	clear(g)
	sum := 0.0
	for i := 0; i+1 < len(p); i++ {
		x, y := float64(p[i]), float64(p[i+1])
		a, b := y-x*x, 1-x
		sum += 100*a*a + b*b
		if g != nil {
			g[i] += float32(-400*x*a - 2*b)
			g[i+1] += float32(200 * a)
		}
	}
	return sum, nil
}

// leastSquares returns |A x - b|^2 / rows for b = A * want.
func leastSquares(want []float32, rows int) Objective {
	r := rand.New(rand.NewPCG(7, 7))
	a := make([][]float64, rows)
	b := make([]float64, rows)
	for i := range a {
		a[i] = make([]float64, len(want))
		for j := range a[i] {
			a[i][j] = r.NormFloat64()
			b[i] += a[i][j] * float64(want[j])
		}
	}
	return func(p, g []float32) (float64, error) {
		grad := make([]float64, len(p))
		sum := 0.0
		for i := range a {
			d := -b[i]
			for j := range p {
				d += a[i][j] * float64(p[j])
			}
			sum += d * d / float64(rows)
			for j := range p {
				grad[j] += 2 * d * a[i][j] / float64(rows)
			}
		}
		for j := range g {
			g[j] = float32(grad[j])
		}
		return sum, nil
	}
}

func sphere(p, g []float32) (float64, error) {
	if g != nil {
		return 0, errors.New("a gradient was asked for")
	}
	sum := 0.0
	for i, x := range p {
		d := float64(x) - float64(i)
		sum += d * d
	}
	return sum, nil
}

func TestMinimize(t *testing.T) {
	ones := []float32{1, 1}
	want := []float32{0.5, -1, 2, 0.25, -3}
	ramp := []float32{0, 1, 2, 3, 4, 5}
	cases := []struct {
		name  string
		cfg   Config
		f     Objective
		start []float32
		want  []float32
		tol   float64
	}{
		{"lbfgs rosenbrock", Config{Method: "lbfgs"}, rosenbrock, []float32{-1.2, 1}, ones, 1e-3},
		{"lbfgs rosenbrock, short memory", Config{Method: "lbfgs", Memory: 3}, rosenbrock, []float32{-1.2, 1}, ones, 1e-3},
		{"cg rosenbrock", Config{Method: "cg", MaxIterations: 5000}, rosenbrock, []float32{-1.2, 1}, ones, 2e-3},
		{"lbfgs least squares", Config{Method: "lbfgs"}, leastSquares(want, 40), make([]float32, 5), want, 1e-5},
		{"cg least squares", Config{Method: "cg"}, leastSquares(want, 40), make([]float32, 5), want, 1e-5},
		{"cmaes sphere", Config{Method: "cmaes", Seed: 3}, sphere, make([]float32, 6), ramp, 1e-3},
		{"cmaes rosenbrock", Config{Method: "cmaes", Seed: 3}, rosenbrock, []float32{-1.2, 1}, ones, 1e-2},
	}
	ran := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ran++
			run := func() ([]float32, Result) {
				p := append([]float32(nil), c.start...)
				r, err := Minimize(context.Background(), p, c.f, c.cfg, Hooks{})
				if err != nil {
					t.Fatal(err)
				}
				return p, r
			}
			p, r := run()
			t.Logf("%+v", r)
			for i := range p {
				if d := math.Abs(float64(p[i] - c.want[i])); !(d <= c.tol) {
					t.Errorf("parameter %d is %g, want %g", i, p[i], c.want[i])
				}
			}
			if !r.Converged && !r.Stalled {
				t.Errorf("neither converged nor stalled: %+v", r)
			}
			var g []float32
			if c.cfg.Method != "cmaes" {
				g = make([]float32, len(p))
			}
			if loss, _ := c.f(p, g); loss != r.Loss {
				t.Errorf("loss %g reported, the parameters returned have %g", r.Loss, loss)
			}
			if q, r2 := run(); r2 != r || !equal(p, q) {
				t.Errorf("a second run differs: %+v, %+v", r, r2)
			}
		})
	}
	if ran != 7 {
		t.Fatalf("%d cases ran, want 7", ran)
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestOneRunPerPoint checks that value and gradient share an evaluation.
func TestOneRunPerPoint(t *testing.T) {
	seen := map[[2]float32]int{}
	last := [2]float32{}
	f := func(p, g []float32) (float64, error) {
		at := [2]float32{p[0], p[1]}
		if seen[at] > 0 && at == last {
			t.Errorf("point %v evaluated twice in a row", at)
		}
		seen[at]++
		last = at
		return rosenbrock(p, g)
	}
	p := []float32{-1.2, 1}
	r, err := Minimize(context.Background(), p, f, Config{Method: "lbfgs"}, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, n := range sorted.Func(seen, func(a, b [2]float32) int { return slices.Compare(a[:], b[:]) }) {
		total += n
	}
	if total != r.Evaluations || total < 10 {
		t.Errorf("%d evaluations seen, %d reported", total, r.Evaluations)
	}
}

func TestEnds(t *testing.T) {
	boom := errors.New("boom")
	calls := 0
	failing := func(p, g []float32) (float64, error) {
		if calls++; calls == 5 {
			return 0, boom
		}
		return rosenbrock(p, g)
	}
	p := []float32{-1.2, 1}
	r, err := Minimize(context.Background(), p, failing, Config{Method: "lbfgs"}, Hooks{})
	if !errors.Is(err, boom) || r.Evaluations != 5 {
		t.Errorf("error %v after %d evaluations, want boom after 5", err, r.Evaluations)
	}
	if loss, _ := rosenbrock(p, make([]float32, 2)); loss != r.Loss || loss > 24.2 {
		t.Errorf("the best point has loss %g, reported %g", loss, r.Loss)
	}

	ctx, cancel := context.WithCancel(context.Background())
	calls = 0
	canceling := func(p, g []float32) (float64, error) {
		if calls++; calls == 4 {
			cancel()
		}
		return rosenbrock(p, g)
	}
	r, err = Minimize(ctx, []float32{-1.2, 1}, canceling, Config{Method: "cg"}, Hooks{})
	if !errors.Is(err, context.Canceled) || r.Evaluations != 4 {
		t.Errorf("error %v after %d evaluations, want canceled after 4", err, r.Evaluations)
	}

	r, err = Minimize(context.Background(), []float32{-1.2, 1}, rosenbrock, Config{Method: "lbfgs", MaxIterations: 3}, Hooks{})
	if err != nil || r.Converged || r.Iterations != 3 {
		t.Errorf("limit of 3 iterations: %+v, %v", r, err)
	}
	nan := func(p, g []float32) (float64, error) { return math.NaN(), nil }
	if _, err = Minimize(context.Background(), []float32{1}, nan, Config{Method: "lbfgs"}, Hooks{}); err == nil || !strings.Contains(err.Error(), "start is not finite") {
		t.Errorf("NaN at the start: %v", err)
	}
	if _, err = Minimize(context.Background(), make([]float32, 9000), sphere, Config{Method: "cmaes"}, Hooks{}); err == nil || !strings.Contains(err.Error(), "at most 8192") {
		t.Errorf("cmaes over 9000 parameters: %v", err)
	}
	// More than gonum's default of 100 stagnant iterations must be possible.
	flat := 0
	plateau := func(p, g []float32) (float64, error) { flat++; return 1, nil }
	r, err = Minimize(context.Background(), make([]float32, 3), plateau, Config{Method: "cmaes", MaxIterations: 150}, Hooks{})
	if err != nil || r.Iterations != 150 && !r.Converged {
		t.Errorf("plateau: %+v, %v", r, err)
	}
}

func TestValidate(t *testing.T) {
	c := Config{Method: "newton", MaxIterations: -1, GradTol: math.NaN(), FuncTol: 1, Memory: 3, Sigma: 1}
	err := c.Validate()
	want := []string{"method:", "max_iterations:", "grad_tol:", "func_tol:", "memory:", "sigma:"}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not mention %q", err, w)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != len(want) {
		t.Errorf("%d problems reported, want %d: %v", n, len(want), err)
	}
}
