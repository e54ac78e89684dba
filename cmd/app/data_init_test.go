package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// initBars writes bars of two symbols over 300 weekdays, with a header and a row's form of a
// vendor: date, symbol and number of the day.
func initBars(t *testing.T, name, header, layout string, symbols []string, row func(date, symbol string, day int) string) string {
	t.Helper()
	text := header
	for _, symbol := range symbols {
		day := time.Date(2018, 1, 1, 0, 0, 0, 0, time.UTC)
		for n := 0; n < 300; day = day.AddDate(0, 0, 1) {
			if day.Weekday() != time.Saturday && day.Weekday() != time.Sunday {
				text += row(day.Format(layout), symbol, n)
				n++
			}
		}
	}
	return apptest.Write(t, name, text)
}

// TestDataInit prepares data in the form of each vendor, and what it writes can be used.
func TestDataInit(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	iso, compact := time.DateOnly, "20060102"
	plain := func(date, symbol string, n int) string {
		return fmt.Sprintf("%s,%s,10,11,9,10.5,%d\n", date, symbol, 100+n)
	}
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		file, preset, bars string
		missing            int
	}{
		"usual names": {initBars(t, "a.csv", "date,symbol,open,high,low,close,volume\n", iso, []string{"A", "B"}, plain), "", "", 2},
		"no volume": {initBars(t, "a.csv", "date,symbol,open,high,low,close\n", iso, []string{"A", "B"}, func(date, symbol string, _ int) string {
			return fmt.Sprintf("%s,%s,10,11,9,10.5\n", date, symbol)
		}), "", "", 3},
		"akshare": {initBars(t, "a.csv", "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额\n", iso, []string{"600000", "600004"}, func(date, symbol string, n int) string {
			return fmt.Sprintf("%s,%s,10,10.5,11,9,%d,1000\n", date, symbol, 100+n)
		}), "akshare", "", 1},
		"tushare": {initBars(t, "a.csv", "ts_code,trade_date,open,high,low,close,pre_close,vol,amount\n", compact, []string{"A", "B"}, func(date, symbol string, n int) string {
			return fmt.Sprintf("%s,%s,10,11,9,10.5,10,%d,1000\n", symbol, date, 100+n)
		}), "tushare", "", 1},
		"baostock": {initBars(t, "a.csv", "date,code,open,high,low,close,preclose,volume,amount,tradestatus,isST\n", iso, []string{"A", "B"}, func(date, symbol string, n int) string {
			return fmt.Sprintf("%s,%s,10,11,9,10.5,10,%d,1000,1,0\n", date, symbol, 100+n)
		}), "baostock", "", 1},
		"ticks": {initBars(t, "a.csv", "time,symbol,price,size\n", "2006-01-02 15:04:05", []string{"A", "B"}, func(date, symbol string, n int) string {
			return fmt.Sprintf("%s,%s,10,%d\n", strings.Replace(date, "00:00:00", "10:00:00", 1), symbol, 100+n)
		}), "", "5m", 1},
	}) {
		r := apptest.Decode[initReport](t, apptest.Succeed(t, "data", "init", c.file, "--json"))
		if r.Data.Source.Preset != c.preset || r.Data.Source.Bars != c.bars || r.Symbols != 2 || r.Times != 300 || len(r.Missing) != c.missing ||
			!slices.Equal(r.Data.Split.Train, []string{"2018-01-01", "2018-10-19"}) || r.Data.Split.Test[1] != "2019-02-22" {
			t.Errorf("%s: %+v", name, r)
		}
		out := filepath.Join(t.TempDir(), "experiment.yaml")
		apptest.Succeed(t, "data", "init", c.file, "--out", out)
		text := apptest.Succeed(t, "data", "prepare", out, "--out", filepath.Join(t.TempDir(), "set"))
		if !strings.Contains(text, "N = 2") {
			t.Errorf("%s: %s", name, text)
		}
		got, _, err := experiment.Load(out, nil)
		if err != nil {
			t.Fatal(err)
		}
		shipped, _, err := experiment.Load("synthetic_market", nil)
		if err != nil {
			t.Fatal(err)
		}
		for section, pair := range sorted.All(map[string][2]any{"agent": {got.Agent, shipped.Agent}, "train": {got.Train, shipped.Train}, "wrappers": {got.Wrappers, shipped.Wrappers}}) {
			if changes, err := configs.Diff(pair[0], pair[1]); err != nil || len(changes) > 0 {
				t.Errorf("%s: %s is not that of synthetic_market: %v %v", name, section, changes, err)
			}
		}
		apptest.Refuse(t, []string{"data", "init", c.file, "--out", out}, "is there already")
		ran++
	}
	if ran != 6 {
		t.Errorf("%d cases", ran)
	}
	for name, symbols := range sorted.All(map[string]int{"yfinance_one.csv": 1, "yfinance_many.csv": 3}) {
		out := filepath.Join(t.TempDir(), "experiment.yaml")
		apptest.Succeed(t, "data", "init", filepath.Join("..", "..", "envs", "market", "bars", "testdata", name), "--out", out)
		apptest.Says(t, apptest.Succeed(t, "data", "prepare", out, "--out", filepath.Join(t.TempDir(), "set"), "--set", "env.window=2", "--set", "env.data.features={indicators: {sma: [2]}}"), fmt.Sprintf("N = %d", symbols))
	}
	apptest.Says(t, apptest.Succeed(t, "data", "init", filepath.Join("..", "..", "envs", "market", "bars", "testdata", "dst.csv")), "timezone: America/New_York", "# 16 times of 1 symbol")
	apptest.Refuse(t, []string{"data", "init", apptest.Write(t, "none.csv", "a,b\n1,2\n")}, "no time", "the file has the columns a, b")
	apptest.Refuse(t, []string{"data", "init", filepath.Join(t.TempDir(), "none.csv")}, "none.csv")
	few := apptest.Write(t, "few.csv", "date,symbol,open,high,low,close\n2024-03-04,A,1,1,1,1\n")
	if text := apptest.Succeed(t, "data", "init", few); !strings.Contains(text, "# there are 1 day: too few to split by time") {
		t.Errorf("%s", text)
	}
	apptest.Refuse(t, []string{"data", "init", few, "--out", filepath.Join(t.TempDir(), "x.yaml")}, "too few to split by time")
}

// TestDataInitExchange finds the exchange whose days real data have, where ONNXRL_MARKET_DATA names
// the folder of the market data.
func TestDataInitExchange(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := os.Getenv(marketDataVar)
	if dir == "" {
		t.Skip(marketDataVar + " is not set")
	}
	for file, exchange := range sorted.All(map[string]string{"us16_daily": "xnys", "cn_daily_small": "xshg", "intraday": "xnys", "intraday_cn_15min": "xshg", "intraday_cn_1min": "xshg"}) {
		r := apptest.Decode[initReport](t, apptest.Succeed(t, "data", "init", filepath.Join(dir, file+".csv.gz"), "--json"))
		if r.Data.Source.Exchange != exchange {
			t.Errorf("%s: %+v", file, r.Data.Source)
		}
	}
	q := apptest.Succeed(t, "data", "inspect", filepath.Join(dir, "us16_daily.csv.gz"), "--set", "source.exchange=xnys", "--set", "quality.calendar=error", "--json")
	if !strings.Contains(q, `"lacking": []`) || !strings.Contains(q, `"holidays": []`) || !strings.Contains(q, `"times": 5536`) {
		t.Errorf("%.500s", q)
	}
}
