package bars

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/state"
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

// TestFactorsOfActions: where there are dividends and bonus shares and no factor, prices are adjusted by
// the reference price that the exchanges compute, in files and row by row, and by nothing that comes
// later.
func TestFactorsOfActions(t *testing.T) {
	const text = `date,symbol,open,high,low,close,volume,cash,new
2020-01-01 15:00:00,A,10,10,10,10,5,,
2020-01-02 09:31:00,A,6,6,6,6,5,1,0.5
2020-01-02 15:00:00,A,6,9,6,9,5,1,0.5
2020-01-03 15:00:00,A,,,,,5,,
2020-01-06 15:00:00,A,8.1,8.1,8.1,8.1,5,0.9,
2020-01-07 15:00:00,A,2.7,2.7,2.7,2.7,5,0,2
2020-01-01 15:00:00,B,3,3,3,3,5,,
2020-01-06 15:00:00,B,3,3,3,3,5,,
`
	named := func(s *Source) { s.Columns = Columns{Dividend: "cash", Bonus: "new"} }
	by := func(adjust string) func(*Source) { return func(s *Source) { s.Adjust = adjust } }
	d := mustRead(t, source(write(t, "a.csv", text), named))
	if a := d.Adjustment; a.By != ByActions || a.Column != "cash and new" || a.Symbols != 2 || a.Changing != 1 || a.String() != "prices: adjusted by cash and new (2 of 2 symbols), which never changes for 1 of them" {
		t.Errorf("%+v: %s", a, a)
	}
	// (10 − 1)/(1 + 0.5) = 6 and 9 − 0.9 = 8.1 and 8.1/3 = 2.7 are the prices to compare with, so that
	// nothing moves but within the second day.
	s, report, err := Clean(d.Series[0], DefaultRules(), "keep")
	if err != nil || len(s.Records) != 5 || report.OffActions != 0 || report.SplitLike() != 0 {
		t.Fatalf("%+v, error %v", report, err)
	}
	for i, want := range []struct{ open, close, factor, raw float64 }{{10, 10, 1, 10}, {10, 10, 10. / 6, 6}, {10, 15, 10. / 6, 9}, {15, 15, 10. / 5.4, 8.1}, {15, 15, 10. / 1.8, 2.7}} {
		r := s.Records[i]
		if math.Abs(r.Open/want.open-1) > 1e-12 || math.Abs(r.Close/want.close-1) > 1e-12 || math.Abs(r.Quote[Factor]/want.factor-1) > 1e-12 || r.Quote[RawClose] != want.raw {
			t.Errorf("row %d: %+v, expected %+v", i, r, want)
		}
	}
	x := NewIncremental("A", DefaultSource(), DefaultRules(), d.Series[0].Quoted, func(string) {})
	x.Derive()
	k := 0
	for _, rec := range mustRead(t, source(write(t, "a.csv", text), named, by("none"))).Series[0].Records {
		valid, err := x.Next(&rec, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := state.Writer(nil)
		x.State(w)
		if x = NewIncremental("A", DefaultSource(), DefaultRules(), d.Series[0].Quoted, func(string) {}); valid {
			if !SameRow(&rec, &s.Records[k]) {
				t.Errorf("row by row %+v, expected %+v", rec, s.Records[k])
			}
			k++
		}
		x.Derive()
		x.State(state.Reader(w.Bytes()))
	}
	if k != 5 {
		t.Errorf("%d rows", k)
	}
	for i := range s.Records {
		cut := strings.Join(strings.SplitAfter(text, "\n")[:i+2], "")
		part := mustRead(t, source(write(t, "a.csv", cut), named))
		if got, want := part.Series[0].Records[i].Factor, d.Series[0].Records[i].Factor; got != want {
			t.Errorf("row %d: the factor is %v without what comes later, and %v with it", i, got, want)
		}
	}

	if a := mustRead(t, source(write(t, "a.csv", text), named, by("none"))).Adjustment; a.By != "none" || strings.Join(a.Unused, " ") != "cash new" {
		t.Errorf("%+v", a)
	}
	if _, err := Read(source(write(t, "a.csv", text), by("actions")), nil); err == nil || !strings.Contains(err.Error(), "no dividends or bonus shares (source.columns.dividend and bonus)") {
		t.Errorf("error %v", err)
	}
	own := strings.NewReplacer("cash,new", "cash,new,adj_factor", ",,\n", ",,,2\n", "0.5\n", "0.5,2\n", "0.9,\n", "0.9,,2\n", "0,2\n", "0,2,2\n").Replace(text)
	for _, c := range []struct{ adjust, by string }{{"auto", "factor"}, {"actions", ByActions}} {
		if a := mustRead(t, source(write(t, "a.csv", own), named, by(c.adjust))).Adjustment; a.By != c.by {
			t.Errorf("%s: %+v", c.adjust, a)
		}
	}
}
