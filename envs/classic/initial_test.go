package classic

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestInitialStates compares the first states of many episodes with the uniform distributions of
// Gymnasium's reset: bounds, mean, variance, quartiles and independence of the elements.
func TestInitialStates(t *testing.T) {
	type interval struct{ low, high float64 }
	cases := map[string][]interval{
		"cartpole":               {{-0.05, 0.05}, {-0.05, 0.05}, {-0.05, 0.05}, {-0.05, 0.05}},
		"pendulum":               {{-math.Pi, math.Pi}, {-1, 1}},
		"mountaincar":            {{-0.6, -0.4}, {0, 0}},
		"mountaincar_continuous": {{-0.6, -0.4}, {0, 0}},
		"acrobot":                {{-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}, {-0.1, 0.1}},
	}
	const n = 20000
	checked := 0
	for kind, intervals := range sorted.All(cases) {
		e := made(t, kind)
		ts := envs.NewTimeStep(e.Spec())
		sum, square, quarters := make([]float64, len(intervals)), make([]float64, len(intervals)), make([][4]int, len(intervals))
		cross := 0.0
		for k := range n {
			if err := e.Reset(rng.New(9).Split("episode", k), ts); err != nil {
				t.Fatal(err)
			}
			// Elements are compared as if they had been drawn from [0, 1).
			var unit [2]float64
			for i, v := range e.sys.state() {
				in := intervals[i]
				if in.low == in.high {
					if v != in.low {
						t.Fatalf("%s: element %d begins at %g, expected %g", kind, i, v, in.low)
					}
					continue
				}
				u := (v - in.low) / (in.high - in.low)
				if !(u >= -1e-6 && u <= 1+1e-6) {
					t.Fatalf("%s: element %d begins at %g, expected %g to %g", kind, i, v, in.low, in.high)
				}
				sum[i] += u
				square[i] += u * u
				quarters[i][min(max(int(4*u), 0), 3)]++
				if i < 2 {
					unit[i] = u - 0.5
				}
			}
			cross += unit[0] * unit[1]
		}
		for i, in := range intervals {
			if in.low == in.high {
				continue
			}
			checked++
			mean := sum[i] / n
			variance := square[i]/n - mean*mean
			// Four deviations of the mean are 0.0082, and of the variance 0.0021.
			if math.Abs(mean-0.5) > 0.009 || math.Abs(variance-1./12) > 0.0025 {
				t.Errorf("%s: element %d has mean %g and variance %g of its interval", kind, i, mean, variance)
			}
			for _, q := range quarters[i] {
				if math.Abs(float64(q)-n/4) > 4*math.Sqrt(n*3./16) {
					t.Errorf("%s: quarters of element %d have %v", kind, i, quarters[i])
				}
			}
		}
		// Four deviations of the covariance of two independent elements.
		if math.Abs(cross/n) > 4./12/math.Sqrt(n) {
			t.Errorf("%s: the first two elements have the covariance %g", kind, cross/n)
		}
	}
	if checked != 12 {
		t.Errorf("%d elements were checked, expected 12", checked)
	}
}
