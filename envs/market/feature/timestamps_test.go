package feature

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// TestTimestamps compares the columns with numbers of Informer's time features (GluonTS).
func TestTimestamps(t *testing.T) {
	c := Config{Timestamps: true, Prices: "level", Volume: "level", Listed: true}
	f, err := New(c, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range f.Columns() {
		names = append(names, column.Name)
	}
	if !slices.Equal(names, []string{"month", "day", "weekday", "hour", "minute", "listed"}) {
		t.Fatalf("%v", names)
	}
	ran := 0
	for _, k := range []struct {
		at   time.Time
		want []float64
	}{
		{time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), []float64{-0.5, -0.5, -0.5, -0.5, -0.5, 1}}, // a Monday
		{time.Date(2023, 12, 31, 23, 59, 0, 0, time.UTC), []float64{0.5, 0.5, 0.5, 0.5, 0.5, 1}},
		{time.Date(2024, 3, 7, 9, 35, 0, 0, time.UTC), []float64{2.0/11 - 0.5, 6.0/30 - 0.5, 0, 9.0/23 - 0.5, 35.0/59 - 0.5, 1}},
	} {
		row := make([]float64, 6)
		if !f.Stream().Next(&bars.Bar{Time: k.at, Open: 1, High: 1, Low: 1, Close: 1}, nil, bars.Traded, row) || !slices.EqualFunc(row, k.want, func(x, y float64) bool { return math.Abs(x-y) < 1e-15 }) {
			t.Errorf("%s: %v, expected %v", k.at, row, k.want)
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("%d cases", ran)
	}
}
