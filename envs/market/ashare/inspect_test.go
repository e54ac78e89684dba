package ashare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// fixture has one of each case. Blank cells are limits and previous closes that are not known.
const fixture = `date,symbol,open,high,low,close,preclose,volume,adj_factor,suspended,isST,limit_up,limit_down
2015-06-01,600000.SH,10.00,10.50,9.50,10.20,10.00,100,1,0,0,11.00,9.00
2015-06-02,600000.SH,10.30,11.22,10.20,11.22,10.20,100,1,0,0,11.22,9.18
2015-06-03,600000.SH,12.34,12.34,12.34,12.34,11.22,100,1,0,0,12.34,10.10
2015-06-04,600000.SH,11.11,11.11,11.11,11.11,12.34,100,1,0,0,13.57,11.11
2015-06-05,600000.SH,11.11,11.11,11.11,11.11,11.11,0,1,1,0,,
2015-06-08,600000.SH,11.11,11.11,11.11,11.11,11.11,0,1,1,0,12.22,10.00
2015-06-09,600000.SH,11.50,12.23,11.40,12.00,11.11,100,1,0,0,12.22,10.00
2015-06-10,600000.SH,12.00,12.10,11.90,12.00,12.00,100,1,0,0,13.21,10.80
2015-06-11,600000.SH,19.00,21.00,18.00,20.00,12.00,100,1,0,0,,
2015-06-12,600000.SH,19.50,20.00,18.00,18.00,20.00,100,1,0,0,22.00,18.00
2015-06-15,600000.SH,,,,,18.00,0,1,1,0,,
2015-06-01,600001.SH,4.00,4.00,3.80,3.80,4.00,100,1,0,1,4.20,3.80
2015-06-02,600001.SH,4.00,4.05,3.99,3.99,3.80,100,1,0,1,3.99,3.61
2015-06-02,600002.SH,12.00,14.40,12.00,14.40,10.00,100,1,0,0,,
2015-06-03,600002.SH,15.84,15.84,15.84,15.84,14.40,100,1,0,0,15.84,12.96
2015-06-01,600003.SH,10.123,10.50,9.50,10.00,,100,1,0,0,,
2015-06-02,600003.SH,8.00,8.80,7.20,8.123,,100,1.25,0,0,8.80,7.20
2015-06-01,830799.BJ,10.00,10.00,10.00,10.00,10.00,100,1,0,0,,
2019-07-22,688001.SH,30.00,60.00,30.00,55.00,24.00,100,1,0,0,,
2019-07-23,688001.SH,30.00,60.00,30.00,55.00,55.00,100,1,0,0,66.00,44.00
2019-07-24,688001.SH,,,,,55.00,,1,0,0,,
2019-07-25,688001.SH,30.00,60.00,30.00,55.00,55.00,100,1,0,0,,
2019-07-26,688001.SH,30.00,60.00,30.00,55.00,55.00,100,1,0,0,,
2019-07-29,688001.SH,66.00,66.00,66.00,66.00,55.00,100,1,0,0,66.00,44.00
2015-06-01,600004.SH,10.00,10.00,10.00,10.00,10.00,100,1,0,0,11.00,9.00
2015-06-01,600004.SH,10.00,10.00,10.00,10.00,10.00,100,1,0,0,11.00,9.00
2015-06-01,000300.SH,10.00,10.00,10.00,10.00,10.00,100,1,0,0,,
`

func inspect(t *testing.T, text string) *Report {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := bars.DefaultSource()
	s.Path = path
	d, err := bars.Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Inspect(d)
}

func TestInspect(t *testing.T) {
	r := inspect(t, fixture)
	want := []SymbolReport{
		{Symbol: "000300.SH", Problem: `symbol "000300.SH" is no A share`},
		{
			Symbol: "600000.SH", Board: "main board SH", Counts: Counts{Days: 11, Suspended: 3, Announced: 1, Outside: 1, ClosedUp: 2, ClosedDown: 2, LockedUp: 1, LockedDown: 1, Disagreements: 1},
			Pauses: []Pause{{"2015-06-05", "2015-06-08", 2}, {"2015-06-15", "2015-06-15", 1}},
			Findings: []Finding{
				{"2015-06-09", "bars.csv", 8, "outside", 1111, 1140, 1223, &Range{1000, 1222}, &Range{1000, 1222}},
				{"2015-06-10", "bars.csv", 9, "disagreement", 1200, 1190, 1210, &Range{1080, 1320}, &Range{1080, 1321}},
				{"2015-06-11", "bars.csv", 10, "announced", 1200, 1800, 2100, &Range{1080, 1320}, nil},
			},
			ClosedUpDays: []string{"2015-06-02", "2015-06-03"}, ClosedDownDays: []string{"2015-06-04", "2015-06-12"}, LockedUpDays: []string{"2015-06-03"}, LockedDownDays: []string{"2015-06-04"},
		},
		{
			Symbol: "600001.SH", Board: "main board SH", Counts: Counts{Days: 2, ST: 2, Outside: 1, ClosedUp: 1, ClosedDown: 1},
			Findings:     []Finding{{"2015-06-02", "bars.csv", 14, "outside", 380, 399, 405, &Range{361, 399}, &Range{361, 399}}},
			ClosedUpDays: []string{"2015-06-02"}, ClosedDownDays: []string{"2015-06-01"},
		},
		{
			Symbol: "600002.SH", Board: "main board SH", Listed: "2015-06-02", Counts: Counts{Days: 2, ClosedUp: 2, LockedUp: 1, Disagreements: 1},
			Findings:     []Finding{{"2015-06-02", "bars.csv", 15, "disagreement", 1000, 1200, 1440, &Range{640, 1440}, nil}},
			ClosedUpDays: []string{"2015-06-02", "2015-06-03"}, LockedUpDays: []string{"2015-06-03"},
		},
		{
			Symbol: "600003.SH", Board: "main board SH", Counts: Counts{Days: 2, NotJudged: 1, OffTick: 1},
			Findings: []Finding{{"2015-06-02", "bars.csv", 18, "off_tick", 800, 720, 880, &Range{720, 880}, &Range{720, 880}}},
		},
		{Symbol: "600004.SH", Board: "main board SH", Problem: "bars.csv line 27: a second row of 2015-06-01"},
		{
			Symbol: "688001.SH", Board: "STAR", Listed: "2019-07-22", Counts: Counts{Days: 6, Suspended: 1, Free: 4, ClosedUp: 1, LockedUp: 1, Disagreements: 1},
			Pauses:       []Pause{{"2019-07-24", "2019-07-24", 1}},
			Findings:     []Finding{{"2019-07-23", "bars.csv", 21, "disagreement", 5500, 3000, 6000, nil, &Range{4400, 6600}}},
			ClosedUpDays: []string{"2019-07-29"}, LockedUpDays: []string{"2019-07-29"},
		},
		{Symbol: "830799.BJ", Board: "BSE", Counts: Counts{Days: 1, NotJudged: 1}},
	}
	total := Counts{Days: 24, Suspended: 4, ST: 2, NotJudged: 2, Free: 4, Announced: 1, Outside: 2, ClosedUp: 6, ClosedDown: 3, LockedUp: 3, LockedDown: 1, Disagreements: 3, OffTick: 1}
	if len(r.Symbols) != len(want) || r.Total != total {
		t.Fatalf("%d symbols, %+v, expected %d, %+v", len(r.Symbols), r.Total, len(want), total)
	}
	for i, w := range want {
		got := r.Symbols[i]
		if strings.HasPrefix(got.Problem, w.Problem) && w.Problem != "" {
			got.Problem = w.Problem
		}
		if !reflect.DeepEqual(got, w) {
			g, _ := json.Marshal(got)
			e, _ := json.Marshal(w)
			t.Errorf("%s:\n%s, expected\n%s", w.Symbol, g, e)
		}
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "1 of 20 days have prices that are no multiples of 0.01") {
		t.Errorf("notes %q", r.Notes)
	}
}

// TestInspectLess judges the same rows in another order and without the columns that not all
// vendors have.
func TestInspectLess(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(fixture), "\n")
	slices.Reverse(lines[1:])
	if r := inspect(t, strings.Join(lines, "\n")); r.Total != inspect(t, fixture).Total {
		t.Errorf("in another order %+v", r.Total)
	}
	r := inspect(t, `date,symbol,open,high,low,close,adj_factor
2015-06-01,sh600000,10.00,10.50,9.50,10.00,1
2015-06-02,sh600000,8.00,8.80,7.20,8.80,1.25
2015-06-03,sh600000,8.00,9.69,7.92,9.00,1.25
`)
	want := Counts{Days: 3, NotJudged: 1, Outside: 1, ClosedUp: 1}
	if r.Total != want || len(r.Notes) != 2 || r.Symbols[0].Findings[0].String() != "2015-06-03, bars.csv line 4: outside: traded from 7.92 to 9.69 after 8.80, limits of 7.92 and 9.68 by the rules" {
		t.Errorf("%+v, %q, %v, expected %+v", r.Total, r.Notes, r.Symbols[0].Findings, want)
	}
}
