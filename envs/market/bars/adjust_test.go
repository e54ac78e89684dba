package bars

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// splitFile is a stock whose price halves on day 50 and doubles again on day 80, with columns of
// numbers made from the day and the raw close.
func splitFile(t *testing.T, columns string, more func(day int, close float64) string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close" + columns + "\n")
	for d := range 120 {
		p := 10 + 0.02*float64(d%7)
		if d >= 50 && d < 80 {
			p /= 2
		}
		fmt.Fprintf(&b, "%s,A,%.4f,%.4f,%.4f,%.4f%s\n", day(d).Format("2006-01-02"), p, p*1.01, p*0.99, p, more(d, p))
	}
	return write(t, "a.csv", b.String())
}

// factorOf undoes the split of splitFile.
func factorOf(d int) float64 {
	if d >= 50 && d < 80 {
		return 2
	}
	return 1
}

func TestAdjustment(t *testing.T) {
	factor := func(d int, _ float64) string { return fmt.Sprintf(",%g", factorOf(d)) }
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		file   string
		adjust string
		says   string // of the adjustment, or of the error
		err    bool
		jumps  int // like those of a split
	}{
		"adj_factor, auto": {splitFile(t, ",adj_factor", factor), "auto", "prices: adjusted by adj_factor (1 of 1 symbols)", false, 0},
		"adj_factor, none": {splitFile(t, ",adj_factor", factor), "none", "prices: as given, NOT adjusted for splits and dividends (columns that are not used: adj_factor)", false, 2},
		"no column":        {splitFile(t, "", func(int, float64) string { return "" }), "auto", "(there is no column adj_close or adj_factor)", false, 2},
		"adj_close first": {splitFile(t, ",adj_factor,adj_close", func(d int, p float64) string { return fmt.Sprintf(",%g,%.6f", factorOf(d), factorOf(d)*p/2) }),
			"auto", "prices: adjusted by adj_close (1 of 1 symbols); not used: adj_factor", false, 0},
		"factor by name": {splitFile(t, ",adj_factor,adj_close", func(d int, p float64) string { return fmt.Sprintf(",%g,%.6f", factorOf(d), p) }),
			"factor", "prices: adjusted by adj_factor (1 of 1 symbols); not used: adj_close", false, 0},
		"a column factor may be anything": {splitFile(t, ",factor", factor), "auto", "NOT adjusted for splits and dividends (columns that are not used: factor)", false, 2},
		"constant":                        {splitFile(t, ",adj_factor", func(int, float64) string { return ",3" }), "auto", "adjusted by adj_factor (1 of 1 symbols), which never changes: nothing is adjusted", false, 2},
		"blank":                           {splitFile(t, ",adj_factor", func(int, float64) string { return "," }), "auto", "adjusted by adj_factor (0 of 1 symbols), which never changes: nothing is adjusted; as given: A", false, 2},
		"prices that are adjusted already": {splitFile(t, ",adj_factor", func(d int, _ float64) string {
			return fmt.Sprintf(",%g", map[bool]float64{true: 2, false: 1}[d >= 20 && d < 40])
		}), "auto", "at 2 of 2 large changes of the factor the price does not jump: the prices look adjusted already; set source.adjust: none", true, 0},
		"adjusted already, asked for": {splitFile(t, ",adj_factor", func(d int, _ float64) string {
			return fmt.Sprintf(",%g", map[bool]float64{true: 2, false: 1}[d >= 20 && d < 40])
		}), "factor", "the prices look adjusted already", false, 4},
	}) {
		cases++
		d, err := Read(source(c.file, func(s *Source) { s.Adjust = c.adjust }), nil)
		if c.err {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, expected %q", name, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := d.Adjustment.String(); !strings.Contains(text, c.says) {
			t.Errorf("%s: %q, expected %q", name, text, c.says)
		}
		clean, report, err := Clean(d.Series[0], DefaultRules(), "keep")
		if err != nil || report.SplitLike() != c.jumps {
			t.Errorf("%s: %d jumps like splits, expected %d, %v", name, report.SplitLike(), c.jumps, err)
			continue
		}
		smooth := 0.0
		for i := 1; i < len(clean.Records); i++ {
			smooth = max(smooth, math.Abs(math.Log(clean.Records[i].Open/clean.Records[i-1].Close)))
		}
		if (smooth < 0.1) != (c.jumps == 0) {
			t.Errorf("%s: the largest move overnight is %g", name, smooth)
		}
	}
	if cases != 10 {
		t.Errorf("%d cases, expected 10", cases)
	}
}

// Bonus shares are found by smaller jumps than splits, rises and restless days are not.
func TestBonusShares(t *testing.T) {
	for name, c := range sorted.All(map[string]struct {
		ratio, high, low float64
		like             string
	}{
		"3 on 10":     {1 / 1.3, 1.005, 0.99, "13:10"},
		"5 on 10":     {1.005 / 1.5, 1.01, 0.99, "3:2"},
		"2 on 10":     {0.995 / 1.2, 1.01, 0.99, "6:5"},
		"off":         {1 / 1.225, 1.005, 0.99, ""},
		"a fall":      {1 / 1.3, 1.1, 0.9, ""},
		"a rise":      {1.3, 1.005, 0.99, ""},
		"a small one": {1 / 1.1, 1.005, 0.99, ""},
	}) {
		p := 100 * c.ratio
		jumps := findJumps([]Record{flat(0, 100), flat(1, 100), rec(2, p, p*c.high, p*c.low, p, 10)}, 0.4)
		like := ""
		if len(jumps) > 0 {
			like = jumps[0].Like
		}
		if like != c.like {
			t.Errorf("%s: %q, expected %q", name, like, c.like)
		}
	}
}
