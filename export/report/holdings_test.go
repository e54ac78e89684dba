package report

import (
	"math"
	"slices"
	"testing"
	"time"
)

func workdays(first string, n int) (all []time.Time) {
	d, err := time.Parse(time.DateOnly, first)
	if err != nil {
		panic(err)
	}
	for ; len(all) < n; d = d.AddDate(0, 0, 1) {
		if d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			all = append(all, d)
		}
	}
	return all
}

// TestHoldingsAndContributions follows two assets by hand: 10 shares of A at 10 that are sold at
// 12, then 5 shares of B at 20 that stay, worth 18 at the end; fees are 1 a trade.
func TestHoldingsAndContributions(t *testing.T) {
	dates := workdays("2020-01-01", 6)
	value := []float64{1000, 1009, 1019, 1018, 1012, 1007}
	held := []float64{0, 0, 110, 0, 120, 0, 0, 100, 0, 95, 0, 90} // money in A and B at each close
	w := make([]float64, len(held))
	for i, m := range held {
		w[i] = m / value[i/2]
	}
	d := Document{
		Title: "by hand", Assets: []string{"A", "B"}, Dates: dates, Benchmark: 1,
		Strategies: []Strategy{
			{Name: "agent", Role: Agent, Value: value, Weights: w, Trades: []Trade{
				// The ten shares of A have become twelve by a dividend.
				{dates[0], 0, Buy, 10, 10, 1, 1}, {dates[3], 0, Sell, 12, 10, 1, 1.2}, {dates[3], 1, Buy, 5, 20, 1, 0},
			}},
			{Name: "benchmark", Role: Baseline, Value: slices.Repeat([]float64{1000}, 6)},
		},
	}
	s, err := Summarise(d)
	if err != nil {
		t.Fatal(err)
	}
	agent := s.Strategies[0]
	if h := agent.Holdings; h == nil || h.Count != 2 || h.Open != 1 || h.Longest != 3 || h.Mean != 2.5 || h.Median != 2.5 {
		t.Errorf("holdings %+v", h)
	}
	// A: 120−1−100−1 = 18; B: 90−100−1 = −11.
	want := map[string]float64{"A": 18, "B": -11}
	sum := 0.0
	for _, a := range agent.Trades.ByAsset {
		if math.Abs(float64(a.Gain)-want[a.Asset]) > 1e-9 || math.Abs(float64(a.Contribution)-want[a.Asset]/1000) > 1e-12 {
			t.Errorf("%+v", a)
		}
		if a.Asset == "A" && math.Abs(a.Realised-18) > 1e-9 {
			t.Errorf("selling A has brought %g", a.Realised)
		}
		sum += float64(a.Contribution)
	}
	if len(agent.Trades.ByAsset) != 2 || math.Abs(sum-agent.Metrics.Get("total_return")) > 1e-12 {
		t.Errorf("the contributions add up to %g, the total return is %g", sum, agent.Metrics.Get("total_return"))
	}
	if s.Strategies[1].Holdings != nil || s.Strategies[1].Trades != nil {
		t.Errorf("the benchmark, of which nothing is known, has %+v", s.Strategies[1])
	}
}

// TestWeekly: weeks end on the last date before another begins, across years and gaps.
func TestWeekly(t *testing.T) {
	dates := workdays("2020-12-23", 14) // Wed 23 to Fri 25, Mon 28 to Fri 1, Mon 4 to Fri 8, Mon 11
	dates = slices.Delete(dates, 8, 9)  // Mon 4 is a holiday
	value := make([]float64, len(dates))
	for i := range value {
		value[i] = float64(100 + i)
	}
	got := weekly(dates, value)
	want := []float64{102.0/100 - 1, 107.0/102 - 1, 111.0/107 - 1, 112.0/111 - 1}
	if len(got) != len(want) {
		t.Fatalf("%v, expected %v", got, want)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("week %d returns %g, expected %g", i, got[i], want[i])
		}
	}
}

func TestRolling(t *testing.T) {
	r := []float64{1, 2, 3, 4, 5}
	y := rolling(r, 2, func(from, to int) float64 { return r[from] + r[to-1] })
	if len(y) != 6 || !math.IsNaN(y[0]) || !math.IsNaN(y[1]) || !slices.Equal(y[2:], []float64{3, 5, 7, 9}) {
		t.Errorf("%v", y)
	}
}
