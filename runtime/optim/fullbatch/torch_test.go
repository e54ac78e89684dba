package fullbatch

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/optimize"
)

// The functions of cmd/peers/lbfgs_vectors.py, in float64: each returns the loss and writes the
// gradient.
var torchFunctions = map[string]func(p, g []float64) float64{
	"rosenbrock": func(p, g []float64) float64 {
		clear(g)
		sum := 0.0
		for i := range len(p) - 1 {
			a, b := p[i+1]-p[i]*p[i], 1-p[i]
			sum += 100*a*a + b*b
			g[i] += -400*p[i]*a - 2*b
			g[i+1] += 200 * a
		}
		return sum
	},
	"logistic": func(p, g []float64) float64 {
		const rows = 30
		sum := 0.0
		for j, x := range p {
			sum += 1e-3 * x * x
			g[j] = 2e-3 * x
		}
		for i := range rows {
			sign, z := -1.0, 0.0
			if math.Cos(3*float64(i)) > 0 {
				sign = 1
			}
			for j, w := range p {
				z += sign * w * math.Sin(float64((i+1)*(j+2)))
			}
			sum += math.Log1p(math.Exp(-z)) / rows
			for j := range p {
				g[j] -= sign * math.Sin(float64((i+1)*(j+2))) / (1 + math.Exp(z)) / rows
			}
		}
		return sum
	},
	"waves": func(p, g []float64) float64 {
		sum := 0.0
		for i, x := range p {
			k := 0.01 * float64(i+1)
			sum += k * (x*x + math.Sin(3*x))
			g[i] = k * (2*x + 3*math.Cos(3*x))
		}
		return sum
	},
}

// TestLBFGSEvaluatesWhatPyTorchDoes: gonum's L-BFGS with this package's search and scale asks for
// the points that PyTorch's asks for, evaluation by evaluation.
func TestLBFGSEvaluatesWhatPyTorchDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/lbfgs.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Memory, Iterations int
		Cases              []struct {
			Function      string
			Start, Losses []float64
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range v.Cases {
		f, n := torchFunctions[c.Function], len(c.Start)
		g, x, at := make([]float64, n), make([]float64, n), make([]float64, n)
		var losses []float64
		f(c.Start, g)
		scale := firstScale(g)
		ask := func(scaled []float64) float64 {
			for i := range x {
				x[i] = scaled[i] / scale
			}
			loss := f(x, g)
			if len(losses) == 0 || !slices.Equal(x, at) {
				losses = append(losses, loss)
			}
			copy(at, x)
			return loss
		}
		start := make([]float64, n)
		for i := range start {
			start[i] = scale * c.Start[i]
		}
		config := Config{Method: "lbfgs", MaxIterations: v.Iterations}
		settings := config.settings()
		settings.GradientThreshold /= scale
		_, err := optimize.Minimize(optimize.Problem{Func: ask, Grad: func(to, scaled []float64) {
			ask(scaled)
			for i := range to {
				to[i] = g[i] / scale
			}
		}}, start, settings, &optimize.LBFGS{Store: v.Memory, Linesearcher: &strongWolfe{}, GradStopThreshold: math.NaN()})
		if err != nil {
			t.Errorf("%s: %v", c.Function, err)
		}
		// Roundings decide about the last iteration where the gradient is near the tolerance.
		if d := len(losses) - len(c.Losses); d < -1 || d > 1 || len(losses) < 7 {
			t.Errorf("%s: %d evaluations, PyTorch %d", c.Function, len(losses), len(c.Losses))
		}
		worst := 0.0
		for i, want := range c.Losses[:min(len(losses), len(c.Losses))] {
			d := math.Abs(losses[i]-want) / (1e-6 + math.Abs(want))
			if worst = max(worst, d); d > 1e-3 {
				t.Errorf("%s: evaluation %d has a loss of %.10g, PyTorch's %.10g", c.Function, i+1, losses[i], want)
				break
			}
			compared++
		}
		t.Logf("%s: %d evaluations, losses at most %.2g apart", c.Function, len(losses), worst)
	}
	if compared < 120 {
		t.Errorf("%d evaluations compared", compared)
	}
}
