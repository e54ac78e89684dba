package bars

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func day(n int) time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }

func rec(n int, open, high, low, close, volume float64) Record {
	return Record{Bar: Bar{Time: day(n), Open: open, High: high, Low: low, Close: close, Volume: volume}, Factor: 1, File: "a.csv", Line: n + 2}
}

func flat(n int, price float64) Record { return rec(n, price, price, price, price, 100) }

func TestCleanFinds(t *testing.T) {
	nan := math.NaN()
	for name, c := range sorted.All(map[string]struct {
		rows  []Record
		rules func(*Rules)
		want  SymbolReport // counts only
		left  int
		err   string
	}{
		"nothing":              {rows: []Record{flat(0, 1), flat(1, 1)}, left: 2},
		"equal duplicate":      {rows: []Record{flat(0, 1), flat(0, 1), flat(1, 1)}, left: 2, want: SymbolReport{Duplicates: 1}},
		"conflict":             {rows: []Record{flat(0, 1), flat(0, 2)}, err: "differs from the row of the same time in line 2 (close 1 and 2); choose one with quality.duplicates"},
		"conflict, first":      {rows: []Record{flat(0, 1), flat(0, 2)}, rules: func(r *Rules) { r.Duplicates = "first" }, left: 1, want: SymbolReport{Conflicts: 1}},
		"conflict, last":       {rows: []Record{flat(0, 1), flat(0, 2)}, rules: func(r *Rules) { r.Duplicates = "last" }, left: 1, want: SymbolReport{Conflicts: 1}},
		"unsorted":             {rows: []Record{flat(1, 1), flat(0, 1), flat(2, 1)}, left: 3, want: SymbolReport{Unsorted: 1}},
		"unsorted, error":      {rows: []Record{flat(1, 1), flat(0, 1), flat(2, 1)}, rules: func(r *Rules) { r.Unsorted = "error" }, err: "2020-01-01 (a.csv, line 2): earlier than the row before"},
		"negative price":       {rows: []Record{flat(0, 1), flat(1, -1)}, left: 1, want: SymbolReport{BadPrices: 1}},
		"zero price":           {rows: []Record{flat(0, 1), rec(1, 0, 1, 0, 1, 5)}, left: 1, want: SymbolReport{BadPrices: 1}},
		"infinite price":       {rows: []Record{flat(0, 1), rec(1, 1, math.Inf(1), 1, 1, 5)}, left: 1, want: SymbolReport{BadPrices: 1}},
		"negative price error": {rows: []Record{flat(0, 1), flat(1, -1)}, rules: func(r *Rules) { r.BadPrices = "error" }, err: "prices -1, -1, -1, -1"},
		"blank":                {rows: []Record{flat(0, 1), rec(1, nan, nan, nan, nan, 0)}, left: 1, want: SymbolReport{Blank: 1}},
		"half blank":           {rows: []Record{flat(0, 1), rec(1, nan, 1, 1, 1, 9)}, left: 1, want: SymbolReport{BadPrices: 1}},
		"only blank":           {rows: []Record{rec(0, nan, nan, nan, nan, 0)}, err: "none of its 1 rows has valid prices"},
		"inconsistent":         {rows: []Record{rec(0, 10, 9, 8, 9, 1)}, left: 1, want: SymbolReport{Inconsistent: 1, OpenOffRange: 1}},
		"inconsistent missing": {rows: []Record{flat(0, 1), rec(1, 10, 9, 8, 9, 1)}, rules: func(r *Rules) { r.Inconsistent = "missing" }, left: 1, want: SymbolReport{Inconsistent: 1, OpenOffRange: 1}},
		"rounded":              {rows: []Record{rec(0, 10, 9.99999, 9.9, 10, 1)}, left: 1},
		"negative volume":      {rows: []Record{rec(0, 1, 1, 1, 1, -5)}, left: 1, want: SymbolReport{NegativeVolume: 1}},
		"negative volume err":  {rows: []Record{rec(0, 1, 1, 1, 1, -5)}, rules: func(r *Rules) { r.NegativeVolume = "error" }, err: "volume -5"},
		"zero volume":          {rows: []Record{rec(0, 1, 1, 1, 1, 0)}, left: 1, want: SymbolReport{ZeroVolume: 1, Suspended: 1}},
		"zero volume traded":   {rows: []Record{rec(0, 1, 1, 1, 1, 0)}, rules: func(r *Rules) { r.ZeroVolume = "traded" }, left: 1, want: SymbolReport{ZeroVolume: 1}},
		"no volume":            {rows: []Record{rec(0, 1, 1, 1, 1, nan)}, left: 1, want: SymbolReport{MissingVolume: 1}},
	}) {
		t.Run(name, func(t *testing.T) {
			rules := DefaultRules()
			if c.rules != nil {
				c.rules(&rules)
			}
			before := slices.Clone(c.rows)
			got, report, err := Clean(Series{Symbol: "A", Records: c.rows}, rules, "keep")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), "symbol A") {
					t.Fatalf("error %v, expected %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Records) != c.left || report.Rows != c.left {
				t.Errorf("%d rows are left, expected %d", len(got.Records), c.left)
			}
			if faults := report.Faults() > 0; faults != (len(report.Examples) > 0) {
				t.Errorf("faults %d with the examples %v", report.Faults(), report.Examples)
			}
			report.Symbol, report.First, report.Last, report.Rows, report.Examples, report.FirstOpenOff = "", "", "", 0, nil, ""
			if !reflect.DeepEqual(report, c.want) {
				t.Errorf("report %+v, expected %+v", report, c.want)
			}
			for i := range before {
				if !SameRow(&before[i], &c.rows[i]) {
					t.Error("the given rows were changed")
				}
			}
			if name == "conflict, last" && got.Records[0].Close != 2 || name == "inconsistent" && (got.Records[0].High != 10 || got.Records[0].Low != 8) {
				t.Errorf("rows %+v", got.Records)
			}
		})
	}
}

func TestAdjust(t *testing.T) {
	// A 2:1 split before the third row, a dividend before the last one; the vendor's volume is not
	// adjusted.
	rows := []Record{flat(0, 100), flat(1, 102), flat(2, 51), flat(3, 50)}
	for i, f := range []float64{0.49, 0.49, 0.98, 1} {
		rows[i].Factor = f
		rows[i].Volume = []float64{100, 100, 200, 200}[i]
	}
	for volume, want := range sorted.All(map[string][]float64{"keep": {100, 100, 200, 200}, "splits": {100, 100, 100, 100}, "inverse": {100 / .49, 100 / .49, 200 / .98, 200}}) {
		s, _, err := Clean(Series{Records: rows}, DefaultRules(), volume)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range s.Records {
			if math.Abs(r.Close-rows[i].Close*rows[i].Factor) > 1e-12 || math.Abs(r.Volume-want[i]) > 1e-9 {
				t.Errorf("%s: row %d has close %v and volume %v", volume, i, r.Close, r.Volume)
			}
		}
	}
	rows[2].Factor = math.NaN()
	s, report, err := Clean(Series{Records: rows}, DefaultRules(), "keep")
	if err != nil || report.MissingFactor != 1 || s.Records[2].Close != 51*0.49 {
		t.Errorf("a row without a factor: %v, %+v", err, report)
	}
}

func TestJumps(t *testing.T) {
	crash := rec(3, 51, 60, 45, 58, 1)
	rows := []Record{flat(0, 100), flat(1, 100), rec(2, 50.4, 50.9, 50, 50.5, 1), flat(4, 101), crash}
	rows[4].Time = day(5)
	list := findJumps(rows, 0.4)
	var likes []string
	for _, j := range list {
		likes = append(likes, j.Like)
	}
	if want := []string{"2:1", "1:2", ""}; !slices.Equal(likes, want) {
		t.Errorf("jumps %+v, expected %v", list, want)
	}
	for ratio, want := range sorted.All(map[float64]string{0.5: "2:1", 2: "1:2", 1.0 / 7: "7:1", 0.667: "3:2", 1: "", 0.93: "", 0.56: "", 0.1: "10:1"}) {
		if got, exact := likeSplit(ratio); got != want || want != "" && math.Abs(exact/ratio-1) > 0.03 {
			t.Errorf("ratio %v looks like %q", ratio, got)
		}
	}
}

func series(symbol string, days ...int) Series {
	s := Series{Symbol: symbol}
	for _, d := range days {
		r := flat(d, float64(10+d))
		r.Extra = []float64{float64(d)}
		s.Records = append(s.Records, r)
	}
	return s
}

func TestAlign(t *testing.T) {
	late := series("LATE", 2, 3, 8)
	late.Records[1].Suspended = true
	reports := make([]SymbolReport, 2)
	p, err := Align([]Series{series("ALL", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), late}, []string{"x"}, Calendar{GoneAfter: 2}, reports)
	if err != nil {
		t.Fatal(err)
	}
	want := []Status{Unlisted, Unlisted, Traded, Suspended, Missing, Missing, Gone, Gone, Traded, Missing}
	for at, w := range want {
		i := p.Index(at, 1)
		if p.Status[i] != w {
			t.Errorf("day %d is %v, expected %v", at, p.Status[i], w)
		}
		b, x := p.Bars[i], p.ExtraAt(at, 1)[0]
		switch {
		case w == Unlisted && (b != Bar{} || !math.IsNaN(x)):
			t.Errorf("day %d has the bar %+v and extra %v before the listing", at, b, x)
		case at >= 4 && at < 8 && (b.Close != 13 || b.Open != 13 || b.High != 13 || b.Low != 13 || b.Volume != 0 || x != 3 || !b.Time.Equal(day(at))):
			t.Errorf("day %d is not carried forward: %+v, %v", at, b, x)
		}
	}
	if r := reports[1]; r.Filled != 4 || r.LongestGap != 4 || r.Absent != 1 {
		t.Errorf("report %+v", r)
	}
	if _, err := Align([]Series{series("A", 0)}, nil, Calendar{GoneAfter: 1, From: NewDate(day(5))}, nil); err == nil || !strings.Contains(err.Error(), "no rows from 2020-01-06 on") {
		t.Errorf("error %v", err)
	}
	p, err = Align([]Series{series("A", 0, 1, 2, 3), series("B", 0, 3)}, []string{"x"}, Calendar{GoneAfter: 9, From: NewDate(day(1)), To: NewDate(day(2))}, nil)
	if err != nil || len(p.Times) != 2 || p.Status[p.Index(0, 1)] != Unlisted {
		t.Errorf("limited panel %+v: %v", p, err)
	}
}

// The panel of the rows up to t is the beginning of the panel of all rows.
func TestAlignDoesNotLookAhead(t *testing.T) {
	all := []Series{series("A", 0, 1, 2, 3, 6, 7, 12, 13), series("B", 3, 4, 9), series("C", 12), series("D", 0, 1)}
	full, err := Align(all, []string{"x"}, Calendar{GoneAfter: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for cut := range full.Times {
		part := make([]Series, len(all))
		for i, s := range all {
			part[i] = s.Until(full.Times[cut])
		}
		p, err := Align(part, []string{"x"}, Calendar{GoneAfter: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Times) != cut+1 {
			t.Fatalf("%d times up to %d", len(p.Times), cut)
		}
		for i := range p.Bars {
			compared++
			a, b := p.ExtraValues[i], full.ExtraValues[i]
			if p.Bars[i] != full.Bars[i] || p.Status[i] != full.Status[i] || a != b && !(math.IsNaN(a) && math.IsNaN(b)) {
				t.Fatalf("cut %d changes %s at %v", cut, p.Symbols[i%4], p.Times[i/4])
			}
		}
	}
	if compared != 4*10*11/2 {
		t.Errorf("%d bars compared", compared)
	}
}
