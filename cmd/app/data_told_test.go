package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// splitBars writes raw prices of two stocks on weekdays, A with three bonus shares on ten in the
// 300th row, and the factor that undoes it.
func splitBars(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close,volume,adj_factor\n")
	at, rows := time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC), 0
	for ; rows < 420; at = at.AddDate(0, 0, 1) {
		if w := at.Weekday(); w == time.Saturday || w == time.Sunday {
			continue
		}
		for i, s := range []string{"A", "B"} {
			noise := (rows*7 + 3*i) % 11
			if rows == 299 || rows == 300 {
				noise = 5
			}
			p, f := 20*float64(i+1)+float64(noise)/10, 1.0
			if s == "A" && rows >= 300 {
				p, f = p/1.3, 1.3
			}
			fmt.Fprintf(&b, "%s,%s,%.4f,%.4f,%.4f,%.4f,%d,%g\n", at.Format(time.DateOnly), s, p, p*(1.01+float64(rows%5)/500), p*(0.99-float64(rows%7)/900), p*(1+float64(rows%3-1)/200), 1000+rows%13, f)
		}
		rows++
	}
	return apptest.Write(t, "raw.csv", b.String())
}

// quickMarket is apptest.TinyMarket, evaluated against nothing but buying and holding.
var quickMarket = strings.Replace(apptest.TinyMarket, "eval:\n", "eval:\n  lag: []\n  cost_sweep_bp: []\n  baselines: {moving_average: [], random: [42], cash: false}\n", 1)

// TestAdjustmentIsTold checks that every command that works on bars says what was adjusted, or that
// nothing was, and lists what looks like bonus shares.
func TestAdjustmentIsTold(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	file := splitBars(t)
	market := strings.Replace(quickMarket, "synthetic: {kind: noise, seed: 3, bars: 420, assets: 3}", fmt.Sprintf("source: {path: %q}", file), 1)
	const adjusted, raw = "prices: adjusted by adj_factor (2 of 2 symbols), which never changes for 1 of them", "prices: as given, NOT adjusted for splits and dividends (columns that are not used: adj_factor)"
	const jump = "jumps like those of splits or bonus shares that are NOT adjusted for: 1, in 1 of 2 symbols: A on 2001-02-26, open 0.765 of the close before (13:10)"
	said := 0
	for name, c := range sorted.All(map[string]struct {
		sets  []string
		want  string
		jumps int
	}{"auto": {nil, adjusted, 0}, "none": {[]string{"--set", "env.data.source.adjust=none"}, raw, 1}}) {
		t.Run(name, func(t *testing.T) {
			config, dir := apptest.Write(t, "tiny.yaml", market), filepath.Join(t.TempDir(), "run")
			says := func(what, text, want string, expected bool) {
				t.Helper()
				if strings.Contains(text, want) != expected {
					t.Errorf("%s says %q: %t, expected %t\n%s", what, want, !expected, expected, text)
				}
				said++
			}
			with := func(args ...string) []string { return append(args, c.sets...) }
			text := apptest.Succeed(t, with("data", "prepare", config, "--out", filepath.Join(t.TempDir(), "set"))...)
			says("prepare", text, "note: "+c.want, true)
			says("prepare", text, "note: "+jump, c.jumps == 1)
			says("prepare", text, "A: jump on 2001-02-26: the open is 0.765 times the close before, which looks like a split or bonus shares, 13:10", c.jumps == 1)
			m := apptest.Decode[prepared.Manifest](t, apptest.Succeed(t, with("data", "prepare", config, "--json", "--out", filepath.Join(t.TempDir(), "set"))...))
			says("the manifest", m.Adjustment.String(), c.want, true)
			says("inspect", apptest.Succeed(t, with("data", "inspect", config)...), c.want, true)
			r := apptest.Run(t, with("train", config, "--out", dir, "-q")...)
			if r.Code != 0 {
				t.Fatal(r.Err)
			}
			says("train", r.Err, "data: "+c.want+"\n", true)
			says("train", r.Err, "data: "+jump+"\n", c.jumps == 1)
			folder := filepath.Join(t.TempDir(), "report")
			text = apptest.Succeed(t, "evaluate", dir, "--out", folder)
			says("evaluate", text, "Data: "+c.want+".\n", true)
			says("evaluate", text, jump, c.jumps == 1)
			for _, f := range []string{"report.html", metricsJSON} {
				page, err := os.ReadFile(filepath.Join(folder, f))
				if err != nil {
					t.Fatal(err)
				}
				says(f, string(page), c.want, true)
			}
		})
	}
	if said != 2*11 {
		t.Errorf("%d statements checked", said)
	}
}

// TestImpossibleOpensAreTold checks the same for opens off the day's range, at which orders are
// filled.
func TestImpossibleOpensAreTold(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	text, err := os.ReadFile(splitBars(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	cells := strings.Split(lines[2*350+1], ",")
	cells[2] = "99"
	lines[2*350+1] = strings.Join(cells, ",")
	file := apptest.Write(t, "raw.csv", strings.Join(lines, "\n"))
	config := apptest.Write(t, "tiny.yaml", strings.Replace(quickMarket, "synthetic: {kind: noise, seed: 3, bars: 420, assets: 3}", fmt.Sprintf("source: {path: %q}", file), 1))
	want := "IMPOSSIBLE opens, off the day's range: 1, in 1 of 2 symbols, for instance A: " + cells[0] + " (raw.csv, line 702): open "
	dir := filepath.Join(t.TempDir(), "run")
	if text := apptest.Succeed(t, "data", "prepare", config, "--out", filepath.Join(t.TempDir(), "set")); !strings.Contains(text, "note: "+want) {
		t.Errorf("prepare:\n%s", text)
	}
	r := apptest.Run(t, "train", config, "--out", dir)
	if r.Code != 0 || !strings.Contains(r.Err, "data: "+want) {
		t.Errorf("train: %d\n%s", r.Code, r.Err)
	}
	if text := apptest.Succeed(t, "evaluate", dir, "--no-report"); !strings.Contains(text, "Data: "+want) {
		t.Errorf("evaluate:\n%s", text)
	}
	if text := apptest.Succeed(t, "evaluate", dir, "--no-report", "--set", "env.data.quality.inconsistent=missing"); !strings.Contains(text, "these rows are left out") {
		t.Errorf("evaluate without the row:\n%s", text)
	}
	if text := apptest.Succeed(t, "data", "inspect", file); !strings.Contains(text, "the open is off the day's range") {
		t.Errorf("inspect:\n%s", text)
	}
}
