package learning

import (
	"math"
	"reflect"
	"testing"
)

// TestSummarize checks the interquartile mean against SciPy's trim_mean(x, 0.25), and the rule.
func TestSummarize(t *testing.T) {
	tried := 0
	for _, c := range []struct {
		scores  []float64
		iqm     float64
		reached int
		passed  bool
	}{
		{[]float64{500, 470, 500, 480, 10}, (470 + 480 + 500) / 3., 3, false},
		{[]float64{500, 480, 500, 490, 10}, 490, 4, true},
		{[]float64{480}, 480, 1, true},
		{[]float64{480, 480, 470}, 1430 / 3., 2, false},
		{[]float64{1, 2, 3, 4, 1000, 1001, 1002, 1003}, (3 + 4 + 1000 + 1001) / 4., 4, false},
		{[]float64{476, 476, 476, 476, 474, 475, 475, 475, 475, 470}, 475 + 1/3., 8, true},
	} {
		s := Summarize(c.scores, 475)
		if math.Abs(s.IQM-c.iqm) > 1e-9 || s.Reached != c.reached || s.Passed != c.passed || (s.Low == nil) != (len(c.scores) < 2) || s.Low != nil && (*s.Low > s.IQM || *s.High < s.IQM) {
			t.Errorf("%v: %+v", c.scores, s)
		}
		if again := Summarize(c.scores, 475); !reflect.DeepEqual(again, s) {
			t.Errorf("%v: %+v and %+v", c.scores, s, again)
		}
		tried++
	}
	if tried != 6 {
		t.Errorf("%d cases", tried)
	}
	// All scores alike leave nothing to doubt.
	if s := Summarize([]float64{7, 7, 7, 7, 7}, 7); *s.Low != 7 || *s.High != 7 {
		t.Errorf("%+v", s)
	}
}
