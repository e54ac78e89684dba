package performance_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	p "github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// percentages is a series in percent in which "nan" is a missing return.
type percentages []float64

func (s *percentages) UnmarshalJSON(text []byte) error {
	var raw []any
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	for _, v := range raw {
		if x, ok := v.(float64); ok {
			*s = append(*s, x/100)
		} else {
			*s = append(*s, math.NaN())
		}
	}
	return nil
}

func TestEmpyrical(t *testing.T) {
	var v struct {
		Series       map[string]percentages `json:"series_pct"`
		Periods      float64                `json:"annualization"`
		Sharpe       map[string]float64
		MaxDrawdown  map[string]float64 `json:"max_drawdown"`
		AnnualReturn map[string]float64 `json:"annual_return"`
		Volatility   map[string]float64 `json:"annual_volatility"`
		Calmar       map[string]float64
		Sortino      map[string]float64
		Downside     map[string]float64 `json:"downside_risk"`
		TailRatio    map[string]float64 `json:"tail_ratio"`
		Total        map[string]float64 `json:"cum_return_final"`
		Var          []struct {
			X         []float64
			Cutoff, V float64
		}
		Omega        map[string]float64
		Stability    map[string]float64
		ExcessSharpe map[string]float64 `json:"excess_sharpe"`
		CVaR         []struct {
			X                 json.RawMessage
			Cutoff, Var, CVaR float64
		} `json:"cvar_derived_here"`
	}
	load(t, "empyrical.json", &v)
	// The keys of these have commas, which a field's tag cannot.
	var pairs map[string]json.RawMessage
	load(t, "empyrical.json", &pairs)
	pair := func(key string) (x [2]float64) {
		if err := json.Unmarshal(pairs[key], &x); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return x
	}
	s := func(name string) []float64 {
		if len(v.Series[name]) == 0 {
			t.Fatalf("no series %q", name)
		}
		return v.Series[name]
	}
	checked := 0
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		checked++
		if !(math.Abs(got-want) <= tolerance*max(1, math.Abs(want))) {
			t.Errorf("%s = %.17g, want %.17g", name, got, want)
		}
	}
	const tight = 1e-12
	root := math.Sqrt(v.Periods)
	mixed := s("mixed")

	for _, name := range []string{"mixed", "positive", "negative"} {
		near("sharpe "+name, p.Sharpe(s(name))*root, v.Sharpe[name], tight)
	}
	simple := []float64{0, 0.01, 0, 0.01, 0, 0.01, 0, 0.01, 0} // the library's "simple benchmark"
	near("sharpe of active returns", p.Sharpe(p.Active(mixed, simple))*root, v.Sharpe["mixed_minus_simple_benchmark"], tight)
	for _, name := range []string{"mixed", "negative", "all_negative", "up_down_up"} {
		near("max drawdown "+name, p.MaxDrawdown(p.Growth(s(name))), v.MaxDrawdown[name], tight)
	}
	near("annual return", p.CAGR(mixed, float64(len(mixed))/v.Periods), v.AnnualReturn["mixed"], tight)
	near("annual volatility", p.Volatility(mixed)*root, v.Volatility["mixed"], tight)
	for name, periods := range sorted.All(map[string]float64{"mixed": 252, "mixed_weekly": 52, "mixed_monthly": 12}) {
		near("calmar "+name, p.Calmar(mixed, float64(len(mixed))/periods), v.Calmar[name], tight)
	}
	for _, name := range []string{"mixed", "negative"} {
		near("sortino "+name, p.Sortino(s(name))*root, v.Sortino[name], tight)
	}
	near("downside risk", p.DownsideRisk(mixed)*root, v.Downside["mixed"], tight)
	near("tail ratio", p.TailRatio(mixed), v.TailRatio["mixed"], 0.05) // the library's own test compares one decimal
	near("total return", p.TotalReturn(mixed), v.Total["mixed"], tight)

	// Series that begin at their second return are aligned by date: the missing one meets a missing
	// one.
	for _, c := range []struct {
		name string
		b    []float64
		want [2]float64
	}{{"alpha, beta", s("negative")[1:], pair("alpha_beta(mixed,negative[1:])")}, {"up", s("positive")[1:], pair("up_alpha_beta(mixed[1:],positive[1:])")}, {"down", s("negative")[1:], pair("down_alpha_beta(mixed[1:],negative[1:])")}} {
		near(c.name+": alpha", p.Alpha(mixed[1:], c.b, v.Periods), c.want[0], 1e-9)
		near(c.name+": beta", p.Beta(mixed[1:], c.b), c.want[1], 1e-9)
	}
	for _, c := range v.Var {
		near("value at risk", p.ValueAtRisk(c.X, c.Cutoff), c.V, tight)
	}
	for _, c := range v.CVaR {
		x := mixed
		if string(c.X) != `"mixed"` {
			var listed []float64
			if err := json.Unmarshal(c.X, &listed); err != nil {
				t.Fatal(err)
			}
			x = listed
		}
		near("value at risk", p.ValueAtRisk(x, c.Cutoff), c.Var, tight)
		near("conditional value at risk", p.ConditionalValueAtRisk(x, c.Cutoff), c.CVaR, tight)
	}
	for name, c := range sorted.All(map[string]struct {
		series         string
		free, required float64
	}{
		"mixed_rf0_req10": {"mixed", 0, 10}, "mixed_rf.01_req0": {"mixed", 0.01, 0}, "positive_rf.011": {"positive", 0.011, 0}, "positive_rf.02": {"positive", 0.02, 0}, "negative_rf.01": {"negative", 0.01, 0},
	}) {
		near("omega "+name, p.Omega(p.Excess(s(c.series), c.free), p.PerPeriod(c.required, v.Periods)), v.Omega[name], 1e-9)
	}
	near("stability", p.Stability(mixed), v.Stability["mixed"], tight)
	for name, b := range sorted.All(map[string]float64{"mixed_vs_0": 0, "mixed_vs_0.01": 0.01}) {
		bench := make([]float64, len(mixed))
		for i := range bench {
			bench[i] = b
		}
		near("information ratio "+name, p.InformationRatio(mixed, bench), v.ExcessSharpe[name], tight)
	}
	if checked != 44 {
		t.Errorf("%d values compared, expected 44", checked)
	}
}

func TestDeflatedSharpe(t *testing.T) {
	var v struct {
		Sharpe   float64 `json:"SR_ann"`
		Periods  float64
		Variance float64 `json:"V_ann"`
		T        int
		Skew     float64
		Kurtosis float64      `json:"kurt"`
		Rows     [][3]float64 `json:"N_SR0perperiod_DSR"`
	}
	load(t, "deflated_sharpe.json", &v)
	sharpe := v.Sharpe / math.Sqrt(v.Periods)
	checked := 0
	for _, row := range v.Rows {
		threshold := p.ExpectedMaxSharpe(int(row[0]), v.Variance/v.Periods)
		probability := p.ProbabilisticSharpe(sharpe, threshold, v.T, p.Moments{Skew: v.Skew, Kurtosis: v.Kurtosis})
		if math.Abs(threshold-row[1]) > 1e-12 || math.Abs(probability-row[2]) > 1e-12 {
			t.Errorf("%g trials: threshold %.17g and probability %.17g, want %.17g and %.17g", row[0], threshold, probability, row[1], row[2])
		}
		checked += 2
	}
	if checked != 8 {
		t.Errorf("%d values compared, expected 8", checked)
	}
}
