package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// marketYAML is an experiment whose data section reads the market of apptest.
func marketYAML(t *testing.T, edits ...string) string {
	t.Helper()
	text := fmt.Sprintf(`
seed: 1
agent: {kind: a2c}
data:
  source: {path: %q}
  window: 8
  features: {indicators: {sma: [5], rsi: [14], macd: [6, 12, 4]}}
  split: {train: [2020-01-01, 2020-06-30], valid: [2020-07-01, 2020-08-31], test: [2020-09-01, 2020-12-31]}
`, apptest.MarketCSV(t))
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("nothing to replace: %q", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return apptest.Write(t, "experiment.yaml", text)
}

func TestDataPrepareAndInspect(t *testing.T) {
	t.Parallel()
	config, out := marketYAML(t), filepath.Join(t.TempDir(), "set")
	text := apptest.Succeed(t, "data", "prepare", config, "--out", out)
	for _, want := range []string{"T = 286", "2020-01-15 to 2020-10-26", "N = 2", "A B", "F = 11", "W = 8", "the first 14 bars dropped", "train", "167 bars", "2020-01-15 to 2020-06-29, 2 of 2 assets tradable",
		"note: prices: as given, NOT adjusted for splits and dividends (there is no column adj_close or adj_factor)", "faulty rows: 1, in 1 of 2 symbols, for instance B: 2020-04-10 (bars.csv, line 143): prices -1", "written to " + out} {
		if !strings.Contains(text, want) {
			t.Errorf("prepare does not say %q:\n%s", want, text)
		}
	}
	set, err := prepared.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	if m := set.Manifest; m.T != 286 || m.N != 2 || m.F != 11 || set.Status[60*2+1-14*2] != bars.Traded || set.Tradable(60-14, 1) || !set.Tradable(60, 1) {
		t.Errorf("the stored set is %+v", m)
	}
	if text := apptest.Succeed(t, "data", "inspect", out); !strings.Contains(text, "macd_6_12_4_hist") || !strings.Contains(text, "T = 286") {
		t.Errorf("inspect of the folder:\n%s", text)
	}
	text = apptest.Succeed(t, "data", "inspect", config)
	if !strings.Contains(text, "2 symbols, 300 times from 2020-01-01 to 2020-10-26, 1 file\nprices: as given, NOT adjusted for splits and dividends") || !strings.Contains(text, "B: 2020-04-10 (bars.csv, line 143): prices -1") {
		t.Errorf("inspect of the configuration:\n%s", text)
	}
	q := apptest.Decode[bars.Quality](t, apptest.Succeed(t, "data", "inspect", apptest.MarketCSV(t), "--json"))
	if len(q.Symbols) != 2 || q.Symbols[1].BadPrices != 1 || q.Symbols[1].Filled != 1 || q.Symbols[0].Faults() != 0 {
		t.Errorf("quality %+v", q)
	}
	m := apptest.Decode[prepared.Manifest](t, apptest.Succeed(t, "data", "prepare", config, "--out", out, "--set", "data.window=5", "--json"))
	if m.W != 5 || m.DataSHA256 == set.Manifest.DataSHA256 {
		t.Errorf("the window is %d", m.W)
	}
	// A file that holds nothing but the section is a configuration too.
	alone := apptest.Write(t, "alone.yaml", fmt.Sprintf("source: {path: %q}\nsplit: {train: [2020-01-01, 2020-12-31]}\nfeatures: {indicators: {sma: 3}}\n", apptest.MarketCSV(t)))
	if text := apptest.Succeed(t, "data", "prepare", alone, "--out", filepath.Join(t.TempDir(), "x")); !strings.Contains(text, "F = 7") {
		t.Errorf("prepare of a bare section:\n%s", text)
	}
}

// TestDataInspectSource inspects sources without a split: a section of a document that has nothing
// else, a document that is one, and a made-up market.
func TestDataInspectSource(t *testing.T) {
	t.Parallel()
	file := apptest.MarketCSV(t)
	for name, c := range sorted.All(map[string]struct {
		text string
		want int
	}{
		"a source":             {fmt.Sprintf("source: {path: %q}\n", file), 2},
		"a data section":       {fmt.Sprintf("data: {source: {path: %q}}\n", file), 2},
		"an environment":       {fmt.Sprintf("env: {kind: trading, window: 8, data: {source: {path: %q}, assets: [B]}}\n", file), 1},
		"rules":                {fmt.Sprintf("source: {path: %q}\nquality: {jump: 0.2}\ncalendar: {from: 2020-03-01}\n", file), 2},
		"a made-up market":     {"synthetic: {kind: noise, seed: 3, bars: 420, assets: 3}\n", 3},
		"a split that is none": {fmt.Sprintf("source: {path: %q}\nsplit: {train: []}\n", file), 2},
	}) {
		if q := apptest.Decode[bars.Quality](t, apptest.Succeed(t, "data", "inspect", apptest.Write(t, "source.yaml", c.text), "--json")); len(q.Symbols) != c.want {
			t.Errorf("%s: %d symbols", name, len(q.Symbols))
		}
	}
	if q := apptest.Decode[bars.Quality](t, apptest.Succeed(t, "data", "inspect", file, "--set", "assets=[B]", "--json")); len(q.Symbols) != 1 || q.Symbols[0].Symbol != "B" {
		t.Errorf("a file and its assets: %+v", q.Symbols)
	}
	if r := apptest.Run(t, "data", "inspect", apptest.Write(t, "source.yaml", fmt.Sprintf("source: {path: %q}\nwindows: 3\n", file))); r.Code != 1 || !strings.Contains(r.Err, `unknown key "windows"; did you mean "window"?`) {
		t.Errorf("status %d\n%s", r.Code, r.Err)
	}
	apptest.Refuse(t, []string{"data", "inspect", apptest.Write(t, "source.yaml", "quality: {jump: 0.3}\n")}, "source.path")
}

func TestDataLookahead(t *testing.T) {
	t.Parallel()
	config := marketYAML(t)
	if text := apptest.Succeed(t, "data", "lookahead", config); !strings.Contains(text, "no value depends on later rows") || !strings.Contains(text, "11 features") {
		t.Errorf("lookahead:\n%s", text)
	}
	r := apptest.Run(t, "data", "lookahead", config, "--set", "data.normalization.fit_on=all")
	if r.Code != 1 || !strings.Contains(r.Out, "sma_5 looks ahead by its normalisation") || strings.Contains(r.Out, "listed looks ahead") || r.Err != "" {
		t.Errorf("status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	r = apptest.Run(t, "data", "lookahead", config, "--set", "data.normalization.fit_on=all", "--json", "--cuts", "3")
	if report := apptest.Decode[prepared.LookaheadReport](t, r.Out); r.Code != 1 || len(report.Leaks) != 10 {
		t.Errorf("status %d, leaks %+v", r.Code, report.Leaks)
	}
}

func TestDataWarmup(t *testing.T) {
	t.Parallel()
	config := marketYAML(t)
	if text := apptest.Succeed(t, "data", "warmup", config, "--starts", "100,150,200"); !strings.Contains(text, "rsi_14") || !strings.Contains(text, "150 bars") {
		t.Errorf("warmup:\n%s", text)
	}
	r := apptest.Run(t, "data", "warmup", config, "--starts", "100,200", "--set", "data.features.indicators.obv=true")
	if r.Code != 1 || !strings.Contains(r.Out, "these features depend on where the data begin: obv_0\n") || r.Err != "" {
		t.Errorf("status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	r = apptest.Run(t, "data", "warmup", config, "--starts", "100,200", "--set", "data.features.indicators.obv=true", "--json")
	if report := apptest.Decode[prepared.WarmupReport](t, r.Out); r.Code != 1 || !slices.Equal(report.Unsettled(), []string{"obv_0"}) {
		t.Errorf("status %d, report %+v", r.Code, report)
	}
}

func TestDataBadInput(t *testing.T) {
	t.Parallel()
	apptest.Refuse(t, []string{"data", "prepare", filepath.Join(t.TempDir(), "none.yaml")}, "none.yaml")
	apptest.Refuse(t, []string{"data", "prepare", marketYAML(t), "--out", t.TempDir(), "--set", "data.assets=[A, C]"}, `symbol "C" has no rows; there are A, B`)
	apptest.Refuse(t, []string{"data", "prepare", marketYAML(t), "--out", t.TempDir(), "--set", "data.window=290"}, "the window of 290 bars is longer than the data")
	apptest.Refuse(t, []string{"data", "prepare", marketYAML(t), "--out", t.TempDir(), "--set", "data.source.columns.close=last"}, `no close (column "last"); the file has the columns date, symbol, open`)
	apptest.Refuse(t, []string{"data", "prepare", marketYAML(t), "--out", t.TempDir(), "--set", "data.features.indicators.sma=[400]"}, "sma_400 (needs 400 bars)")
	apptest.Refuse(t, []string{"data", "prepare", marketYAML(t), "--out", t.TempDir(), "--set", "data.split.test=[2031-01-01, 2032-01-01]"}, "test is empty: no data from 2031-01-01 to 2032-01-01; there are data from 2020-01-15")
	apptest.Refuse(t, []string{"data", "inspect", filepath.Join(t.TempDir(), "none.csv")}, "none.csv: no such file")
	apptest.Refuse(t, []string{"data", "inspect", apptest.Write(t, "a.parquet", "PAR1 and nothing more")}, "a.parquet: the file is damaged")
	apptest.Refuse(t, []string{"data", "warmup", marketYAML(t), "--starts", "900"}, "no stock has more than 900 bars")
	// These are shown with the line of the document.
	for edit, want := range sorted.All(map[string]string{
		"rsi: [14]|rsj: [14]":                      `unknown indicator "rsj"`,
		"window: 8|windw: 8":                       `unknown key "windw"; did you mean "window"?`,
		"valid: [2020-07-01|valid: [2020-06-01":    "overlaps or comes before train",
		"valid: [2020-07-01, 2020-08-31]|valid: 7": "data.split.valid: expected a list",
	}) {
		old, edited, _ := strings.Cut(edit, "|")
		r := apptest.Run(t, "data", "prepare", marketYAML(t, old, edited), "--out", t.TempDir())
		if r.Code != 1 || !strings.Contains(r.Err, want) || !strings.Contains(r.Err, "experiment.yaml:") {
			t.Errorf("%s: status %d\n%s", edit, r.Code, r.Err)
		}
	}
	// A set that was damaged after it was written is not used.
	out := filepath.Join(t.TempDir(), "set")
	apptest.Succeed(t, "data", "prepare", marketYAML(t), "--out", out)
	m, err := prepared.ReadManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(out, m.Files.Features.Name), 100); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"data", "inspect", out}, m.Files.Features.Name+" was changed or is damaged")
}
