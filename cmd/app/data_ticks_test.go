package app

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestDataTicks makes bars of ticks and reads the file again.
func TestDataTicks(t *testing.T) {
	t.Parallel()
	ticks := apptest.Write(t, "ticks.csv", "time,symbol,price,volume_lots\n2024-03-04 09:25:00,A,10,1\n2024-03-04 09:31:00,A,11,2\n2024-03-04 09:36:00,A,9,3\n2024-03-04 13:00:00,B,20,4\n")
	for _, name := range []string{"bars.csv", "bars.parquet"} {
		out := filepath.Join(t.TempDir(), name)
		text := apptest.Succeed(t, "data", "convert", ticks, "--bars", "5m", "--set", "source.exchange=xshg", "--out", out)
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
		apptest.Refuse(t, []string{"data", "convert", ticks, "--bars", "5m", "--out", out}, "file exists")
	}
	apptest.Refuse(t, []string{"data", "convert", ticks, "--bars", "5", "--out", filepath.Join(t.TempDir(), "x.csv")}, `bars: "5" is no size of bars`)
	apptest.Refuse(t, []string{"data", "convert", ticks, "--bars", "5m", "--set", "source.exchange=xlon", "--out", filepath.Join(t.TempDir(), "x.csv")}, `there is no calendar "xlon"`)
}

// TestRealTicks compares bars of one minute with a vendor's own, and their totals with the ticks',
// where ONNXRL_MARKET_DATA names the folder of the market data.
func TestRealTicks(t *testing.T) {
	t.Parallel()
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

// TestDepthOfBook trains and evaluates on bars of ticks with quotes, whose fills pay for the book;
// bars that were converted first are the same.
func TestDepthOfBook(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	var text strings.Builder
	text.WriteString("time,symbol,price,size,bid1,ask1,bid_size1,ask_size1\n")
	for i := range 400 {
		price, minute := 100+5*math.Sin(float64(i)/7), i%100
		fmt.Fprintf(&text, "2024-03-%02d %02d:%02d:30,A,%.2f,10,%.2f,%.2f,40,60\n", 4+i/100, 9+minute/60, minute%60, price, price-0.5, price+0.5)
	}
	ticks := apptest.Write(t, "ticks.csv", text.String())
	converted := filepath.Join(t.TempDir(), "bars.csv")
	apptest.Succeed(t, "data", "convert", ticks, "--bars", "1m", "--out", converted)
	const experiment = `
seed: 1
env:
  kind: trading
  window: 4
  fee_rate: 0
  costs: {slippage: {impact: depth, coefficient: 3}}
  data:
    source: {path: %q, %s}
    features: {indicators: {}}
    split: {train: [2024-03-04, 2024-03-05], valid: [2024-03-06, 2024-03-06], test: [2024-03-07, 2024-03-07]}
agent: {kind: a2c, n_steps: 10, encoder: {kind: mlp, hidden: [4]}}
train: {num_envs: 1, total_env_steps: 200}
`
	var results []string
	for _, source := range []string{fmt.Sprintf("%q, bars: 1m", ticks), fmt.Sprintf("%q, columns: {spread: spread, depth: depth}, extra: [mid, spread, depth]", converted)} {
		path, rest, _ := strings.Cut(source, ", ")
		out := filepath.Join(t.TempDir(), "run")
		config := apptest.Write(t, "depth.yaml", fmt.Sprintf(strings.Replace(experiment, "%q", "%s", 1), path, rest))
		apptest.Succeed(t, "train", config, "--engine", portable.Name, "--quiet", "--out", out)
		text := apptest.Succeed(t, "evaluate", out, "--engine", portable.Name, "--no-report")
		for _, want := range []string{"half the spread of the book", "3 spreads times the order's part of its depth"} {
			if !strings.Contains(text, want) {
				t.Errorf("evaluate does not say %q:\n%s", want, text)
			}
		}
		table, _, _ := strings.Cut(text, "\n\n")
		results = append(results, table)
	}
	if results[0] != results[1] || !strings.Contains(results[0], "equal") {
		t.Errorf("of ticks:\n%s\nof their bars:\n%s", results[0], results[1])
	}
}
