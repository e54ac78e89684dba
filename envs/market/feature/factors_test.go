package feature

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/expression"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
	"github.com/onnxrl/onnxrl/envs/market/state"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func withFactors(missing string) Config {
	return Config{Extra: []string{"extra"}, Prices: "level", Volume: "level", Factors: Factors{Sets: slices.Clone(expression.Sets), Missing: missing, Expressions: []Expression{
		{Name: "trend", Expr: "EMA($close, 3)/Mean($close, 10)"}, {Expr: "$extra+1"}, {Name: "level", Expr: "Log($close)"}, {Name: "turnover", Expr: "Log($volume)"},
	}}}
}

// Factors are columns behind the indicators; those of both sets are there once, those of fields
// that the data lack are not, and units tell what follows the level of prices.
func TestFactorColumns(t *testing.T) {
	f := mustNew(t, withFactors(""))
	without := 1 + 60 // VWAP0 of one set, and all of the other's
	if len(f.LeftOut()) != without || !strings.Contains(f.LeftOut()[0], "VWAP0 (the data have no $vwap)") {
		t.Errorf("%d are left out: %v", len(f.LeftOut()), f.LeftOut())
	}
	columns := f.Columns()
	if want := 158 + 360 - without - 3 + 4 + 1; len(columns) != want {
		t.Errorf("%d columns, expected %d", len(columns), want)
	}
	for name, want := range sorted.All(map[string]Column{
		"KMID": {Unit: indicator.Number}, "CORR60": {Unit: indicator.Number, Warmup: 59}, "CORD60": {Unit: indicator.Number, Warmup: 60}, "MAX5": {Unit: indicator.Number, Warmup: 4},
		"CLOSE59": {Unit: indicator.Number, Warmup: 59}, "level": {Unit: indicator.Price}, "turnover": {Unit: indicator.Volume}, "$extra+1": {Unit: indicator.Number},
	}) {
		i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
		if i < 0 || columns[i].Unit != want.Unit || columns[i].Warmup != want.Warmup || columns[i].Group != Indicators {
			t.Errorf("%s: %+v, expected %+v", name, columns[max(i, 0)], want)
		}
	}
	if f.Warmup() != 60 {
		t.Errorf("warm-up of %d bars", f.Warmup())
	}
}

// After the warm-up a row is defined unless a factor is missing, which Missing replaces. Values do
// not depend on later bars, and a restored stream goes on with the same bits.
func TestFactorRows(t *testing.T) {
	p := market(t, 1, 260, 2)
	n := 1 // has gaps
	undefined := map[string]int{}
	for _, missing := range []string{"", "zero", "last"} {
		f := mustNew(t, withFactors(missing))
		zeros, seen := 0, 0
		var rows [][]float64
		f.Rows(p, n, func(at int, row []float64, defined bool) {
			rows = append(rows, slices.Clone(row))
			seen++
			listed := p.Status[p.Index(at, n)].Listed()
			switch {
			case seen <= f.Warmup() && defined:
				t.Errorf("%q: bar %d is defined in the warm-up", missing, seen)
			case seen > f.Warmup() && listed && !defined:
				undefined[missing]++
			}
			for i, v := range row {
				if v-v != 0 {
					t.Fatalf("%q: %s is %v on bar %d", missing, f.Columns()[i].Name, v, seen)
				}
				if defined && v == 0 && f.Columns()[i].Name == "VMA5" {
					zeros++
				}
			}
		})
		if suspended := zeros > 0; suspended != (missing == "zero") {
			t.Errorf("%q: %d zeros", missing, zeros)
		}
		s, out := f.Stream(), make([]float64, len(f.Columns()))
		for i, row := range rows {
			if i == 100 {
				w := state.Writer(nil)
				s.State(w)
				s = f.Stream()
				r := state.Reader(w.Bytes())
				if s.State(r); r.Err() != nil || len(r.Bytes()) > 0 {
					t.Fatal(r.Err(), len(r.Bytes()))
				}
			}
			k := p.Index(len(p.Times)-len(rows)+i, n)
			s.Next(&p.Bars[k], p.ExtraValues[k:k+1], p.Status[k], out)
			if !slices.Equal(out, row) {
				t.Fatalf("%q: row %d differs after a restore", missing, i)
			}
		}
		bar := p.Bars[p.Index(200, n)]
		if a := testing.AllocsPerRun(50, func() { s.Next(&bar, []float64{1}[:1:1], bars.Traded, out) }); a != 0 {
			t.Errorf("%v allocations a bar", a)
		}
	}
	if undefined[""] == 0 || undefined["zero"] != 0 || undefined["last"] != 0 {
		t.Errorf("undefined rows after the warm-up: %v", undefined)
	}
}

func TestFactorErrors(t *testing.T) {
	for _, c := range []struct {
		factors Factors
		want    string
	}{
		{Factors{Sets: []string{"alpha101"}}, "factors.sets[0]: "},
		{Factors{Sets: []string{"alpha158", "alpha158"}}, `factors.sets[1]: "alpha158" is there twice`},
		{Factors{Expressions: []Expression{{Expr: "$close"}, {Expr: "Mean($close"}}}, `factors.expressions[1].expr: "Mean($close": column 12: expected`},
		{Factors{Missing: "mean"}, "factors.missing: "},
		{Factors{Expressions: []Expression{{Name: "a", Expr: "$close"}, {Name: "a", Expr: "$open"}}}, `two columns called "a"`},
		{Factors{Expressions: []Expression{{Name: "a", Expr: "$turn+1"}}}, "field $turn is not there; the data have [open high low close volume extra]"},
	} {
		_, err := New(Config{OHLCV: true, Prices: "level", Volume: "level", Factors: c.factors}, []string{"extra"}, true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected %q", c.factors, err, c.want)
		}
	}
	f, err := New(Config{Prices: "level", Volume: "level", Factors: Factors{Sets: []string{"alpha158"}}}, nil, false)
	if err != nil || len(f.LeftOut()) != 1+8*5 {
		t.Errorf("without volumes: %v, %d are left out", err, len(f.LeftOut()))
	}
	if !math.IsNaN(f.newFactors().last[0]) {
		t.Error("a value before the first bar")
	}
}
