package benchmark

import "testing"

func TestTargets(t *testing.T) {
	one := 1.0
	for _, c := range []struct {
		row  Row
		pass bool
	}{
		{Row{Ratio: 1.1, Target: AtMost(1.15)}, true},
		{Row{Ratio: 1.2, Target: AtMost(1.15)}, false},
		{Row{Ratio: 1.8, Target: AtLeast(1.7)}, true},
		{Row{Ratio: 1.6, Target: AtLeast(1.7)}, false},
		{Row{Ratio: 1.1, Target: AtMost(1.15), Allocs: &one}, false},
		{Row{Ratio: 99}, true},
	} {
		if c.row.Judge(); c.row.Pass != c.pass {
			t.Errorf("%+v: pass %v", c.row, c.row.Pass)
		}
	}
}

func TestSummarize(t *testing.T) {
	x := make([]float64, 1001)
	for i := range x {
		x[i] = float64(1000 - i)
	}
	s := Summarize(x)
	if s.Min != 0 || s.P10 != 100 || s.P50 != 500 || s.P99 != 990 || s.P999 != 999 || s.Max != 1000 || s.Mean != 500 || s.N != 1001 {
		t.Errorf("%+v", s)
	}
}
