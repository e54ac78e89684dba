package ppo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"onnxrl/runtime/engine/testengines"
)

// TestOrthoInit looks at the parameters of a new agent: orthogonal rows or columns of the gains of the package comment and biases of 0, or uniform within one over the root of the inputs, both as PyTorch's layers begin.
func TestOrthoInit(t *testing.T) {
	n := 0
	for _, ortho := range []bool{true, false} {
		c := Defaults()
		c.OrthoInit, c.Hidden = ortho, []int{32, 32}
		a := agentOf(t, c, cartpoles(t, 1), testengines.Fastest(t), 1)
		for _, s := range a.graphs.policy.Specs {
			weight := a.params.View(strings.TrimSuffix(s.Name, ".bias") + ".weight")
			if weight == nil {
				weight = a.params.View(s.Name)
			}
			out, in := weight.Shape()[0], weight.Shape()[1]
			x := a.params.View(s.Name).Float32s()
			low, high, squares := slices.Min(x), slices.Max(x), 0.0
			for _, v := range x {
				squares += float64(v) * float64(v)
			}
			bias := strings.HasSuffix(s.Name, ".bias")
			bound := 1 / math.Sqrt(float64(in))
			gain := math.Sqrt2
			switch {
			case strings.Contains(s.Name, "logits"):
				gain = 0.01
			case strings.Contains(s.Name, "value"):
				gain = 1
			}
			n++
			switch {
			case ortho && bias:
				if low != 0 || high != 0 {
					t.Errorf("%s begins with %v", s.Name, x)
				}
			case ortho:
				if want := gain * gain * float64(min(in, out)); math.Abs(squares/want-1) > 1e-4 {
					t.Errorf("the squares of %s are %g together, expected %g", s.Name, squares, want)
				}
			default:
				if float64(low) < -bound || float64(high) > bound || low == high && len(x) > 1 || low == 0 {
					t.Errorf("%s lies in [%g, %g], expected ±%g", s.Name, low, high, bound)
				}
				if want := bound * bound / 3 * float64(len(x)); len(x) > 100 && math.Abs(squares/want-1) > 0.25 {
					t.Errorf("the squares of %s are %g together, expected about %g", s.Name, squares, want)
				}
			}
		}
	}
	if n != 2*12 {
		t.Errorf("%d parameters", n)
	}
}
