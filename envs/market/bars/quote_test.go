package bars

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Columns that a file has beside its bars are found by name, and those that it lacks are not made
// up.
func TestQuoteColumns(t *testing.T) {
	nan := math.NaN()
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		preset, text string
		columns      Columns
		quoted       string
		want         map[QuoteColumn]float64 // of the second row
	}{
		"none": {"auto", "date,symbol,open,high,low,close,volume\n2020-01-01,A,1,2,1,2,5\n2020-01-02,A,2,2,1,2,5\n", Columns{}, "", nil},
		"a factor": {"auto", "date,symbol,open,high,low,close,volume,adj_factor\n2020-01-01,A,1,2,1,2,5,1\n2020-01-02,A,2,3,1,2,7,1.1\n", Columns{}, "raw_open raw_high raw_low raw_close raw_volume factor",
			map[QuoteColumn]float64{RawOpen: 2, RawHigh: 3, RawLow: 1, RawClose: 2, RawVolume: 7, Factor: 1.1}},
		"all": {"auto", "date,symbol,open,high,low,close,preclose,volume,amount,adj_factor,is_st,limit_up,limit_down\n2020-01-01,A,1,2,1,2,2,5,9,1,0,2.2,1.8\n2020-01-02,A,2,2.5,1,2,2.1,7,15,1.1,1,,1.89\n", Columns{},
			"raw_open raw_high raw_low raw_close raw_volume factor prev_close limit_up limit_down amount st",
			map[QuoteColumn]float64{RawHigh: 2.5, PrevClose: 2.1, LimitUp: nan, LimitDown: 1.89, Amount: 15, ST: 1, Factor: 1.1}},
		"limits of prices as given": {"auto", "date,symbol,open,high,low,close,volume,limit_up,limit_down\n2020-01-01,A,1,2,1,2,5,3,1\n2020-01-02,A,2,2,1,2,5,2.2,1.8\n", Columns{}, "limit_up limit_down",
			map[QuoteColumn]float64{LimitUp: 2.2, LimitDown: 1.8}},
		"by name": {"auto", "date,symbol,open,high,low,close,volume,top\n2020-01-01,A,1,2,1,2,5,3\n2020-01-02,A,2,2,1,2,5,2.2\n", Columns{LimitUp: "top"}, "limit_up", map[QuoteColumn]float64{LimitUp: 2.2}},
		"tushare": {"tushare", "trade_date,ts_code,open,high,low,close,pre_close,vol,amount\n20200101,A,1,2,1,2,2,5,9\n20200102,A,2,2,1,2,2.5,5,3\n", Columns{}, "prev_close amount", map[QuoteColumn]float64{PrevClose: 2.5, Amount: 3000}},
		"baostock": {"baostock", "date,code,open,high,low,close,preclose,volume,amount,tradestatus,isST\n2020-01-01,A,1,2,1,2,2,5,9,1,0\n2020-01-02,A,2,2,1,2,2.5,5,3,1,1\n", Columns{}, "prev_close amount st",
			map[QuoteColumn]float64{PrevClose: 2.5, Amount: 3, ST: 1}},
		"a range that is mended": {"auto", "date,symbol,open,high,low,close,volume,adj_factor\n2020-01-01,A,1,2,1,2,5,1\n2020-01-02,A,4,3,1,2,,1\n", Columns{}, "raw_open raw_high raw_low raw_close raw_volume factor",
			map[QuoteColumn]float64{RawOpen: 4, RawHigh: 4, RawVolume: 0}},
	}) {
		cases++
		d, err := Read(source(write(t, "a.csv", c.text), func(s *Source) { s.Preset, s.Columns = c.preset, c.columns }), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		clean, _, err := Clean(d.Series[0], DefaultRules(), "keep")
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := Align([]Series{clean}, nil, DefaultCalendar(), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		var names []string
		for _, q := range p.Quoted {
			names = append(names, q.String())
		}
		if got := strings.Join(names, " "); got != c.quoted || (p.Quotes == nil) != (c.quoted == "") {
			t.Errorf("%s: quotes %q, expected %q", name, got, c.quoted)
			continue
		}
		for q, want := range sorted.All(c.want) {
			if got := p.Quotes[1][q]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) || !slices.Contains(p.Quoted, q) {
				t.Errorf("%s: %v is %v, expected %v", name, q, got, want)
			}
		}
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// Rows beyond their limits are counted, those at them are not.
func TestOffLimits(t *testing.T) {
	file := write(t, "a.csv", "date,symbol,open,high,low,close,volume,adj_factor,limit_up,limit_down\n"+
		"2020-01-01,A,10,11,9,11,5,2,11,9\n2020-01-02,A,10,10,9,9,5,2,11,9\n2020-01-03,A,11.01,11.01,9,10,5,2,11,9\n2020-01-04,A,10,10,8.9,8.9,5,2,11,9\n2020-01-05,A,20,20,5,20,5,2,,\n")
	d, err := Read(source(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := Clean(d.Series[0], DefaultRules(), "keep")
	if err != nil || report.OffLimits != 2 || len(report.Examples) != 1 || !strings.Contains(report.Examples[0], "2020-01-03 (a.csv, line 4): open 11.01 and close 10, limits 9 and 11") {
		t.Errorf("%d rows are beyond their limits, %q: %v", report.OffLimits, report.Examples, err)
	}
}

// A follower refuses a file that lacks what accounts trade by.
func TestFollowRequires(t *testing.T) {
	for text, want := range sorted.All(map[string]string{
		"date,symbol,open,high,low,close,volume\n2020-01-01,A,1,2,1,2,5\n":                "the rows have no limit_up",
		"date,symbol,open,high,low,close,volume,limit_up\n2020-01-01,A,1,2,1,2,5,2.5\n\n": "",
	}) {
		f, err := Follow(DefaultSource(), strings.NewReader(text), DefaultRules(), Date{}, []string{"A"}, "none", func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		f.Require([]QuoteColumn{LimitUp})
		_, records, _, err := f.Next(t.Context())
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, expected %q", err, want)
			}
		} else if err != nil || records[0].Quote[LimitUp] != 2.5 {
			t.Errorf("the limit is %v: %v", records, err)
		}
	}
}
