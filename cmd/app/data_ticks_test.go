package app

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// TestDataTicks makes bars of ticks and reads the file again.
func TestDataTicks(t *testing.T) {
	ticks := write(t, "ticks.csv", "time,symbol,price,volume_lots\n2024-03-04 09:25:00,A,10,1\n2024-03-04 09:31:00,A,11,2\n2024-03-04 09:36:00,A,9,3\n2024-03-04 13:00:00,B,20,4\n")
	for _, name := range []string{"bars.csv", "bars.parquet"} {
		out := filepath.Join(t.TempDir(), name)
		text := succeed(t, "data", "convert", ticks, "--bars", "5m", "--set", "source.exchange=xshg", "--out", out)
		if !strings.Contains(text, "3 rows of 2 symbols written to") {
			t.Errorf("%s", text)
		}
		s := bars.DefaultSource()
		s.Path, s.Extra = out, []string{}
		d, err := bars.Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := d.Series[0].Records[0]
		if r.Time.Format("15:04") != "09:35" || r.Open != 10 || r.Close != 11 || r.Volume != 300 || r.Quote[bars.Amount] != 3200 {
			t.Errorf("%s: %+v", name, r)
		}
		refuse(t, []string{"data", "convert", ticks, "--bars", "5m", "--out", out}, "file exists")
	}
	refuse(t, []string{"data", "convert", ticks, "--bars", "5", "--out", filepath.Join(t.TempDir(), "x.csv")}, `bars: "5" is no size of bars`)
	refuse(t, []string{"data", "convert", ticks, "--bars", "5m", "--set", "source.exchange=xlon", "--out", filepath.Join(t.TempDir(), "x.csv")}, `there is no calendar "xlon"`)
}

// TestRealTicks compares bars of one minute with a vendor's own, and their totals with the ticks',
// where ONNXRL_MARKET_DATA names the folder of the market data.
func TestRealTicks(t *testing.T) {
	dir := os.Getenv(marketDataVar)
	if dir == "" {
		t.Skip(marketDataVar + " is not set")
	}
	s := bars.DefaultSource()
	s.Path, s.Exchange, s.Bars = filepath.Join(dir, "ticks_cn.csv.gz"), "xshg", "1d"
	days, err := bars.Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	var volume, amount float64
	for _, series := range days.Series {
		for _, r := range series.Records {
			volume, amount = volume+r.Volume, amount+r.Quote[bars.Amount]
		}
	}
	if volume != 389_180_600 {
		t.Errorf("the volume is %v", volume)
	}
	for _, size := range []string{"1m", "5m", "90m", "volume=100000", "dollar=1e6", "ticks=500"} {
		s.Bars = size
		d, err := bars.Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, a, n := 0.0, 0.0, 0
		for _, series := range d.Series {
			for _, r := range series.Records {
				v, a, n = v+r.Volume, a+r.Quote[bars.Amount], n+1
			}
		}
		if v != volume || math.Abs(a/amount-1) > 1e-12 {
			t.Errorf("%s: volume %v and amount %v, expected %v and %v", size, v, a, volume, amount)
		}
		t.Logf("%s: %d bars", size, n)
	}
	// The vendor's minutes are named by their beginning.
	s.Bars = "1m"
	made, err := bars.Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	v := bars.DefaultSource()
	v.Path = filepath.Join(dir, "intraday_cn_1min.csv.gz")
	v.Columns.Open, v.Columns.High, v.Columns.Low, v.Columns.Close, v.Columns.Volume = "price", "price", "price", "price", "volume_lots"
	minutes, err := bars.Read(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ symbol, at string }
	vendor, day := map[key]bars.Record{}, map[string]float64{}
	for _, series := range minutes.Series {
		for _, r := range series.Records {
			at := r.Time.Format("2006-01-02 15:04")
			vendor[key{series.Symbol, at}] = r
			if strings.HasPrefix(at, "2019-02-01") {
				day[series.Symbol] += r.Volume * 100
			}
		}
	}
	compared, volumes, prices := 0, 0, 0
	for _, series := range made.Series {
		for _, r := range series.Records {
			w, ok := vendor[key{series.Symbol, r.Time.Add(-60e9).Format("2006-01-02 15:04")}]
			if !ok {
				continue
			}
			compared++
			if r.Volume == w.Volume*100 {
				volumes++
			}
			if r.Close == w.Close {
				prices++
			}
		}
	}
	t.Logf("%d minutes, equal volumes %d, equal closes %d", compared, volumes, prices)
	// The others differ by ticks at the edge of a minute.
	if compared < 1250 || volumes < compared*9/10 || prices < compared*9/10 {
		t.Error("too few are equal")
	}
	totals := 0
	for _, series := range days.Series {
		want := day[series.Symbol]
		// The vendor has 128 lots more of one of them.
		if totals++; math.Abs(series.Records[0].Volume/want-1) > 5e-4 {
			t.Errorf("%s traded %v on 2019-02-01, and %v after the vendor's minutes", series.Symbol, series.Records[0].Volume, want)
		}
	}
	if totals != 6 {
		t.Errorf("%d totals", totals)
	}
}
