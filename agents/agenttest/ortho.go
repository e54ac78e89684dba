package agenttest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
)

// OrthoInit looks at the parameters of new agents with two hidden layers for the policy and two for
// the value, which begin orthogonal or do not: with orthogonal rows or columns, whose gain is
// hidden, 0.01 before discrete actions and 1 before the value, and biases of 0; or uniform within
// one over the root of the inputs, both as PyTorch's layers begin.
func OrthoInit(t *testing.T, hidden float64, made func(ortho bool) agents.Agent) {
	t.Helper()
	n := 0
	for _, ortho := range []bool{true, false} {
		net, params := made(ortho).Learner().Policy()
		for _, s := range net.Specs {
			weight := params.View(strings.TrimSuffix(s.Name, ".bias") + ".weight")
			if weight == nil {
				weight = params.View(s.Name)
			}
			out, in := weight.Shape()[0], weight.Shape()[1]
			x := params.View(s.Name).Float32s()
			low, high, squares := slices.Min(x), slices.Max(x), 0.0
			for _, v := range x {
				squares += float64(v) * float64(v)
			}
			bias := strings.HasSuffix(s.Name, ".bias")
			bound := 1 / math.Sqrt(float64(in))
			gain := hidden
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
