package logs

import (
	"math"
	"testing"
)

// TestCompare has numbers of SciPy 1.17.1 (ttest_ind and ks_2samp), the first of which an official
// tournament has come to.
func TestCompare(t *testing.T) {
	cases := []struct {
		a, b        []float64
		t, tp, d, p float64
	}{
		{[]float64{1.0852305901972252, 1.1622947788092954}, []float64{1.0096127187413282, 0.889113278983473}, 2.438560014018767, 0.1349455262143851, 1, 1. / 3},
		{[]float64{1, 2, 3, 4, 5}, []float64{2.5, 3.5, 9}, -1.1420804814403216, 0.2969399993549051, 0.4, 0.8571428571428572},
	}
	for i, c := range cases {
		s, sp := student(c.a, c.b)
		d, p := kolmogorov(c.a, c.b)
		for k, x := range [][2]float64{{s, c.t}, {sp, c.tp}, {d, c.d}, {p, c.p}} {
			if !(math.Abs(x[0]-x[1]) < 1e-9) {
				t.Errorf("case %d, number %d: %v, expected %v", i, k, x[0], x[1])
			}
		}
	}
	if len(cases) != 2 {
		t.Errorf("%d cases", len(cases))
	}
	if s, p := student([]float64{1}, []float64{2}); !math.IsNaN(s) || !math.IsNaN(p) {
		t.Errorf("single scores: %v, %v", s, p)
	}
}
