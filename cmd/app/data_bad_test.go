package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// badBars writes bars of AA and BB over 300 days; edit, unless nil, changes the cells of a row, of
// which the first is the header.
func badBars(t *testing.T, edit func(row int, cells []string) []string) string {
	t.Helper()
	rows := []string{"date,symbol,open,high,low,close,volume"}
	for _, symbol := range []string{"AA", "BB"} {
		for day := range 300 {
			p := 50 + float64(day%7)
			rows = append(rows, fmt.Sprintf("2020-%02d-%02d,%s,%g,%g,%g,%g,%d", 1+day/28, 1+day%28, symbol, p, p+1, p-1, p+0.5, 1000+day))
		}
	}
	for i, row := range rows {
		if edit != nil {
			rows[i] = strings.Join(edit(i, strings.Split(row, ",")), ",")
		}
	}
	return apptest.Write(t, "bars.csv", strings.Join(rows, "\n")+"\n")
}

// TestBadData gives data that cannot be used to both commands that read them. Each is one line of
// error that says what is wrong and where, and leaves nothing behind.
func TestBadData(t *testing.T) {
	t.Parallel()
	parquet, err := os.ReadFile("../../configs/experiments/market/us5_daily.parquet")
	if err != nil {
		t.Fatal(err)
	}
	middle := append([]byte(nil), parquet...)
	copy(middle[len(middle)/4:], strings.Repeat("damage", 20))
	drop := func(column int) func(int, []string) []string {
		return func(_ int, cells []string) []string { return append(cells[:column:column], cells[column+1:]...) }
	}
	cell := func(row, column int, text string) func(int, []string) []string {
		return func(i int, cells []string) []string {
			if i == row {
				cells[column] = text
			}
			return cells
		}
	}
	good, ranges := badBars(t, nil), "env.data.split."
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		path string
		sets []string
		says []string
	}{
		"no file":             {filepath.Join(t.TempDir(), "none.csv"), nil, []string{"none.csv", "no such file"}},
		"no close":            {badBars(t, drop(5)), nil, []string{"no close", "the file has the columns date, symbol, open, high, low, volume", "source.columns"}},
		"no time":             {badBars(t, drop(0)), nil, []string{"no time", "the file has the columns symbol"}},
		"column of that name": {good, []string{"env.data.source.columns.close=last"}, []string{`column "last"`, "the file has"}},
		"no adjusted close":   {good, []string{"env.data.source.adjust=adj_close"}, []string{"no adj_close"}},
		"text for a price":    {badBars(t, cell(5, 3, "high")), nil, []string{"line 6", `column "high"`, `"high" is not a number`}},
		"no date":             {badBars(t, cell(1, 0, "31/31/2020")), nil, []string{"line 2", "31/31/2020"}},
		"no rows":             {apptest.Write(t, "empty.csv", "date,symbol,open,high,low,close,volume\n"), nil, []string{"there are no rows"}},
		"empty file":          {apptest.Write(t, "empty.csv", ""), nil, []string{"the file is empty"}},
		"cut Parquet":         {apptest.Write(t, "cut.parquet", string(parquet[:len(parquet)/2])), nil, []string{"cut.parquet", "the file is damaged"}},
		"damaged Parquet":     {apptest.Write(t, "bad.parquet", string(middle)), nil, []string{"bad.parquet", "the file is damaged"}},
		"text as Parquet":     {apptest.Write(t, "text.parquet", "hello"), nil, []string{"the file is damaged"}},
		"text as Arrow":       {apptest.Write(t, "text.arrow", "hello"), nil, []string{"the file is damaged"}},
		"not shipped":         {"shipped:market/none.parquet", nil, []string{"shipped:market/none.parquet", "there are shipped:market/us5_daily.parquet"}},
		"symbol without rows": {good, []string{"env.data.assets=[AA, CC]"}, []string{`symbol "CC" has no rows; there are AA, BB`}},
		"symbol without price": {badBars(t, func(i int, c []string) []string {
			if c[1] == "BB" {
				c[2], c[3], c[4], c[5] = "", "", "", ""
			}
			return c
		}), nil, []string{"symbol BB: none of its 300 rows has valid prices"}},
		"clocks that differ": {badBars(t, func(i int, c []string) []string {
			if i > 0 {
				c[0] += map[string]string{"AA": " 00:00", "BB": " 16:00"}[c[1]]
			}
			return c
		}), nil, []string{"daily bars have different clock times on 300 days", "the bar of AA is at 00:00:00 and that of BB at 16:00:00", "quality.clock: note"}},
		"volumes of zero": {badBars(t, func(i int, c []string) []string {
			if c[1] == "BB" {
				c[6] = "0"
			}
			return c
		}), nil, []string{"every volume is 0 for BB", "quality.zero_volume"}},
		"dates that were moved": {badBars(t, func(i int, c []string) []string {
			if i > 0 {
				c[0] += "T00:00:00Z"
			}
			return c
		}), []string{"env.data.source.timezone=America/New_York"}, []string{"600 of them fall on another date: leave source.timezone out"}},
		"blank feature": {badBars(t, func(i int, c []string) []string { return append(c, map[bool]string{true: "mood"}[i == 0]) }),
			[]string{"env.data.source.extra=[mood]", "env.data.features.extra=[mood]"}, []string{"mood (blank or undefined in every row)"}},
		"feature that is not read":       {good, []string{"env.data.features.extra=[mood]"}, []string{`extra column "mood" is not read`, "source.extra"}},
		"indicator longer than the data": {good, []string{"env.data.features.indicators={sma: [400]}"}, []string{"sma_400 (needs 400 bars)", "more than 300 bars"}},
		"indicator longer than training": {good, []string{"env.data.features.indicators={sma: [200]}"}, []string{"train is empty", "the first 199 of 300 bars are dropped", "sma_200 needs 200"}},
		"unknown indicator":              {good, []string{"env.data.features.indicators={smaa: [4]}"}, []string{`unknown indicator "smaa"`}},
		"no features":                    {good, []string{"env.data.features={ohlcv: false, indicators: {}}"}, []string{"there are no features"}},
		"long window":                    {good, []string{"env.window=290"}, []string{"the window of 290 bars is longer than the data"}},
		"no window":                      {good, []string{"env.window=0"}, []string{"env.window: must be at least 1"}},
		"two windows":                    {good, []string{"env.data.window=9"}, []string{"env.data.window", "the environment's window is 8"}},
		"overlapping":                    {good, []string{ranges + "valid=[2020-06-01, 2020-08-31]"}, []string{ranges + "valid: overlaps or comes before train"}},
		"nothing in the range":           {good, []string{ranges + "test=[2030-01-01, 2031-12-31]"}, []string{"test is empty", "there are data from 2020-01-"}},
		"reversed":                       {good, []string{ranges + "train=[2020-06-30, 2020-01-01]"}, []string{ranges + "train: ends before it begins"}},
		"one date":                       {good, []string{ranges + "train=[2020-06-30]"}, []string{ranges + "train: expected two dates"}},
		"no training range":              {good, []string{ranges + "train=[]"}, []string{ranges + "train: must be two dates"}},
		"no such month":                  {good, []string{ranges + "train=[2020-13-01, 2020-06-28]"}, []string{`"2020-13-01" is not a date`}},
		"time zone":                      {good, []string{"env.data.source.timezone=Mars"}, []string{`"Mars" is not a time zone`}},
		"two sources":                    {good, []string{"env.data.synthetic={kind: noise}"}, []string{"env.data.synthetic: there is a source.path, too"}},
		"no source":                      {"", nil, []string{"env.data.source.path: required"}},
		"made-up market":                 {"", []string{"env.data.synthetic={kind: nois}"}, []string{`unknown kind "nois"`, `did you mean "noise"`}},
	}) {
		t.Run(name, func(t *testing.T) {
			config := apptest.Write(t, "run.yaml", `seed: 1
env:
  kind: trading
  window: 8
  data:
    features: {indicators: {sma: [10]}}
    split: {train: [2020-01-01, 2020-06-28], valid: [2020-07-01, 2020-08-28], test: [2020-09-01, 2020-10-20]}
agent: {kind: a2c, encoder: {kind: timecnn, d_model: 4, n_layers: 1}}
train: {num_envs: 1, total_env_steps: 100}
`)
			sets := c.sets
			if c.path != "" {
				sets = append(sets, fmt.Sprintf("env.data.source.path=%q", c.path))
			}
			for _, command := range [][]string{{"data", "prepare"}, {"train", "--engine", "portable", "-q"}} {
				out := filepath.Join(t.TempDir(), "out")
				args := append(command, config, "--out", out)
				for _, s := range sets {
					args = append(args, "--set", s)
				}
				apptest.Refuse(t, args, c.says...)
				if _, err := os.Stat(out); err == nil {
					t.Errorf("%v left %s behind", command, out)
				}
				ran++
			}
		})
	}
	if ran != 76 {
		t.Errorf("%d commands ran", ran)
	}
}

// TestDataOfShippedExperiments are found by name, whether they lie in files or are made up.
func TestDataOfShippedExperiments(t *testing.T) {
	t.Parallel()
	for name, symbols := range sorted.All(map[string]int{"demo": 5, "synthetic_leading": 1, "synthetic_noise.yaml": 4}) {
		var q struct {
			Symbols []struct{ Rows int } `json:"symbols"`
		}
		if err := json.Unmarshal([]byte(apptest.Succeed(t, "data", "inspect", name, "--json")), &q); err != nil {
			t.Fatal(err)
		}
		if len(q.Symbols) != symbols || q.Symbols[0].Rows < 2000 {
			t.Errorf("%s: %+v", name, q)
		}
	}
	dir := t.TempDir()
	m := apptest.Decode[prepared.Manifest](t, apptest.Succeed(t, "data", "prepare", "demo", "--out", dir, "--json"))
	if m.N != 5 || m.W != 20 || m.DataSHA256 == "" {
		t.Errorf("%+v", m)
	}
	if out := apptest.Succeed(t, "data", "inspect", dir); !strings.Contains(out, "never tradable in train: [FB]") {
		t.Errorf("%s", out)
	}
	apptest.Refuse(t, []string{"data", "inspect", "nothing"}, "stat nothing")
}
