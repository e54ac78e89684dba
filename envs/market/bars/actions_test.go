package bars

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Dividends and bonus shares are brought to one share and compared with the factor; what cannot be
// is refused with its place.
func TestActions(t *testing.T) {
	const header = "日期,股票代码,开盘,最高,最低,收盘,成交量,复权因子,派息,送转\n2020-01-01,A,10,10,10,10,5,1,,\n"
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		row      string
		per      float64
		dividend float64
		bonus    float64
		off      int
		err      string
	}{
		"a dividend":           {"2020-01-02,A,9,9,9,9,5,1.111111,10,0", 0, 1, 0, 0, ""},
		"bonus shares":         {"2020-01-02,A,5,5,5,5,5,2,,10", 0, 0, 1, 0, ""},
		"both":                 {"2020-01-02,A,8,8,8,8,5,1.25,4,2", 0, 0.4, 0.2, 0, ""},
		"nothing":              {"2020-01-02,A,9,9,9,9,5,1,0,", 0, 0, 0, 0, ""},
		"for one share":        {"2020-01-02,A,9,9,9,9,5,1.111111,1,0", 1, 1, 0, 0, ""},
		"another day":          {"2020-01-02,A,9,9,9,9,5,1,10,0", 0, 1, 0, 1, ""},
		"a factor by itself":   {"2020-01-02,A,5,5,5,5,5,2,0,0", 0, 0, 0, 1, ""},
		"a negative dividend":  {"2020-01-02,A,9,9,9,9,5,1,-10,0", 0, 0, 0, 0, "symbol A: 2020-01-02 (a.csv, line 3): the dividend -1, expected a number that is not negative"},
		"more than the price":  {"2020-01-02,A,9,9,9,9,5,1,10,0", 0.5, 0, 0, 0, "symbol A: 2020-01-02 (a.csv, line 3): a dividend of 20 a share, whose close before was 10; is it for several shares (source.per_shares)?"},
		"twice on one morning": {"2020-01-02 09:31:00,A,9,9,9,9,5,1.111111,10,0\n2020-01-02 09:32:00,A,9,9,9,9,5,1.111111,10,0", 0, 0, 0, 0, ""},
	}) {
		cases++
		text := header + c.row + "\n"
		if strings.Contains(c.row, ":") {
			text = strings.Replace(text, "2020-01-01,", "2020-01-01 15:00:00,", 1)
		}
		d, err := Read(source(write(t, "a.csv", text), func(s *Source) {
			s.Preset, s.Columns, s.PerShares = "akshare", Columns{Dividend: "派息", Bonus: "送转"}, c.per
		}), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		clean, report, err := Clean(d.Series[0], DefaultRules(), "keep")
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, expected %q", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(name, err)
		}
		q := clean.Records[len(clean.Records)-1].Quote
		if q[Dividend] != c.dividend || q[Bonus] != c.bonus || report.OffActions != c.off || (report.FirstOffAction != "") != (c.off > 0) {
			t.Errorf("%s: dividend %g, bonus %g, %d at odds (%s)", name, q[Dividend], q[Bonus], report.OffActions, report.FirstOffAction)
		}
	}
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
}
