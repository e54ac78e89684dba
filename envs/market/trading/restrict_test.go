package trading_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestRestrictWeights: what is left out is shared in proportion, at most a hundredfold, and the
// cash has what remains.
func TestRestrictWeights(t *testing.T) {
	scratch := make([]float64, 4)
	for _, c := range []struct {
		weights []float64
		held    []bool
		want    []float64
	}{
		{[]float64{0.1, 0.2, 0.3, 0.4}, []bool{true, true, true}, []float64{0.1, 0.2, 0.3, 0.4}},
		{[]float64{0.1, 0.2, 0.3, 0.4}, []bool{true, false, true}, []float64{0.125, 0, 0.375, 0.5}},
		{[]float64{0.1, 0.2, 0.3, 0.4}, []bool{false, false, false}, []float64{0, 0, 0, 1}},
		{[]float64{0.5, 0.5, 0, 0}, []bool{false, true, false}, []float64{0, 1, 0, 0}},
		{[]float64{0.001, 0.999, 0, 0}, []bool{true, false, true}, []float64{0.1, 0, 0, 0.9}},
		{[]float64{0, 1, 0, 0}, []bool{true, false, true}, []float64{0, 0, 0, 1}},
	} {
		got := slices.Clone(c.weights)
		trading.RestrictWeights(got, c.held, scratch)
		for i, w := range c.want {
			if math.Abs(got[i]-w) > 1e-12 {
				t.Errorf("%v of which %v may be held become %v, expected %v", c.weights, c.held, got, c.want)
				break
			}
		}
	}
	s := rng.New(2).Stream()
	for range 1000 {
		weights, held := make([]float64, 4), make([]bool, 3)
		sum := 0.0
		for i := range weights {
			weights[i] = math.Pow(s.Float64(), 8)
			sum += weights[i]
		}
		for i := range weights {
			weights[i] /= sum
		}
		for i := range held {
			held[i] = s.Bernoulli(0.5)
		}
		trading.RestrictWeights(weights, held, scratch)
		if err := trading.CheckWeights([]string{"A", "B", "C"}, weights); err != nil {
			t.Fatal(err)
		}
		for i, may := range held {
			if !may && weights[i] != 0 {
				t.Fatalf("%v, and %v may be held", weights, held)
			}
		}
	}
}

// TestRestrict: what may not be held is not bought, though it be ordered, and can be sold; target
// weights sell it. Without restrictions everything is as before.
func TestRestrict(t *testing.T) {
	m := &trading.Market{Assets: []string{"A", "B", "C"}, Features: []string{"zero"}, X: make([]float32, 3*60)}
	for day := range 60 {
		m.Dates = append(m.Dates, time.Date(2024, 1, 1+day, 15, 0, 0, 0, time.UTC))
		for i := range 3 {
			price := 10 + float64((day+i)%4)
			m.Open, m.Close, m.Tradable = append(m.Open, price), append(m.Close, price), append(m.Tradable, trading.Both)
		}
	}
	orders := open(t, m, config(nil))
	ts := envs.NewTimeStep(orders.Spec())
	if err := orders.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	step := func(a ...int64) {
		t.Helper()
		if err := orders.Step(tensor.Of(a, 3), ts); err != nil {
			t.Fatal(err)
		}
	}
	orders.Restrict([]bool{true, false, true}, ts)
	if m := ts.Mask.Bools(); m[3+trading.Buy] || !m[3+trading.Sell] || !m[3+trading.Hold] || !m[trading.Buy] {
		t.Errorf("the mask is %v", m)
	}
	step(trading.Buy, trading.Buy, trading.Hold)
	if p := orders.Positions(); p[0] == 0 || p[1] != 0 {
		t.Errorf("positions %v", p)
	}
	if ts.Mask.Bools()[3+trading.Buy] {
		t.Error("the mask of the next step does not leave the purchase out")
	}
	orders.Restrict([]bool{false, true, true}, ts)
	if m := ts.Mask.Bools(); m[trading.Buy] || !m[3+trading.Buy] {
		t.Errorf("the mask is %v", m)
	}
	before := orders.Positions()[0]
	step(trading.Sell, trading.Hold, trading.Hold)
	if p := orders.Positions(); p[0] >= before {
		t.Errorf("of %g shares none was sold: %v", before, p)
	}
	orders.Restrict(nil, ts)
	if m := ts.Mask.Bools(); slices.Contains(m, false) {
		t.Errorf("the mask is %v", m)
	}

	weights := open(t, m, config(func(c *trading.Config) { c.Actions, c.FeeRate = trading.Weights, 0 }))
	ts = envs.NewTimeStep(weights.Spec())
	if err := weights.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	equal := tensor.New(tensor.Float32, 4)
	for _, held := range [][]bool{nil, {true, false, true}, {false, false, false}, {false, true, false}, nil} {
		weights.Restrict(held, ts)
		if err := weights.Step(equal, ts); err != nil {
			t.Fatal(err)
		}
		for i, q := range weights.Positions() {
			if may := held == nil || held[i]; may != (q > 0) {
				t.Errorf("%v may be held, and positions are %v", held, weights.Positions())
				break
			}
		}
	}
	// An episode that begins, or is restored, has no restriction.
	weights.Restrict([]bool{false, false, false}, ts)
	if err := weights.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	if err := weights.Step(equal, ts); err != nil || weights.Positions()[0] == 0 {
		t.Errorf("%v, positions %v", err, weights.Positions())
	}
}
