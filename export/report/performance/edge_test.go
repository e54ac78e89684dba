package performance_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	p "github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func measure(t *testing.T, in p.Input) p.Metrics {
	t.Helper()
	if in.PeriodsPerYear == 0 {
		in.PeriodsPerYear = 252
	}
	if in.Dates == nil {
		in.Dates = businessDays("2020-01-01", len(in.Value))
	}
	m, err := p.Measure(in)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Numbers that a record lacks are NaN and never infinite, and the others are there.
func TestEdges(t *testing.T) {
	nan := math.NaN()
	cases := 0
	for _, c := range []struct {
		name  string
		value []float64
		want  map[string]float64
	}{
		{"constant", []float64{5, 5, 5, 5, 5}, map[string]float64{"total_return": 0, "cagr": 0, "volatility": 0, "sharpe": nan, "sortino": nan, "calmar": nan, "max_drawdown": 0, "omega": nan, "skew": nan, "kurtosis": nan, "stability": nan,
			"win_rate": nan, "profit_factor": nan, "tail_ratio": nan, "probabilistic_sharpe": nan, "longest_drawdown_days": 0, "average_drawdown": nan, "ulcer_index": 0, "var_95": 0, "kelly": nan}},
		{"steady growth", []float64{1, 1.1, 1.21, 1.331, 1.4641}, map[string]float64{"total_return": 0.4641, "sharpe": nan, "sortino": nan, "calmar": nan, "win_rate": 1, "profit_factor": nan, "max_drawdown": 0, "stability": 1, "longest_wins": 4}},
		{"total loss", []float64{1, 2, 0, 0, 0}, map[string]float64{"total_return": -1, "cagr": -1, "max_drawdown": -1, "stability": nan, "worst_day": -1, "best_day": 1, "expected_daily": -1}},
		{"one return", []float64{1, 1.5}, map[string]float64{"total_return": 0.5, "volatility": nan, "sharpe": nan, "skew": nan, "var_95": 0.5, "win_rate": 1, "beta": nan, "mtd": nan, "1y": nan}},
		{"two returns", []float64{1, 1.5, 1.2}, map[string]float64{"total_return": 0.2, "sharpe": (0.5 - 0.2) / 2 / (0.7 / math.Sqrt2) * math.Sqrt(252), "skew": nan, "kurtosis": nan, "payoff": 2.5, "profit_factor": 2.5}},
	} {
		m := measure(t, p.Input{Value: c.value})
		if len(m) != len(p.Definitions()) {
			t.Errorf("%s: %d metrics of %d", c.name, len(m), len(p.Definitions()))
		}
		for _, x := range m {
			if math.IsInf(float64(x.Value), 0) {
				t.Errorf("%s: %s is %g", c.name, x.Key, float64(x.Value))
			}
		}
		for key, want := range sorted.All(c.want) {
			got := m.Get(key)
			if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %s = %g, want %g", c.name, key, got, want)
			}
			cases++
		}
	}
	if cases != 51 {
		t.Errorf("%d values compared, expected 51", cases)
	}
	// Missing returns, and none at all.
	for name, f := range sorted.All(map[string]func([]float64) float64{"sharpe": p.Sharpe, "sortino": p.Sortino, "volatility": p.Volatility, "skew": p.Skew, "stability": p.Stability, "tail ratio": p.TailRatio, "win rate": p.WinRate, "iqm": p.InterquartileMean, "downside": p.DownsideRisk}) {
		r := []float64{0.01, -0.02, 0.03, -0.005, 0.02}
		holes := []float64{nan, 0.01, -0.02, nan, 0.03, -0.005, 0.02, nan}
		if a, b := f(r), f(holes); a != b {
			t.Errorf("%s: %g, and %g with missing returns", name, a, b)
		}
		for _, none := range [][]float64{nil, {nan, nan}} {
			if got := f(none); !math.IsNaN(got) {
				t.Errorf("%s of %v is %g", name, none, got)
			}
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	good := p.Input{Dates: businessDays("2020-01-01", 3), Value: []float64{1, 2, 3}, PeriodsPerYear: 252}
	cases := 0
	for want, spoil := range sorted.All(map[string]func(in *p.Input){
		"1 values":                   func(in *p.Input) { in.Value = in.Value[:1] },
		"2 dates for 3 values":       func(in *p.Input) { in.Dates = in.Dates[:2] },
		"periods_per_year":           func(in *p.Input) { in.PeriodsPerYear = 0 },
		"risk_free":                  func(in *p.Input) { in.RiskFree = -1 },
		"not after":                  func(in *p.Input) { in.Dates = []time.Time{in.Dates[0], in.Dates[1], in.Dates[1]} },
		"value is NaN":               func(in *p.Input) { in.Value = []float64{1, math.NaN(), 1} },
		"value is -1":                func(in *p.Input) { in.Value = []float64{1, -1, 1} },
		"benchmark has 2":            func(in *p.Input) { in.Benchmark = []float64{1, 1} },
		"cash is +Inf":               func(in *p.Input) { in.Cash = []float64{1, 1, math.Inf(1)} },
		"turnover has 3 numbers":     func(in *p.Input) { in.Turnover = []float64{1, 1, 1} },
		"fees is -1 at 2020-01-02":   func(in *p.Input) { in.Fees = []float64{0, -1} },
		"first value is 0":           func(in *p.Input) { in.Value = []float64{0, 1, 1} },
		"measure performance: the f": func(in *p.Input) { in.Benchmark = []float64{0, 1, 1} },
	}) {
		in := good
		spoil(&in)
		if _, err := p.Measure(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected one with %q", err, want)
		}
		cases++
	}
	if cases != 13 {
		t.Errorf("%d cases", cases)
	}
}

// Properties: what must not matter does not, and what must be equal is.
func TestProperties(t *testing.T) {
	checks := 0
	for seed := range uint64(50) {
		s := rng.New(seed).Stream()
		n := 30 + s.IntN(400)
		r, b := make([]float64, n), make([]float64, n)
		for i := range r {
			b[i] = 0.01 * s.Normal()
			r[i] = 0.5*b[i] + 0.01*s.Normal()
		}
		value, bench := p.Growth(r), p.Growth(b)
		for i, x := range p.Returns(value) {
			if math.Abs(x-r[i]) > 1e-12 {
				t.Fatalf("return %d is %g, want %g", i, x, r[i])
			}
		}
		m := measure(t, p.Input{Value: value, Benchmark: bench})
		scaled := slices.Clone(value)
		for i := range scaled {
			scaled[i] *= 1e4
		}
		again := measure(t, p.Input{Value: scaled, Benchmark: bench})
		for i := range m {
			x, y := float64(m[i].Value), float64(again[i].Value)
			if math.IsNaN(x) != math.IsNaN(y) || math.Abs(x-y) > 1e-8*max(1, math.Abs(x)) {
				t.Errorf("seed %d: %s is %g, and %g in other money", seed, m[i].Key, x, y)
			}
			checks++
		}
		self := measure(t, p.Input{Value: value, Benchmark: value})
		for key, want := range sorted.All(map[string]float64{"beta": 1, "alpha": 0, "correlation": 1, "excess_return": 0, "tracking_error": 0, "up_capture": 1, "down_capture": 1}) {
			if got := self.Get(key); math.Abs(got-want) > 1e-9 {
				t.Errorf("seed %d: %s with itself is %g, want %g", seed, key, got, want)
			}
			checks++
		}
		// The worst drawdown is the deepest of the list, and the curve below the peak has that
		// depth.
		falls := p.Drawdowns(value)
		if worst := p.Worst(falls, 1); len(worst) == 1 {
			if d := worst[0]; math.Abs(d.Depth-p.MaxDrawdown(value)) > 1e-12 || math.Abs(slices.Min(p.Underwater(value))-d.Depth) > 1e-12 || !(d.Peak < d.Trough) || d.End >= 0 && d.End <= d.Trough {
				t.Errorf("seed %d: drawdown %+v, and the largest is %g", seed, d, p.MaxDrawdown(value))
			}
		}
		below := 0
		for _, d := range falls {
			end := d.End
			if end < 0 {
				end = len(value)
			}
			below += end - d.Peak - 1
		}
		under := 0
		for _, d := range p.Underwater(value) {
			if d < 0 {
				under++
			}
		}
		if below != under {
			t.Errorf("seed %d: drawdowns cover %d values, and %d are below a peak", seed, below, under)
		}
		// Months, quarters and years compound to the whole.
		for _, months := range []int{1, 3, 12} {
			total := 1.0
			for _, span := range p.Spans(businessDays("2020-01-01", n+1), value, months) {
				total *= 1 + span.Return
			}
			if math.Abs(total-1-m.Get("total_return")) > 1e-9 {
				t.Errorf("seed %d: parts of %d months compound to %g, want %g", seed, months, total-1, m.Get("total_return"))
			}
			checks++
		}
		// More trials and fewer returns make a record less convincing.
		previous := 2.0
		for _, trials := range []int{1, 2, 10, 100, 10000} {
			d := p.DeflatedSharpe(r, trials, 0)
			if !(float64(d.Probability) < previous) {
				t.Errorf("seed %d: probability %g after %d trials, and %g after fewer", seed, float64(d.Probability), trials, previous)
			}
			previous = float64(d.Probability)
			checks++
		}
	}
	if want := 50 * (len(p.Definitions()) + 7 + 3 + 5); checks != want {
		t.Errorf("%d checks, expected %d", checks, want)
	}
}

// luck is the best of a number of trials of independent normal returns without a mean, judged with
// the variance of the trials' ratios.
func luck(seed, trials, returns int) float64 {
	s := rng.New(2025).Split("noise", trials, seed).Stream()
	var best []float64
	sharpes := make([]float64, trials)
	for k := range trials {
		r := make([]float64, returns)
		for i := range r {
			r[i] = 0.012 * s.Normal()
		}
		if sharpes[k] = p.Sharpe(r); best == nil || sharpes[k] > p.Sharpe(best) {
			best = r
		}
	}
	variance := 0.0
	if trials > 1 {
		variance = math.Pow(p.Volatility(sharpes), 2)
	}
	return float64(p.DeflatedSharpe(best, trials, variance).Probability)
}

// Of 100 agents without any skill, each the best of several trials, at most 5 have a deflated
// Sharpe probability above 95%. With a single trial it is a test at the level of 5%, so that 100 of
// 2000 are expected.
func TestNoiseShowsNoSkill(t *testing.T) {
	count := func(runs, trials int) (claims int) {
		for seed := range runs {
			if luck(seed, trials, 500) > 0.95 {
				claims++
			}
		}
		return claims
	}
	for _, trials := range []int{2, 3, 10, 50} {
		if claims := count(100, trials); claims > 5 {
			t.Errorf("%d of 100 agents without skill, the best of %d trials each, have a deflated Sharpe probability above 95%%", claims, trials)
		}
	}
	if claims := count(2000, 1); claims < 60 || claims > 140 {
		t.Errorf("%d of 2000 single trials without skill are above 95%%, expected about 100", claims)
	}
}

func TestMetricsJSON(t *testing.T) {
	text, err := json.Marshal(measure(t, p.Input{Value: []float64{1, 1, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]*p.Number
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != len(p.Definitions()) {
		t.Errorf("%d keys, expected %d: a key occurs twice", len(all), len(p.Definitions()))
	}
	if all["sharpe"] != nil && all["sharpe"].Defined() || all["total_return"] == nil || *all["total_return"] != 0 {
		t.Errorf("%s", text)
	}
	if !strings.HasPrefix(string(text), `{"total_return":0,"cagr":0,`) {
		t.Errorf("not in the order of the table: %.60s", text)
	}
	for _, d := range p.Definitions() {
		if d.Key == "" || d.Name == "" || d.Convention == "" || d.Group == "" || d.Unit == "" {
			t.Errorf("%+v is incomplete", d)
		}
	}
}

// Three months before 31 May is the end of February, and a return since then needs a value at that
// date or before.
func TestTrailing(t *testing.T) {
	date := func(s string) time.Time { d, _ := time.Parse(time.DateOnly, s); return d }
	m := measure(t, p.Input{Dates: []time.Time{date("2019-05-31"), date("2019-12-31"), date("2020-02-29"), date("2020-03-01"), date("2020-04-30"), date("2020-05-31")}, Value: []float64{1, 2, 4, 5, 6, 8}})
	for key, want := range sorted.All(map[string]float64{"3m": 1, "mtd": 8.0/6 - 1, "ytd": 3, "1y": 7, "6m": 7}) {
		if got := m.Get(key); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s = %g, want %g", key, got, want)
		}
	}
	if !math.IsNaN(m.Get("3y")) {
		t.Errorf("3y = %g of one year", m.Get("3y"))
	}
}
