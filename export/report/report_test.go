package report_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// duel is a document with an agent and a benchmark whose daily returns are normal with the given
// means and deviations; part of the noise is common.
func duel(seed uint64, returns int, agentMean, benchMean float64) report.Document {
	s := rng.New(seed).Split("duel").Stream()
	d := report.Document{Title: "duel", Split: report.Split{Name: "test"}, Dates: weekdays("2019-01-02", returns+1), Benchmark: 1, Bootstrap: report.Bootstrap{Resamples: 400}, Trials: report.Trials{Count: 1}}
	agent, bench := []float64{10000}, []float64{10000}
	for t := range returns {
		common := 0.008 * s.Normal()
		agent = append(agent, agent[t]*(1+agentMean+common+0.003*s.Normal()))
		bench = append(bench, bench[t]*(1+benchMean+common+0.003*s.Normal()))
	}
	d.Strategies = []report.Strategy{{Name: "the agent", Role: report.Agent, Value: agent}, {Name: "equal-weight buy-and-hold", Role: report.Baseline, Value: bench}}
	return d
}

func summarise(t *testing.T, d report.Document) *report.Summary {
	t.Helper()
	s, err := report.Summarise(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerdict(t *testing.T) {
	cases := 0
	for _, c := range []struct {
		name            string
		doc             report.Document
		edit            func(d *report.Document)
		beats, evidence bool
		start           string
		has, lacks      []string
	}{
		{"behind", duel(1, 750, 0, 0.001), nil, false, false, "The agent does not beat equal-weight buy-and-hold on test, from 2019-01-02 to 2021-11-17: total return ",
			[]string{"after one trial, below 95%: no evidence of skill."}, []string{"luck", "is ahead", " beats "}},
		{"behind with a good Sharpe ratio", duel(2, 750, 0.002, 0.004), nil, false, false, "The agent does not beat ", nil, []string{"no evidence", " beats ", "luck"}},
		{"more return, less Sharpe", duel(3, 750, 0.001, 0.0009), func(d *report.Document) { lever(d.Strategies[0].Value, 3) }, false, false, "The agent does not beat ", nil, []string{" beats "}},
		{"ahead after many trials", duel(4, 750, 0.0008, -0.001), func(d *report.Document) { d.Trials.Count = 100000 }, true, false, "The agent is ahead of equal-weight buy-and-hold on test",
			[]string{"This is no evidence of skill: the deflated Sharpe probability is ", " after 100000 trials, below 95%"}, []string{" beats ", "luck alone"}},
		{"ahead within the interval", duel(5, 750, 0.00301, 0.003), nil, true, false, "The agent is ahead of ", []string{"95% bootstrap interval of the difference of Sharpe ratios, −", "includes 0"}, []string{" beats ", "below 95%"}},
		{"evidence", duel(6, 750, 0.002, 0), nil, true, true, "The agent beats equal-weight buy-and-hold on test", []string{"luck alone rarely does this", "deflated Sharpe probability is "}, []string{"no evidence"}},
		{"look-ahead", duel(6, 750, 0.002, 0), func(d *report.Document) {
			d.LookAhead = []string{"orders are filled at the close that the decision has seen."}
		}, false, false, "These results cannot be earned, because this run knows the future: orders are filled at the close that the decision has seen. The agent is ahead of ", []string{"no evidence of skill: the run knows the future"}, []string{" beats "}},
		{"never trades", duel(7, 300, 0, -0.002), func(d *report.Document) {
			for i := range d.Strategies[0].Value {
				d.Strategies[0].Value[i] = 10000
			}
		}, false, false, "The agent does not beat ", []string{"total return 0.0% against −", "Sharpe ratio – against −", "has no Sharpe ratio"}, []string{"below"}},
		{"equal", duel(8, 300, 0.01, 0), func(d *report.Document) { d.Strategies[1].Value = slices.Clone(d.Strategies[0].Value) }, false, false, "The agent does not beat ", nil, []string{" beats "}},
		{"no split", duel(1, 300, 0, 0.001), func(d *report.Document) { d.Split.Name = "" }, false, false, "The agent does not beat equal-weight buy-and-hold from 2019", nil, nil},
	} {
		if c.edit != nil {
			c.edit(&c.doc)
		}
		s := summarise(t, c.doc)
		v := s.Verdict
		if v.Beats != c.beats || v.Evidence != c.evidence || !strings.HasPrefix(v.Line, c.start) || strings.Contains(v.Line, "\n") {
			t.Errorf("%s: %+v, expected beats %v, evidence %v and %q", c.name, v, c.beats, c.evidence, c.start)
		}
		for _, h := range c.has {
			if !strings.Contains(v.Line, h) {
				t.Errorf("%s: %q lacks %q", c.name, v.Line, h)
			}
		}
		for _, l := range c.lacks {
			if strings.Contains(v.Line, l) {
				t.Errorf("%s: %q has %q", c.name, v.Line, l)
			}
		}
		cases++
	}
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
}

// lever makes every return larger by a factor.
func lever(value []float64, by float64) {
	last := value[0]
	for t := 1; t < len(value); t++ {
		r := value[t]/last - 1
		last = value[t]
		value[t] = value[t-1] * (1 + by*r - 0.0008)
	}
}

// On noise a report never finds much: of 100 agents that follow a market with noise of their own,
// at most 5 are said to show skill, and those behind say so.
func TestNoise(t *testing.T) {
	claims, ahead := 0, 0
	for seed := range uint64(100) {
		d := duel(1000+seed, 250, 0, 0)
		d.Bootstrap.Resamples = 200
		s := summarise(t, d)
		if s.Verdict.Evidence {
			claims++
		}
		if s.Verdict.Beats {
			ahead++
		}
		if s.Verdict.Beats == strings.Contains(s.Verdict.Line, "does not beat") {
			t.Errorf("seed %d: %+v", seed, s.Verdict)
		}
	}
	if claims > 5 {
		t.Errorf("%d of 100 agents without skill are said to show it", claims)
	}
	if ahead < 25 || ahead > 75 {
		t.Errorf("%d of 100 agents without skill are ahead, expected about half", ahead)
	}
}

func TestWarnings(t *testing.T) {
	d := duel(6, 200, 0.002, 0)
	d.Trials.Count = 3
	s := summarise(t, d)
	for _, want := range []string{"variance of the trials", "less than a year", "No delay", "one training run"} {
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, want) }) {
			t.Errorf("no warning with %q in %q", want, s.Warnings)
		}
	}
	if len(s.Warnings) != 4 {
		t.Errorf("%d warnings: %q", len(s.Warnings), s.Warnings)
	}
	d = duel(6, 300, 0.002, 0)
	d.Strategies = append(d.Strategies, report.Strategy{Name: "seed 2", Role: report.Seed, Value: duel(9, 300, 0.001, 0).Strategies[0].Value})
	d.Lag = []report.Variant{{Strategy: "the agent", X: 1, Value: d.Strategies[0].Value}}
	if s = summarise(t, d); len(s.Warnings) != 0 || s.Seeds == nil || s.Seeds.Count != 2 {
		t.Errorf("warnings %q and seeds %+v", s.Warnings, s.Seeds)
	}
	for _, r := range s.Seeds.Rows {
		if r.Key == "total_return" {
			a, b := s.Strategies[0].Metrics.Get("total_return"), s.Strategies[2].Metrics.Get("total_return")
			if math.Abs(float64(r.Mean)-(a+b)/2) > 1e-12 || math.Abs(float64(r.Std)-math.Abs(a-b)/math.Sqrt2) > 1e-12 || math.Abs(float64(r.Min)-min(a, b)) > 1e-12 {
				t.Errorf("%+v of %g and %g", r, a, b)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	cases := 0
	for want, spoil := range sorted.All(map[string]func(d *report.Document){
		"0 dates":                            func(d *report.Document) { d.Dates = nil },
		"is not after the one before":        func(d *report.Document) { d.Dates[3] = d.Dates[2] },
		"no strategies":                      func(d *report.Document) { d.Strategies = nil },
		`has the role "baseline"`:            func(d *report.Document) { d.Strategies[0].Role = report.Baseline },
		"the benchmark is strategy 0":        func(d *report.Document) { d.Benchmark = 0 },
		"the benchmark is strategy 9":        func(d *report.Document) { d.Benchmark = 9 },
		"periods per year is -1":             func(d *report.Document) { d.PeriodsPerYear = -1 },
		"risk-free rate is -2":               func(d *report.Document) { d.RiskFree = -2 },
		"-1 trials":                          func(d *report.Document) { d.Trials.Count = -1 },
		"level 1":                            func(d *report.Document) { d.Bootstrap.Level = 1 },
		`strategy 1 is called "the agent"`:   func(d *report.Document) { d.Strategies[1].Name = "the agent" },
		`has the role "hero"`:                func(d *report.Document) { d.Strategies[1].Role = "hero" },
		"value has 3 numbers, expected 11":   func(d *report.Document) { d.Strategies[1].Value = d.Strategies[1].Value[:3] },
		"value[4] is NaN":                    func(d *report.Document) { d.Strategies[0].Value[4] = math.NaN() },
		"value[0] is 0":                      func(d *report.Document) { d.Strategies[0].Value[0] = 0 },
		"cash has 1 numbers":                 func(d *report.Document) { d.Strategies[0].Cash = []float64{1} },
		"weights has 3 numbers, expected 22": func(d *report.Document) { d.Strategies[0].Weights = make([]float64, 3) },
		"fees[0] is -1":                      func(d *report.Document) { d.Strategies[0].Fees = make([]float64, 10); d.Strategies[0].Fees[0] = -1 },
		"3 actions, expected 20":             func(d *report.Document) { d.Strategies[0].Actions = make([]int8, 3) },
		"has the code 3, and 2 codes":        func(d *report.Document) { d.Strategies[0].Actions = make([]int8, 20); d.Strategies[0].Actions[5] = 3 },
		"trade 0 is of asset 2": func(d *report.Document) {
			d.Strategies[0].Trades = []report.Trade{{Asset: 2, Side: report.Buy, Shares: 1}}
		},
		`trade 0 has the side "short"`:          func(d *report.Document) { d.Strategies[0].Trades = []report.Trade{{Side: "short", Shares: 1}} },
		"trade 0 is 0 shares":                   func(d *report.Document) { d.Strategies[0].Trades = []report.Trade{{Side: report.Buy}} },
		`cost variant 0 names the strategy "x"`: func(d *report.Document) { d.Cost = []report.Variant{{Strategy: "x", Value: d.Strategies[0].Value}} },
		"lag variant 0 is at NaN": func(d *report.Document) {
			d.Lag = []report.Variant{{Strategy: "the agent", X: math.NaN(), Value: d.Strategies[0].Value}}
		},
	}) {
		d := duel(1, 10, 0, 0)
		d.Assets, d.Actions = []string{"A", "B"}, []string{"hold", "buy"}
		spoil(&d)
		if _, err := report.Summarise(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected one with %q", err, want)
		}
		cases++
	}
	if cases != 25 {
		t.Errorf("%d cases", cases)
	}
	// All problems at once.
	d := duel(1, 10, 0, 0)
	d.Benchmark, d.RiskFree = 7, -3
	if err := d.Validate(); err == nil || !strings.Contains(err.Error(), "benchmark") || !strings.Contains(err.Error(), "risk-free") {
		t.Errorf("%v", err)
	}
}

func TestPrint(t *testing.T) {
	d := sample(4, 300, 5, 0.0005)
	s := summarise(t, d)
	var b bytes.Buffer
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if first, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), "  "); !strings.HasPrefix(first, s.Verdict.Line[:60]) {
		t.Errorf("the text starts with %q, expected the verdict", first)
	}
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > 125 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"MA10 rule", "Max drawdown", "Deflated Sharpe probability", "Decisions delayed", "Fees of one side", "onnxrl train"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if err := s.Print(broken{}); err == nil {
		t.Error("an error of the writer is lost")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// files reads everything below a folder.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWrite(t *testing.T) {
	longtest.Slow(t)
	d := sample(5, 120, 4, 0.0005)
	d.Title = `Fish & <script>alert("chips")</script>`
	d.Strategies[2].Name = `<b>bold</b> & "quoted"`
	d.Assets[0] = "A<&>B"
	d.NextSteps[0].Command = "onnxrl evaluate <run>"
	one, two := t.TempDir(), t.TempDir()
	f, err := report.Write(context.Background(), one, d)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(1)
	_, err = report.Write(context.Background(), two, d)
	runtime.GOMAXPROCS(before)
	if err != nil {
		t.Fatal(err)
	}
	a, b := files(t, one), files(t, two)
	if len(a) != len(b) || len(a) != 2+len(f.Tables)+len(f.Plots) || len(f.Tables) != 6 || len(f.Plots) != 57 {
		t.Fatalf("%d and %d files, with %d tables and %d plots", len(a), len(b), len(f.Tables), len(f.Plots))
	}
	for name, data := range sorted.All(a) {
		if !bytes.Equal(data, b[name]) {
			t.Errorf("%s differs between two writes", name)
		}
	}
	for _, path := range append(append([]string{f.Page, f.Summary}, f.Tables...), f.Plots...) {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	svgs, pngs := 0, 0
	for name, data := range sorted.All(a) {
		switch filepath.Ext(name) {
		case ".svg":
			wellFormed(t, name, data)
			svgs++
		case ".png":
			if m, err := png.Decode(bytes.NewReader(data)); err != nil || m.Bounds().Dx() != 1720 {
				t.Errorf("%s: %v", name, err)
			}
			pngs++
		}
	}
	if svgs != 19 || pngs != 38 {
		t.Errorf("%d SVG and %d PNG files", svgs, pngs)
	}
	checkPage(t, string(a[report.PageName]), summarise(t, d))
	checkTables(t, a, d)
	var again report.Summary
	if err := json.Unmarshal(a[report.SummaryName], &again); err != nil {
		t.Fatal(err)
	}
	if text, err := json.MarshalIndent(&again, "", "  "); err != nil || string(text)+"\n" != string(a[report.SummaryName]) {
		t.Errorf("%s changes when it is read and written: %v", report.SummaryName, err)
	}

	// A report without some of the parts removes those of the one before.
	d.Strategies[0].Weights, d.Strategies[0].Actions, d.Lag, d.Cost = nil, nil, nil, nil
	mine := filepath.Join(one, "plots", "mine.png")
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = report.Write(context.Background(), one, d); err != nil {
		t.Fatal(err)
	}
	if c := files(t, one); len(c) != 2+len(f.Tables)+len(f.Plots)+1 || len(f.Tables) != 4 || len(f.Plots) != 39 {
		t.Errorf("%d files, with %d tables and %d plots", len(c), len(f.Tables), len(f.Plots))
	}

	stopped, stop := context.WithCancel(context.Background())
	stop()
	if _, err := report.Write(stopped, filepath.Join(one, "new"), d); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped write: %v", err)
	}
	if _, err := os.Stat(filepath.Join(one, "new")); err == nil {
		t.Error("a stopped write left a folder")
	}
}

func wellFormed(t *testing.T, name string, data []byte) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := dec.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// checkPage looks for what a page must not have, which is anything from elsewhere, and for its
// parts.
func checkPage(t *testing.T, page string, s *report.Summary) {
	t.Helper()
	for _, bad := range []string{"<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "xlink:href", "<b>bold"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if id, ok := strings.CutPrefix(m[1], "#"); !ok || !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("the page refers to %q", m[1])
		}
	}
	if n := strings.Count(strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""), "http"); n != 0 {
		t.Errorf("the page has %d addresses", n)
	}
	if n := strings.Count(page, "<svg"); n != 19 {
		t.Errorf("%d drawings in the page, expected 19", n)
	}
	body := page[strings.Index(page, "<main class=\"cards\">"):]
	if first, _, _ := strings.Cut(strings.TrimPrefix(body, "<main class=\"cards\">\n"), "</p>"); !strings.Contains(first, s.Verdict.Line) {
		t.Errorf("the page starts with %q, expected the verdict", first)
	}
	if strings.Contains(page, "#F0E0") || strings.Contains(page, "<no value>") || strings.Contains(page, "NaN") {
		t.Error("the page has a mark that should have been replaced")
	}
	for _, d := range s.Conventions {
		if !strings.Contains(page, "<td>"+strings.ReplaceAll(d.Name, "&", "&amp;")+"</td>") {
			t.Errorf("the page lacks the metric %q", d.Name)
		}
	}
	wellFormed(t, "the body", []byte(regexp.MustCompile(`(?s)^.*<body>|</body>.*$`).ReplaceAllString(page, "")))
}

// checkTables compares CSV with Parquet, cell by cell, and both with the document.
func checkTables(t *testing.T, all map[string][]byte, d report.Document) {
	t.Helper()
	cells := 0
	for _, name := range []string{"equity", "trades", "positions"} {
		rows, err := csv.NewReader(bytes.NewReader(all[name+".csv"])).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		f, err := parquetfile.Open(bytes.NewReader(all[name+".parquet"]))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if !slices.Equal(f.Names(), rows[0]) || f.Groups() != 1 || f.Rows(0) != len(rows)-1 {
			t.Fatalf("%s: columns %q and %q, %d and %d rows", name, f.Names(), rows[0], f.Rows(0), len(rows)-1)
		}
		for c := range rows[0] {
			column, err := f.Column(0, c)
			if err != nil {
				t.Fatal(err)
			}
			for i := range column.Len() {
				var got string
				switch x := column.(type) {
				case *array.Timestamp:
					got = x.Value(i).ToTime(2).UTC().Format("2006-01-02")
				case *array.String:
					got = x.Value(i)
				case *array.Float64:
					if got = fmt.Sprint(x.Value(i)); x.IsNull(i) {
						got = ""
					}
				}
				want := rows[i+1][c]
				if got != want {
					var g, w float64
					if _, err := fmt.Sscan(got+" "+want, &g, &w); err != nil || g != w {
						t.Errorf("%s: row %d of %s is %q in Parquet and %q in CSV", name, i, rows[0][c], got, want)
					}
				}
				cells++
			}
			column.Release()
		}
	}
	want := len(d.Dates)*len(d.Strategies)*8 + len(d.Strategies[0].Trades)*8 + len(d.Dates)*(2+len(d.Assets))
	if cells != want {
		t.Errorf("%d cells compared, expected %d", cells, want)
	}
}

// A trade's gain is over the average cost with the fees of both sides.
func TestTrades(t *testing.T) {
	d := duel(1, 10, 0, 0)
	d.Assets = []string{"A", "B"}
	d.Strategies[0].Trades = []report.Trade{
		{Date: d.Dates[1], Asset: 0, Side: report.Buy, Shares: 10, Price: 10, Fee: 1},
		{Date: d.Dates[2], Asset: 0, Side: report.Buy, Shares: 10, Price: 20, Fee: 1},
		{Date: d.Dates[3], Asset: 0, Side: report.Sell, Shares: 10, Price: 20, Fee: 1},
		{Date: d.Dates[3], Asset: 1, Side: report.Sell, Shares: 4, Price: 5, Fee: 0.5},
		{Date: d.Dates[4], Asset: 0, Side: report.Sell, Shares: 10, Price: 10, Fee: 1},
	}
	s := summarise(t, d)
	got := s.Strategies[0].Trades
	if got.Count != 5 || got.Buys != 2 || got.Sells != 3 || got.Bought != 300 || got.Sold != 320 || got.Fees != 4.5 || math.Abs(got.Realised-(48-52)) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if len(got.ByAsset) != 2 || got.ByAsset[0].WinRate != 0.5 || got.ByAsset[1].Realised != 0 {
		t.Errorf("%+v", got.ByAsset)
	}
	if s.Strategies[1].Trades != nil {
		t.Error("unknown trades are counted")
	}
}

func BenchmarkWrite(b *testing.B) {
	d := sample(16, 750, 10, 0.0005)
	dir := b.TempDir()
	for b.Loop() {
		if _, err := report.Write(context.Background(), dir, d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSummarise(b *testing.B) {
	d := sample(16, 750, 10, 0.0005)
	for b.Loop() {
		if _, err := report.Summarise(d); err != nil {
			b.Fatal(err)
		}
	}
}
