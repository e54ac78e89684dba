package prepared

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// all is a configuration with every indicator there is.
func all(t testing.TB, seed uint64) Config {
	c := config(t, csvText(seed))
	c.Features.Indicators = nil
	for _, k := range indicator.Kinds() {
		if err := c.Features.Indicators.Add(k.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Features.Indicators.Add("obv", 20); err != nil {
		t.Fatal(err)
	}
	c.Features.Extra = []string{"limit"}
	return c
}

func TestNothingLooksAhead(t *testing.T) {
	c := all(t, 10)
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lookahead(context.Background(), c, data, 25)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Leaks) != 0 {
		t.Errorf("leaks %+v", r.Leaks)
	}
	if len(r.Cuts) < 25 || r.Features < 45 || r.Values < 1_000_000 {
		t.Errorf("compared %d cuts, %d features, %d values", len(r.Cuts), r.Features, r.Values)
	}
}

func TestLookaheadNamesNormalisation(t *testing.T) {
	c := config(t, csvText(11))
	c.Normalization.FitOn = "all"
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lookahead(context.Background(), c, data, 5)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range r.Leaks {
		if l.Cause != "normalisation" || l.Full == l.Prefix {
			t.Errorf("leak %+v", l)
		}
		names = append(names, l.Feature)
	}
	if !slices.Contains(names, "sma_20") || !slices.Contains(names, "close") || slices.Contains(names, "listed") || slices.Contains(names, "weekday_sin") || len(names) != 13 {
		t.Errorf("leaks in %v", names)
	}
}

// A leaking feature is named with the first place where it shows. The leak is put into a copy of
// the prepared values, because an indicator of this project is not given bars that it could leak
// from.
func TestLookaheadNamesTheFeature(t *testing.T) {
	c := config(t, csvText(12))
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := align(c, data)
	if err != nil {
		t.Fatal(err)
	}
	full := snapshot(a)
	leak := 6 // sma_20
	if name := a.features.Columns()[leak].Name; name != "sma_20" {
		t.Fatalf("column %d is %s", leak, name)
	}
	// The effect of a centred average: the value of day 100 is that of day 101.
	n := len(a.panel.Symbols)
	full.values[(100*n)*full.width+leak] = full.values[(101*n)*full.width+leak]
	prefix, err := align(c, until(data, a.panel.Times[120]))
	if err != nil {
		t.Fatal(err)
	}
	l := leaks{report: &LookaheadReport{}, full: full, names: columnNames(a.features)}
	l.compare(prefix, "cut")
	if k := l.report.Leaks; len(k) != 1 || k[0].Feature != "sma_20" || k[0].Symbol != "ALL" || k[0].Time != label(a.panel.Times[100]) || k[0].Full == k[0].Prefix || k[0].Values != 1 {
		t.Errorf("leaks %+v", l.report.Leaks)
	}
}

func TestWarmup(t *testing.T) {
	c := all(t, 13)
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	starts := []int{60, 120, 240}
	r, err := Warmup(context.Background(), c, data, starts, 1e-3)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Unsettled(); !slices.Equal(got, []string{"obv_0"}) {
		t.Errorf("unsettled %v", got)
	}
	need := map[string]int{}
	for _, f := range r.Features {
		need[f.Name] = f.Needs
		if f.Name == "ichimoku_9_26_52_senkou_b" && (f.Difference[0] != math.MaxFloat64 || f.Difference[1] != 0 || f.Warmup != 77) {
			t.Errorf("ichimoku %+v: 60 bars are not enough", f)
		}
	}
	if need["close"] != 60 || need["sma_20"] != 60 || need["obv_20"] != 60 || need["ichimoku_9_26_52_senkou_b"] != 120 || need["adx_14"] < 120 || len(need) < 45 || r.Points < 20 {
		t.Errorf("needs %v at %d points", need, r.Points)
	}
	if _, err := Warmup(context.Background(), c, data, []int{9999}, 1e-3); err == nil || !strings.Contains(err.Error(), "no stock has more than 9999 bars") {
		t.Errorf("error %v", err)
	}
	for _, bad := range [][]int{nil, {0}, {20, 10}} {
		if _, err := Warmup(context.Background(), c, data, bad, 1e-3); err == nil {
			t.Errorf("starts %v are accepted", bad)
		}
	}
}

// The set does not depend on the order of the rows or of the assets in the files.
func TestOrderDoesNotMatter(t *testing.T) {
	text := csvText(14)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	lines[len(lines)-1] += "\n"
	a := mustBuild(t, config(t, text))
	for order, told := range sorted.All(map[string]bool{"newest first": false, "no order": true}) {
		if slices.Reverse(lines[1:]); told {
			lines = slices.Concat(lines[:1], lines[60:], lines[1:60])
		}
		b := mustBuild(t, config(t, strings.Join(lines, "")))
		if !slices.Equal(a.X.Float32s(), b.X.Float32s()) || !slices.Equal(a.Close, b.Close) {
			t.Errorf("rows in another order, %s, give another set", order)
		}
		if slices.ContainsFunc(b.Manifest.Notes, func(n string) bool { return strings.Contains(n, "earlier than the row before") }) != told {
			t.Errorf("%s: notes %v", order, b.Manifest.Notes)
		}
	}
	c := config(t, text)
	c.Assets = []string{"HALT", "ALL"}
	c.Normalization = feature.Normalization{Method: "none", FitOn: "train"}
	d := config(t, text)
	d.Normalization = c.Normalization
	x, y := mustBuild(t, c), mustBuild(t, d)
	for at := range x.Times {
		if !slices.Equal(x.Row(at, 0), y.Row(at, 3)) || !slices.Equal(x.Row(at, 1), y.Row(at, 0)) {
			t.Fatalf("rows at %d depend on the other assets", at)
		}
	}
	if x.Status[0] != bars.Traded {
		t.Error("the first row is not traded")
	}
}
