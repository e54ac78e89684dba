package bars

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestWideTables reads yfinance's downloads of one symbol and of several, and in other orders of their
// lines of header, and compares every cell.
func TestWideTables(t *testing.T) {
	for name, symbols := range sorted.All(map[string]int{"yfinance_one.csv": 1, "yfinance_many.csv": 3}) {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfterN(string(text), "\n", 4)
		for form, text := range sorted.All(map[string]string{
			"as it is":         string(text),
			"grouped":          strings.Join([]string{lines[1], lines[0], lines[2], lines[3]}, ""),
			"without names":    strings.Replace(strings.Replace(string(text), "Price,", ",", 1), "Ticker,", ",", 1),
			"of a data reader": strings.Replace(strings.Replace(string(text), "Price,", "Attributes,", 1), "Ticker,", "Symbols,", 1),
		}) {
			if form == "without names" && symbols == 1 {
				continue // Nothing tells it from a table of rows.
			}
			for _, preset := range []string{"auto", "yahoo"} {
				d := mustRead(t, source(write(t, name, text), func(s *Source) { s.Preset = preset }))
				if len(d.Series) != symbols || !d.HasVolume {
					t.Fatalf("%s %s: %d symbols", name, form, len(d.Series))
				}
				compared := 0
				for _, s := range d.Series {
					for i, r := range s.Records {
						row := cells[3+i]
						for c := 1; c < len(row); c++ {
							if cells[1][c] != s.Symbol {
								continue
							}
							want, err := strconv.ParseFloat(row[c], 64)
							if got := map[string]float64{"Open": r.Open, "High": r.High, "Low": r.Low, "Close": r.Close, "Volume": r.Volume}[cells[0][c]]; err != nil || got != want || r.Time.Format(time.DateOnly) != row[0] || r.Line != i+4 {
								t.Fatalf("%s %s: %s of %s in line %d is %v, expected %v", name, form, cells[0][c], s.Symbol, i+4, got, want)
							}
							compared++
						}
					}
				}
				if compared != 40*5*symbols {
					t.Errorf("%s %s: %d cells compared", name, form, compared)
				}
			}
		}
	}
	// One that is listed later has no rows before; prices that are adjusted have their column.
	const late = "Price,Adj Close,Adj Close,Close,Close,High,High,Low,Low,Open,Open,Volume,Volume\nTicker,A,B,A,B,A,B,A,B,A,B,A,B\nDatetime,,,,,,,,,,,,\n" +
		"2024-01-02 09:30:00-05:00,5,,10,,11,,9,,10,,100,\n2024-01-02 09:31:00-05:00,5,6,10,6,11,7,9,5,10,6,100,50\n"
	d := mustRead(t, source(write(t, "late.csv", late)))
	if len(d.Series) != 2 || len(d.Series[0].Records) != 2 || len(d.Series[1].Records) != 1 || d.Series[0].Records[0].Factor != 0.5 || d.Series[1].Records[0].Factor != 1 || d.Adjustment.By != "adj_close" {
		t.Errorf("%+v", d)
	}
	for text, want := range sorted.All(map[string]string{
		"Price,Close,Close\nTicker,A,A\nDate,,\n": "the column Close of A is there twice",
		"Price,Close,Open\nTicker,A,A\n":          "the file ends in it",
		"Price,Close,Open\n1,2,3\n2,3,4\n":        "expected a line of fields such as Open and Close, one of symbols, and one with the name of the time alone",
	}) {
		if _, err := Read(source(write(t, "x.csv", text)), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, expected %q", text, err, want)
		}
	}
}

// TestRepeatedHour: the hour that is repeated when summer ends is two hours, which the offsets from UTC
// tell apart.
func TestRepeatedHour(t *testing.T) {
	d := mustRead(t, source("testdata/dst.csv"))
	if d.Zone != "America/New_York" {
		t.Errorf("zone %q", d.Zone)
	}
	named := mustRead(t, source("testdata/dst.csv", func(s *Source) { s.Timezone = d.Zone }))
	for i, r := range named.Series[0].Records {
		if got := d.Series[0].Records[i].Time; !got.Equal(r.Time) || formatTime(got) != formatTime(r.Time) {
			t.Errorf("%v, expected %v", got, r.Time)
		}
	}
	s, report, err := Clean(d.Series[0], DefaultRules(), "keep")
	if err != nil || len(s.Records) != 16 || report.Duplicates+report.Conflicts+report.Unsorted != 0 {
		t.Fatalf("%+v, error %v", report, err)
	}
	for i := 1; i < len(s.Records); i++ {
		if got := s.Records[i].Time.Sub(s.Records[i-1].Time); got != time.Hour {
			t.Errorf("%v is %v after the row before", s.Records[i].Time, got)
		}
	}
	// Ticks of that hour come in order by the instant.
	ticks := source(write(t, "ticks.csv", "datetime,symbol,price,volume\n2023-11-05T01:59:00-04:00,A,1,1\n2023-11-05T01:01:00-05:00,A,1,1\n"), func(s *Source) { s.Bars = "5m" })
	if _, err := Read(ticks, nil); err == nil || !strings.Contains(err.Error(), "by a clock that is at -05:00 instead of -04:00 from UTC: set source.timezone to the zone of the exchange") {
		t.Errorf("ticks: error %v", err)
	}
	ticks.Timezone = "America/New_York"
	if d := mustRead(t, ticks); len(d.Series[0].Records) != 2 {
		t.Errorf("%+v", d.Series[0].Records)
	}
}

// TestOffsets: offsets from UTC say which times are the same, and in which zone they are shown, unless
// the times are dates.
func TestOffsets(t *testing.T) {
	const head = "date,symbol,open,high,low,close\n"
	for name, c := range sorted.All(map[string]struct {
		rows, zone string
		times      []string // of all rows, symbol by symbol
	}{
		"dates":          {"2023-11-03T00:00:00-04:00,A,1,1,1,1\n2023-11-06T00:00:00-05:00,A,1,1,1,1\n2023-11-06T00:00:00+08:00,B,1,1,1,1\n", "", []string{"2023-11-03T00:00:00Z", "2023-11-06T00:00:00Z", "2023-11-06T00:00:00Z"}},
		"UTC":            {"2024-01-02T09:30:00Z,A,1,1,1,1\n", "", []string{"2024-01-02T09:30:00Z"}},
		"one offset":     {"2024-01-02T09:30:00+08:00,A,1,1,1,1\n", "Etc/GMT-8", []string{"2024-01-02T09:30:00+08:00"}},
		"half an hour":   {"2024-01-02T09:15:00+05:30,A,1,1,1,1\n", "Asia/Kolkata", []string{"2024-01-02T09:15:00+05:30"}},
		"an exchange":    {"2023-03-10T16:00:00-05:00,A,1,1,1,1\n2023-03-13T16:00:00-04:00,A,1,1,1,1\n", "America/New_York", []string{"2023-03-10T16:00:00-05:00", "2023-03-13T16:00:00-04:00"}},
		"one instant":    {"2024-01-02T09:30:00+08:00,A,1,1,1,1\n2024-01-02T01:30:00+00:00,B,1,1,1,1\n", "UTC", []string{"2024-01-02T01:30:00Z", "2024-01-02T01:30:00Z"}},
		"no zone has it": {"2024-01-02T09:30:00+05:17,A,1,1,1,1\n", "UTC", []string{"2024-01-02T04:13:00Z"}},
	}) {
		d := mustRead(t, source(write(t, "x.csv", head+c.rows)))
		var times []string
		for _, s := range d.Series {
			for _, r := range s.Records {
				times = append(times, r.Time.Format(time.RFC3339))
			}
		}
		if d.Zone != c.zone || !slices.Equal(times, c.times) {
			t.Errorf("%s: zone %q, times %q", name, d.Zone, times)
		}
	}
	// A file without offsets is in the zone that those of another one tell.
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"A.csv": "2024-07-02 09:30:00-04:00,1,1,1,1\n2024-12-02 09:30:00-05:00,1,1,1,1\n", "B.csv": "2024-07-02 09:30:00,1,1,1,1\n2024-12-02 09:30:00,1,1,1,1\n"}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("date,open,high,low,close\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := mustRead(t, source(dir))
	for i := range 2 {
		if a, b := d.Series[0].Records[i].Time, d.Series[1].Records[i].Time; !a.Equal(b) || d.Zone != "America/New_York" {
			t.Errorf("%v and %v in %s", a, b, d.Zone)
		}
	}
}

// TestTickOffsets: bars of ticks are in the zone of the ticks' offsets.
func TestTickOffsets(t *testing.T) {
	for offset, zone := range sorted.All(map[string]string{"+08:00": "Etc/GMT-8", "+00:00": "", "+05:17": "refused"}) {
		d, err := Read(source(write(t, "ticks.csv", "datetime,symbol,price,volume\n2024-01-02T09:31:00"+offset+",A,1,1\n2024-01-02T09:39:00"+offset+",A,1,1\n"), func(s *Source) { s.Bars = "5m" }), nil)
		if zone == "refused" {
			if err == nil || !strings.Contains(err.Error(), "the offsets from UTC of the ticks are those of no exchange: set source.timezone") {
				t.Errorf("%s: error %v", offset, err)
			}
			continue
		}
		if err != nil || d.Zone != zone || d.Series[0].Records[0].Time.Format(time.RFC3339) != strings.Replace("2024-01-02T09:35:00"+offset, "+00:00", "Z", 1) {
			t.Errorf("%s: %+v, error %v", offset, d, err)
		}
	}
}
