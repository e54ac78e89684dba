package logs

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/onnxrl/onnxrl/runtime/sorted"

	"github.com/onnxrl/onnxrl/envs/scml/league"
)

var compareColumns = []string{"index", "a", "b", "t", "p", "n_a", "n_b", "n_effective"}

// compare writes the tests of each two types: tstats.csv has Student's of equal means, kstats.csv
// Kolmogorov's and Smirnov's of equal distributions.
func (t *Tournament) compare(scores map[string][]float64) error {
	var types []string
	for name := range sorted.All(scores) {
		types = append(types, name)
	}
	for _, x := range []struct {
		name string
		test func(a, b []float64) (statistic, p float64)
	}{{"tstats.csv", student}, {"kstats.csv", kolmogorov}} {
		w, err := newTable(t.dir, x.name, compareColumns...)
		if err != nil {
			return err
		}
		n := 0
		for i, a := range types {
			for _, b := range types[i+1:] {
				statistic, p := x.test(scores[a], scores[b])
				w.whole(n)
				w.text(a)
				w.text(b)
				w.number(statistic)
				w.number(p)
				for _, k := range []int{len(scores[a]), len(scores[b]), min(len(scores[a]), len(scores[b]))} {
					w.whole(k)
				}
				w.end()
				n++
			}
		}
		if err := w.close(); err != nil {
			return err
		}
	}
	return nil
}

// student is the two-sided test of equal means under equal variances.
func student(a, b []float64) (t, p float64) {
	n, m := float64(len(a)), float64(len(b))
	x, y := league.Describe(a), league.Describe(b)
	if n+m < 3 {
		return math.NaN(), math.NaN()
	}
	sum := 0.0
	for i, d := range [][]float64{x, y} {
		if k := []float64{n, m}[i]; k > 1 {
			sum += (k - 1) * d[2] * d[2]
		}
	}
	t = (x[1] - y[1]) / math.Sqrt(sum/(n+m-2)*(1/n+1/m))
	return t, 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n + m - 2}.Survival(math.Abs(t))
}

// kolmogorov is the two-sided test of equal distributions: the largest distance d between the two
// distribution functions, and the exact share of orders of the values in which it is d or more.
func kolmogorov(a, b []float64) (d, p float64) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	n, m := len(a), len(b)
	far := func(i, j int) float64 { return math.Abs(float64(i)/float64(n) - float64(j)/float64(m)) }
	for i, j := 0, 0; i < n && j < m; {
		x := min(a[i], b[j])
		for i < n && a[i] == x {
			i++
		}
		for j < m && b[j] == x {
			j++
		}
		d = max(d, far(i, j))
	}
	// near is the share of orders of the first i and j values that are never as far apart as d.
	near := make([]float64, m+1)
	for i := range n + 1 {
		for j := range m + 1 {
			switch {
			case i == 0 && j == 0:
				near[j] = 1
			case far(i, j) > d-1e-12:
				near[j] = 0
			case i == 0:
				near[j] = near[j-1]
			case j > 0:
				near[j] = (near[j]*float64(i) + near[j-1]*float64(j)) / float64(i+j)
			}
		}
	}
	return d, min(max(1-near[m], 0), 1)
}
