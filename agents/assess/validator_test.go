package assess

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// tested is what is tested.
var tested Judge

func TestValidatorRanksPolicies(t *testing.T) {
	m := market(1, 300, 3)
	f := factory(t, m, "")
	v, err := tested.Validator(f, evaluate.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	judge := func(contrarian bool) map[string]float64 {
		r, err := v(t.Context(), follower{m, contrarian, &opened}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(r)); !slices.Equal(names, slices.Sorted(slices.Values(tested.Metrics()))) {
			t.Errorf("the metrics are %v", names)
		}
		return r
	}
	good, bad, again := judge(false), judge(true), judge(false)
	if good["sharpe"] <= 1 || bad["sharpe"] >= -1 || good["total_return"] <= 0 || bad["max_drawdown"] >= good["max_drawdown"] || good["mean_length"] != 99 {
		t.Errorf("following gives %v, the opposite %v", good, bad)
	}
	if !maps.Equal(good, again) {
		t.Error("a second evaluation differs")
	}
	if opened != 0 {
		t.Errorf("%d actors were not closed", opened)
	}
	free := evaluate.Defaults()
	free.UseFee = false
	if v, err = tested.Validator(f, free); err != nil {
		t.Fatal(err)
	}
	if r := judge(false); r["fees"] != 0 || r["total_return"] <= good["total_return"] || good["fees"] <= 0 {
		t.Errorf("without fees %v, with %v", r, good)
	}
}

// TestValidatorOfCash: a portfolio that never changes has no Sharpe ratio, not one of 0, which
// would be better than any below it.
func TestValidatorOfCash(t *testing.T) {
	m := market(2, 90, 2)
	for i := range m.X {
		m.X[i] = -1
	}
	v, err := tested.Validator(factory(t, m, ""), evaluate.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	r, err := v(t.Context(), follower{m, false, &opened}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range sorted.All(r) {
		if math.IsNaN(x) != (name == "sharpe") || x < 0 || x > 0 && name != "mean_length" {
			t.Errorf("%s is %g", name, x)
		}
	}
	if len(r) != len(tradingMetrics) {
		t.Errorf("%d metrics", len(r))
	}
}

func TestValidatorNeedsASplit(t *testing.T) {
	m := market(3, 60, 2)
	f := factory(t, m, "")
	delete(f.Data().Splits, envs.Valid)
	if _, err := tested.Validator(f, evaluate.Defaults()); err == nil || !strings.Contains(err.Error(), `no split "valid"`) || !strings.Contains(err.Error(), "there are test, train") {
		t.Errorf("%v", err)
	}
	f.Data().Splits[envs.Valid] = trading.Range{First: 30, Last: 31}
	if _, err := tested.Validator(f, evaluate.Defaults()); err == nil || !strings.Contains(err.Error(), "has 1 step, expected at least 2") {
		t.Errorf("%v", err)
	}
}
