package assess

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// assessed judges a follower and a contrarian, as two seeds of one agent.
func assessed(t *testing.T, yaml string, change func(*evaluate.Config)) *Assessment {
	t.Helper()
	m := market(5, 600, 3)
	// The last asset is listed in the middle of the test range.
	for b := range 450 {
		m.Tradable[b*3+2] = 0
	}
	return assessedOn(t, m, yaml, change)
}

// assessedOn judges them on a market.
func assessedOn(t *testing.T, m *trading.Market, yaml string, change func(*evaluate.Config)) *Assessment {
	t.Helper()
	f := factory(t, m, yaml)
	c, opened := evaluate.Defaults(), 0
	c.Bootstrap.Samples = 200
	if change != nil {
		change(&c)
	}
	spec, err := Spec(f, envs.Test)
	if err != nil {
		t.Fatal(err)
	}
	r := Request{Env: f, Split: envs.Test, Config: c, Key: rng.New(1)}
	for i, name := range []string{"agent", "agent seed 2"} {
		p, err := NewPolicy(name, follower{m, i == 1, &opened}, agents.Greedy, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		r.Agents = append(r.Agents, p)
	}
	if days := m.Dates; c.Baselines.Index.Symbol != "" {
		r.Index = &Series{Name: "IDX", Dates: days}
		for i := range days {
			r.Index.Close = append(r.Index.Close, 100+float64(i))
		}
	}
	a, err := Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRowsOfEverything(t *testing.T) {
	a := assessed(t, "", func(c *evaluate.Config) {
		c.Lag, c.CostSweepBP, c.Baselines.Index.Symbol = []int{1, 2}, []float64{0, 5, 50}, "IDX"
	})
	rows, err := a.Rows()
	if err != nil {
		t.Fatal(err)
	}
	hold := "equal-weight buy-and-hold"
	var names []string
	byName := map[string]Row{}
	for _, r := range rows {
		names = append(names, r.Role+": "+r.Name)
		byName[r.Name] = r
	}
	want := []string{
		"agent: agent", "seed: agent seed 2", "mean: mean of 2 seeds", "baseline: " + hold, "baseline: buy-and-hold of the listed", "baseline: MA10", "baseline: MA20", "baseline: MA30",
		"baseline: random 42", "baseline: random 43", "baseline: random 44", "baseline: random 45", "baseline: random 46", "mean: mean of 5 random", "baseline: cash", "baseline: IDX",
		"lag: agent, 1 bar late", "lag: agent, 2 bars late", "cost: agent at 0 bp", "cost: agent at 5 bp", "cost: agent at 50 bp", "cost: " + hold + " at 0 bp", "cost: " + hold + " at 5 bp", "cost: " + hold + " at 50 bp",
	}
	if !slices.Equal(names, want) {
		t.Fatalf("rows are %q", names)
	}
	get := func(name, key string) float64 { return byName[name].Metrics.Get(key) }
	// The environment's own fee is 5 bp.
	for _, k := range []string{"total_return", "sharpe", "max_drawdown", "fees"} {
		if get("agent at 5 bp", k) != get("agent", k) || get(hold+" at 5 bp", k) != get(hold, k) {
			t.Errorf("%s at 5 bp differs from the row without a sweep", k)
		}
	}
	if !(get("agent at 0 bp", "total_return") > get("agent", "total_return") && get("agent", "total_return") > get("agent at 50 bp", "total_return")) {
		t.Error("fees do not cost")
	}
	if !(get("agent, 1 bar late", "sharpe") < get("agent", "sharpe")/2) {
		t.Error("an oracle that is a bar late is still one")
	}
	if m := (get("agent", "total_return") + get("agent seed 2", "total_return")) / 2; math.Abs(get("mean of 2 seeds", "total_return")-m) > 1e-12 || byName["mean of 2 seeds"].Of != 2 || !(byName["mean of 5 random"].Std.Get("sharpe") > 0) {
		t.Errorf("the mean over seeds is %+v", byName["mean of 2 seeds"])
	}
	if first, last := 100.0+400, 100.0+599; math.Abs(get("IDX", "total_return")-(last/first-1)) > 1e-12 || byName["IDX"].PerAsset != nil {
		t.Errorf("the index returns %g", get("IDX", "total_return"))
	}
	// Separate accounts of equal size: the mean over assets of their total returns is the
	// portfolio's.
	if p := byName[hold].PerAsset; p.Assets != 3 || math.Abs(p.TotalReturn-get(hold, "total_return")) > 1e-12 || math.Abs(float64(p.Sharpe)-get(hold, "sharpe")) < 1e-3 {
		t.Errorf("over assets %+v, portfolio %g and %g", p, get(hold, "total_return"), get(hold, "sharpe"))
	}
	var out strings.Builder
	// All but the five random policies, whose mean is shown, and the costs of buy-and-hold.
	if err := PrintTable(&out, rows, a.Config); err != nil || strings.Count(out.String(), "\n") != len(rows)+1-5-len(a.HoldCosts) || !strings.Contains(out.String(), "drawdown %") || strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "random 42") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestDocument compares the report's numbers with the rows' and checks what is said besides.
func TestDocument(t *testing.T) {
	a := assessed(t, "", nil)
	rows, err := a.Rows()
	if err != nil {
		t.Fatal(err)
	}
	d := a.Document(About{Title: "T", Trials: report.Trials{Count: 3}})
	s, err := report.Summarise(*d)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, r := range s.Strategies {
		i := slices.IndexFunc(rows, func(row Row) bool { return row.Name == r.Name })
		if i < 0 {
			t.Fatalf("no row for %q", r.Name)
		}
		for k, m := range r.Metrics {
			x, y := float64(m.Value), float64(rows[i].Metrics[k].Value)
			if x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
				t.Errorf("%s: %s is %g in the report and %g in the table", r.Name, m.Key, x, y)
			}
			compared++
		}
	}
	if compared != len(s.Strategies)*len(performance.Definitions()) || len(s.Strategies) != 13 {
		t.Errorf("%d numbers of %d strategies were compared", compared, len(s.Strategies))
	}
	if s.Benchmark != "equal-weight buy-and-hold" || s.Seeds == nil || s.Seeds.Count != 2 || len(s.Lag) != 1 || len(s.Cost) != 10 || len(s.LookAhead) != 0 {
		t.Errorf("benchmark %q, seeds %+v, %d lags, %d costs", s.Benchmark, s.Seeds, len(s.Lag), len(s.Cost))
	}
	if text := strings.Join(s.Notes, "\n"); !strings.Contains(text, "1 of the 3 stocks could not be traded on the first date") || !strings.Contains(text, "as in the paper") {
		t.Errorf("notes are\n%s", text)
	}
	// Nothing is decided about an asset that cannot be traded.
	for i, x := range d.Strategies[0].Actions {
		if (x < 0) != (i%3 == 2 && i/3 < 50) {
			t.Fatalf("action %d of bar %d is %d", i%3, i/3, x)
		}
	}
}

// TestLookAheadOfData: what the data say of themselves, and what a model's record says, is in the
// verdict, once.
func TestLookAheadOfData(t *testing.T) {
	f := factory(t, market(4, 90, 2), "")
	f.Data().LookAhead = []string{"Features know it."}
	r := Request{Env: f, LookAhead: []string{"Features know it.", "The model knows it."}}
	if got := r.lookAhead(); !slices.Equal(got, []string{"Features know it.", "The model knows it."}) {
		t.Errorf("%q", got)
	}
}

func TestLookAheadIsSaid(t *testing.T) {
	a := assessed(t, "  execution: {fill: same_close, cash_split: fair, lot: 0}\n", nil)
	s, err := report.Summarise(*a.Document(About{Title: "T"}))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.LookAhead) != 1 || !s.Verdict.LookAhead || s.Verdict.Beats || len(s.LookAhead) != 1 || !strings.Contains(s.LookAhead[0], "same_close") {
		t.Errorf("%+v", s.Verdict)
	}
}

func TestWithoutFees(t *testing.T) {
	a := assessed(t, "", func(c *evaluate.Config) { c.UseFee = false })
	for _, r := range append(a.Agents, a.Benchmark) {
		if r.TotalFees() != 0 || r.TotalTurnover() == 0 {
			t.Errorf("%s pays %g", r.Name, r.TotalFees())
		}
	}
	if a.Rules.FeeRate != 0 || a.Costs[1].Record.TotalFees() == 0 {
		t.Errorf("fee rate %g, the sweep pays %g", a.Rules.FeeRate, a.Costs[1].Record.TotalFees())
	}
}

func TestRequestErrors(t *testing.T) {
	m := market(6, 90, 2)
	f := factory(t, m, "")
	ran := 0
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Env: f, Split: envs.Test, Config: evaluate.Defaults()}, "no policy is given"},
		{Request{Env: f, Split: "exam", Config: evaluate.Defaults(), Agents: []backtest.Policy{backtest.HoldCash()}}, `no split "exam", or it leaves no step; there are test, train, valid`},
		{Request{Env: f, Split: envs.Test, Config: evaluate.Defaults(), Agents: []backtest.Policy{backtest.HoldCash()}, Index: &Series{Name: "IDX", Dates: m.Dates[80:], Close: make([]float64, 10)}}, "the index IDX has no price on 2010-03-02 or before"},
		{Request{Env: f, Split: envs.Test, Config: evaluate.Defaults(), Agents: []backtest.Policy{backtest.HoldCash()}, Index: &Series{Name: "IDX", Dates: m.Dates[:70], Close: make([]float64, 70)}}, "the index IDX has no price between 2010-03-11 and 2010-03-22"},
	} {
		ran++
		if _, err := Run(t.Context(), c.r); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(c.r.Split)) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	if err := CheckMetrics([]string{"sharpe", "shrape"}); err == nil || !strings.Contains(err.Error(), `"shrape"`) || !strings.Contains(err.Error(), "max_drawdown") {
		t.Errorf("%v", err)
	}
	if ran != 4 {
		t.Errorf("%d cases", ran)
	}
}

// TestSpecMismatch gives a policy an environment that it was not made for.
func TestSpecMismatch(t *testing.T) {
	m := market(7, 90, 2)
	opened := 0
	spec, err := Spec(factory(t, m, ""), envs.Test)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPolicy("agent", follower{m, false, &opened}, agents.Greedy, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := factory(t, market(8, 90, 3), "")
	if _, err := Run(t.Context(), Request{Env: other, Split: envs.Test, Config: evaluate.Defaults(), Agents: []backtest.Policy{p}}); err == nil || !strings.Contains(err.Error(), "was made for other observations or actions") {
		t.Errorf("%v", err)
	}
	if err := p.Close(); err != nil || opened != 0 {
		t.Errorf("%v, %d actors open", err, opened)
	}
}

func TestTrials(t *testing.T) {
	now := func() time.Time { return time.Unix(1, 0) }
	var files []string
	// Each seed is evaluated before training and then a few times; other lines do not count.
	for seed, sharpes := range [][]float64{{9, 0.5, 1.5}, {9, 0.25, math.NaN(), 2.5, 1}} {
		path := filepath.Join(t.TempDir(), "metrics.jsonl")
		j, err := metrics.CreateJSONLines(path, now)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range sharpes {
			for _, v := range []map[string]float64{{"train/loss": 1}, {"eval/sharpe": s, "eval/total_return": float64(seed)}} {
				if err := j.Scalars(int64(100*i), v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	s, err := evaluate.Selected(files, "sharpe", "here")
	if err != nil {
		t.Fatal(err)
	}
	if s.Runs != 2 || s.Evaluations != 6 || !slices.Equal(s.Best, []float64{1.5, 2.5}) {
		t.Errorf("%+v", s)
	}
	cases := 0
	for _, c := range []struct {
		name     string
		s        evaluate.Selection
		judged   []float64
		here     bool
		count    int
		variance float64 // of annual ratios
		says     []string
	}{
		// Chosen are 1.5 and 2.5, whose variance is 0.5.
		{"runs", *s, nil, false, 2, 0.5, []string{"2 runs of this configuration", "the choice among the 6 validations of the learning curves was made on other data", "on the validation split", "Source: here", "Bailey"}},
		{"runs that were judged", *s, []float64{1 / math.Sqrt(252), 4 / math.Sqrt(252)}, false, 2, 4.5, []string{"on these data"}},
		// 0.5, 1.5, 0.25, 2.5 and 1 have the mean 1.15 and Σ(x−m)² = 3.2.
		{"chosen by these data", *s, []float64{0.1, 0.2}, true, 6, 0.8, []string{"every one of the 6 validations of the learning curves counts, as if they were independent"}},
		{"a search", evaluate.Selection{Runs: 1, Searched: 20, SearchVariance: 2, Evaluations: 3, Source: "there"}, nil, false, 21, 2, []string{"One run of this configuration and 20 configurations of the search", "between the configurations", "Source: there"}},
		{"a search that varied less", evaluate.Selection{Runs: 2, Searched: 20, SearchVariance: 0.1, Sharpe: s.Sharpe}, nil, false, 22, 0.5, nil},
		{"one run", evaluate.Selection{Runs: 1, Evaluations: 50, Sharpe: []float64{1}}, []float64{0.1}, false, 1, 0, []string{"One run", "50 validations"}},
		{"the record of a model", *publish.Trials{Runs: 3, Evaluations: 7}.Selection(), []float64{0.1}, false, 3, 0, []string{"3 runs", "the model's own record"}},
		{"no validation", evaluate.Selection{Runs: 2, Source: "x"}, nil, false, 2, 0, []string{"no policy was chosen by validation"}},
		{"no validation, here", evaluate.Selection{Runs: 2, Source: "x"}, nil, true, 2, 0, nil},
	} {
		cases++
		tr := Trials(&c.s, c.judged, c.here, 252)
		if tr.Count != c.count || math.Abs(tr.SharpeVariance-c.variance/252) > 1e-12 {
			t.Errorf("%s: %+v, expected %d trials with a variance of %g", c.name, tr, c.count, c.variance/252)
		}
		for _, text := range c.says {
			if !strings.Contains(tr.Counted, text) {
				t.Errorf("%s: %q does not say %q", c.name, tr.Counted, text)
			}
		}
	}
	if cases != 9 {
		t.Errorf("%d cases", cases)
	}
	if s, err = evaluate.Selected(files[:1], "mean_reward", ""); err != nil || s.Evaluations != 0 || !math.IsNaN(s.Best[0]) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := evaluate.Selected([]string{"nowhere.jsonl"}, "sharpe", ""); err == nil || !strings.Contains(err.Error(), "nowhere.jsonl") {
		t.Errorf("%v", err)
	}
}

// TestSeen: bars that overlap with what a policy learnt from or was chosen by are said, by the
// record of the policy where there is one and else by the environment's splits.
func TestSeen(t *testing.T) {
	f := factory(t, market(4, 90, 2), "")
	d := f.Data()
	day := func(i int) time.Time { return d.Market.Dates[i] }
	cases := 0
	for _, c := range []struct {
		name            string
		split           envs.Split
		trained, chosen evaluate.Period
		want            []string
		here            bool
	}{
		{"test", envs.Test, evaluate.Period{}, evaluate.Period{}, nil, false},
		{"train", envs.Train, evaluate.Period{}, evaluate.Period{}, []string{"The agent was trained on these data."}, false},
		{"valid", envs.Valid, evaluate.Period{}, evaluate.Period{}, []string{"The agent was chosen by its results on these data."}, true},
		{"a record says more", envs.Test, evaluate.Period{First: day(0), Last: day(69)}, evaluate.Period{First: day(70), Last: day(89)},
			[]string{"The agent was trained on a part of these data, 2010-03-02 to 2010-03-11.", "The agent was chosen by its results on a part of these data, 2010-03-12 to 2010-03-31."}, true},
		{"a record says less", envs.Train, evaluate.Period{First: day(30), Last: day(40)}, evaluate.Period{}, nil, false},
		{"the last bar", envs.Test, evaluate.Period{First: day(0), Last: day(60)}, evaluate.Period{}, []string{"The agent was trained on a part of these data, 2010-03-02 to 2010-03-02."}, false},
	} {
		cases++
		r := Request{Env: f, Split: c.split, Trained: c.trained, Chosen: c.chosen}
		got, here := r.seen(d.Splits[c.split])
		if !slices.Equal(got, c.want) || here != c.here {
			t.Errorf("%s: %q, %t", c.name, got, here)
		}
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// TestConfig holds the messages of the section.
func TestConfig(t *testing.T) {
	c := evaluate.Defaults()
	if err := configs.Validate(c); err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("eval.yaml", []byte("lag: [0, 1, 1]\ncost_sweep_bp: [-1]\nbaselines: {moving_average: [1], index: {source: {path: x.csv}}}\nbootstrap: {samples: 0, block: 0.5, confidence: 1}\nepisodes: 0\nperiods_per_year: -1\nmetrics: []\nrisk_free: -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = doc.Decode(&c)
	if err == nil {
		t.Fatal("accepted")
	}
	found := 0
	for _, want := range []string{"lag: 0", "lag: 1 is given twice", "cost_sweep_bp: -1", "baselines.moving_average: 1", "baselines.index.symbol", "bootstrap.samples", "bootstrap.block", "bootstrap.confidence", "episodes", "periods_per_year", "metrics", "risk_free"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing is said of %s:\n%v", want, err)
		}
		found++
	}
	if found != 12 {
		t.Errorf("%d", found)
	}
}

// TestLoadIndex reads an index from a file of its own.
func TestLoadIndex(t *testing.T) {
	m := market(9, 90, 2)
	f := factory(t, m, "")
	path := filepath.Join(t.TempDir(), "index.csv")
	text := "date,series,open,high,low,close,adj_close,volume\n"
	for i, d := range m.Dates[50:] {
		// A day is missing now and then: the price before it holds.
		if i%7 != 3 {
			text += fmt.Sprintf("%s,IDX,1,9,1,%d,%d,1\n", d.Format(time.DateOnly), 2+i%3, 1+i%3)
		}
	}
	if err := os.WriteFile(path, []byte(text+"2010-01-01,OTHER,1,1,1,1,1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	section := func(yaml string) evaluate.Index {
		doc, err := configs.Parse("eval.yaml", []byte(yaml))
		if err != nil {
			t.Fatal(err)
		}
		c := evaluate.Defaults()
		if err := doc.Decode(&c); err != nil {
			t.Fatal(err)
		}
		return c.Baselines.Index
	}
	s, err := LoadIndex(f, section("baselines: {index: {symbol: IDX, source: {path: "+path+", columns: {symbol: series}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.At(m.Dates[60:])
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for k, p := range got {
		i := k + 10
		if i%7 == 3 {
			i--
		}
		// Closes are adjusted.
		if p != float64(1+i%3) {
			t.Fatalf("the index is %g on day %d, expected %d", p, k+10, 1+i%3)
		}
		compared++
	}
	if compared != 30 {
		t.Errorf("%d prices", compared)
	}
	if none, err := LoadIndex(f, evaluate.Index{}); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	for yaml, want := range sorted.All(map[string]string{
		"baselines: {index: {symbol: NONE, source: {path: " + path + ", columns: {symbol: series}}}}": `symbol "NONE" has no rows`,
		"baselines: {index: {symbol: IDX, source: {path: nowhere.csv}}}":                              "nowhere.csv",
		"baselines: {index: {symbol: IDX, source: {file: x}}}":                                        "baselines.index.source.file",
		"baselines: {index: {symbol: IDX}}":                                                           "eval.baselines.index",
	}) {
		if _, err := LoadIndex(f, section(yaml)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// TestPeriods checks that the bars of a year come from all of the market's timestamps, reach every
// number of the table and the report, and give way to the configuration.
func TestPeriods(t *testing.T) {
	a := assessed(t, "", func(*evaluate.Config) {})
	if a.Config.PeriodsPerYear != 365 || a.PeriodsFrom != "365 trading days a year, by the timestamps" {
		t.Errorf("%g, %s", a.Config.PeriodsPerYear, a.PeriodsFrom)
	}
	b := assessed(t, "", func(c *evaluate.Config) { c.PeriodsPerYear = 730 })
	if b.PeriodsFrom != "eval.periods_per_year" {
		t.Error(b.PeriodsFrom)
	}
	s, err := report.Summarise(*a.Document(About{}))
	if err != nil {
		t.Fatal(err)
	}
	if s.PeriodsPerYear != 365 || s.PeriodsFrom != a.PeriodsFrom {
		t.Errorf("the report says %g, %s", s.PeriodsPerYear, s.PeriodsFrom)
	}
	one, err := a.Rows()
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.Rows()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range one {
		for key, want := range sorted.All(map[string]float64{"sharpe": math.Sqrt2, "volatility": math.Sqrt2, "cagr": 1, "total_return": 1, "turnover": 2}) {
			x, y := one[i].Metrics.Get(key), two[i].Metrics.Get(key)
			if math.IsNaN(x) != math.IsNaN(y) || math.Abs(y-want*x) > 1e-9*max(1, math.Abs(x)) {
				t.Errorf("%s of %s: %g, and %g with twice the periods", key, one[i].Name, x, y)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("%d numbers compared", compared)
	}
}

// TestDelisting: the report says what account.delisting did, and that nobody pays for what is kept
// without it.
func TestDelisting(t *testing.T) {
	for _, c := range []struct{ account, want string }{
		{"  account: {delisting: {}}\n", "account.delisting made cash of one position of equal-weight buy-and-hold in stocks that had no row any more, for 0.7 of the last price, the mean of stocks that the NYSE and the AMEX delisted for their performance (Shumway 1997), which lost "},
		{"  account: {delisting: {recovery: 0.4}}\n", " for 0.4 of the last price, which lost "},
		{"", "held what has no row any more, at its last price, which nobody pays: B. account.delisting: {} makes cash of it, with 0.7 of that price (Shumway 1997)."},
	} {
		m := market(3, 90, 3)
		m.Gone = make([]uint8, 90*3)
		for b := 70; b < 90; b++ {
			i := 3*b + 1
			m.Open[i], m.Close[i], m.Tradable[i] = m.Close[i-3], m.Close[i-3], 0
			if b >= 75 {
				m.Gone[i] = 1
			}
		}
		a := assessedOn(t, m, c.account, nil)
		d := a.Document(About{Title: "x"})
		if text := strings.Join(d.Notes, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%q is not said in\n%s", c.want, text)
		}
		value, n := a.Benchmark.Value, len(a.Benchmark.Endings)
		if (n > 0) != (c.account != "") || n > 0 && (a.Benchmark.Endings[0].Asset != 1 || !a.Benchmark.Endings[0].Date.Equal(m.Dates[75]) || a.Benchmark.Endings[0].Cash >= a.Benchmark.Endings[0].Shares*a.Benchmark.Endings[0].Price) {
			t.Errorf("%+v", a.Benchmark.Endings)
		}
		// The capital employed has lost what the price says.
		if r := a.Benchmark.AssetReturns()[(75-60-1)*3+1]; n > 0 && !(r < -0.29) || len(value) != 30 {
			t.Errorf("a return of %g, %d values", r, len(value))
		}
	}
}
