package bars

import (
	"math"
	"strings"
	"testing"
)

// TestShippedData reads the data that come with the program as the demo does, from whatever
// directory, and checks their adjustment: AAPL was split 2:1 twice and MSFT once, prices have no
// gap there, and volumes count the shares of the first day.
func TestShippedData(t *testing.T) {
	s := DefaultSource()
	s.Path, s.Adjust, s.AdjustVolume = "shipped:market/us5_daily.parquet", "adj_close", "splits"
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{"AAPL": 3270, "FB": 196, "GOOG": 2148, "IBM": 3270, "MSFT": 3270}
	splits := map[string]map[string]float64{"AAPL": {"2000-06-21": 2, "2005-02-28": 4}, "MSFT": {"2003-02-18": 2}}
	checked := 0
	for _, series := range d.Series {
		clean, report, err := Clean(series, DefaultRules(), s.AdjustVolume)
		if err != nil {
			t.Fatal(err)
		}
		if report.Faults() > 0 || report.SplitLike() > 0 || len(clean.Records) != rows[series.Symbol] {
			t.Errorf("%s: %d rows, %d faults, %d jumps like splits", series.Symbol, len(clean.Records), report.Faults(), report.SplitLike())
		}
		divisor := 1.0
		for i, r := range clean.Records {
			raw := series.Records[i]
			if f, ok := splits[series.Symbol][formatTime(r.Time)]; ok {
				divisor = f
				if step := r.Open / clean.Records[i-1].Close; math.Abs(step-1) > 0.05 {
					t.Errorf("%s on the day of its split: the open is %v times the close before", series.Symbol, step)
				}
				checked++
			}
			if r.Volume != raw.Volume/divisor || math.Abs(r.Close/(raw.Close*raw.Factor)-1) > 1e-12 {
				t.Fatalf("%s in row %d: close %v and volume %v from %v, %v and %v", series.Symbol, i+1, r.Close, r.Volume, raw.Close, raw.Factor, raw.Volume)
			}
		}
	}
	if len(d.Series) != 5 || checked != 3 {
		t.Errorf("%d symbols, %d splits", len(d.Series), checked)
	}
}

func TestUnknownShippedData(t *testing.T) {
	s := DefaultSource()
	for _, name := range []string{"shipped:market/us6.parquet", "shipped:market", "shipped:", "shipped:../bars/open.go"} {
		s.Path = name
		if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
