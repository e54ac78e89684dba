package indicator

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

type columns struct {
	Open, High, Low, Close, Volume []float64
}

func (c columns) series() []bars.Bar {
	s := make([]bars.Bar, len(c.Close))
	day := time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC)
	for i := range s {
		s[i] = bars.Bar{Time: day.AddDate(0, 0, i), Open: c.Open[i], High: c.High[i], Low: c.Low[i], Close: c.Close[i], Volume: c.Volume[i]}
	}
	return s
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustRun(t *testing.T, kind string, p []float64, series []bars.Bar) [][]float64 {
	t.Helper()
	k := Find(kind)
	if k == nil {
		t.Fatalf("no indicator %q", kind)
	}
	full, err := k.Complete(p)
	if err != nil {
		t.Fatal(err)
	}
	return Run(k.New(full), len(k.Outputs), series)
}

// The reference holds what TA-Lib itself computes on two series, one of which has flat prices and
// bars without volume.
func TestEqualsTALib(t *testing.T) {
	var ref struct {
		Series []struct {
			Name  string
			Bars  columns
			Cases []struct {
				Kind   string
				Params []float64
				First  int
				At     []int
				Values [][]float64
			}
		}
	}
	readJSON(t, "testdata/talib_reference.json", &ref)
	compared, covered := 0, map[string]bool{}
	for _, s := range ref.Series {
		series := s.Bars.series()
		for _, c := range s.Cases {
			k := Find(c.Kind)
			got := mustRun(t, c.Kind, c.Params, series)
			covered[c.Kind] = true
			if w := k.Warmup(c.Params); w != c.First {
				t.Errorf("%s %s: first defined at %d, TA-Lib's at %d", s.Name, k.Label(c.Params), w, c.First)
			}
			for o, want := range c.Values {
				for i, at := range c.At {
					compared++
					if d := math.Abs(got[o][at] - want[i]); !(d <= 1e-9*max(1, math.Abs(want[i]))) {
						t.Errorf("%s %s output %d at %d: %.12g, TA-Lib has %.12g", s.Name, k.Label(c.Params), o, at, got[o][at], want[i])
						break
					}
				}
			}
		}
	}
	if compared < 2800 {
		t.Errorf("only %d values compared", compared)
	}
	for _, k := range kinds {
		if !covered[k.Name] && k.Name != "ichimoku" && k.Name != "vwap" {
			t.Errorf("%s is not compared with TA-Lib", k.Name)
		}
	}
}

// The published values come from TA-Lib's own regression tests.
func TestPublishedVectors(t *testing.T) {
	var doc struct {
		Bars     columns
		Expected map[string]map[string]any
		Full     map[string]json.RawMessage `json:"full_precision_recomputed_here"`
	}
	readJSON(t, "testdata/talib_252.json", &doc)
	series := doc.Bars.series()
	compared := 0
	check := func(what string, got, want, tol float64) {
		t.Helper()
		compared++
		if !(math.Abs(got-want) <= tol) {
			t.Errorf("%s: %v, expected %v ± %v", what, got, want, tol)
		}
	}
	for name, c := range sorted.All(map[string]struct {
		kind string
		p    []float64
	}{
		"RSI_14": {"rsi", []float64{14}}, "EMA_2": {"ema", []float64{2}}, "EMA_10": {"ema", []float64{10}},
		"NATR_14": {"natr", []float64{14}}, "WILLR_14": {"willr", []float64{14}}, "CCI_11": {"cci", []float64{11}},
	}) {
		got := mustRun(t, c.kind, c.p, series)[0]
		tol := doc.Expected[name]["tol"].(float64)
		for key, v := range sorted.All(doc.Expected[name]) {
			if at, err := strconv.Atoi(key); err == nil {
				check(name+"@"+key, got[at], v.(float64), tol)
			}
		}
	}
	macd := mustRun(t, "macd", nil, series)
	e := doc.Expected["MACD_12_26_9@33"]
	for o, key := range []string{"macd", "signal", "hist"} {
		check("macd "+key, macd[o][33], e[key].(float64), e["tol"].(float64))
	}
	bands := mustRun(t, "bbands", nil, series)
	e = doc.Expected["BBANDS_20_2_2_SMA@19"]
	for o, key := range []string{"upper", "middle", "lower"} {
		check("bbands "+key, bands[o][19], e[key].(float64), e["tol"].(float64))
	}
	for name, kind := range sorted.All(map[string]string{"RSI_14": "rsi", "ATR_14": "atr", "EMA_10": "ema"}) {
		var want map[string]float64
		if err := json.Unmarshal(doc.Full[name], &want); err != nil {
			t.Fatal(err)
		}
		p := []float64{14}
		if kind == "ema" {
			p[0] = 10
		}
		got := mustRun(t, kind, p, series)[0]
		for key, v := range sorted.All(want) {
			at, err := strconv.Atoi(key)
			if err != nil {
				t.Fatal(err)
			}
			check(name+"@"+key, got[at], v, 1e-9)
		}
	}
	if compared != 35 {
		t.Errorf("%d values compared", compared)
	}
}
