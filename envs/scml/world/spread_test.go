package world

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestSpread: shares are not negative and add up but for rounding, and exactly where they are
// unpredictable.
func TestSpread(t *testing.T) {
	s := rng.New(5).Stream()
	cases := 0
	for _, n := range []int{1, 2, 5, 8} {
		for _, predictability := range []float64{0, 0.005, 0.2, 0.7, 1} {
			quantities := make([]int, 60)
			for i := range quantities {
				quantities[i] = s.IntN(80)
			}
			for day, row := range spread(s, quantities, predictability, n) {
				cases++
				sum := 0
				for _, q := range row {
					if q < 0 {
						t.Fatalf("%d to one of %d", q, n)
					}
					sum += q
				}
				off := sum - quantities[day]
				if predictability < 0.01 && off != 0 || off <= -2*n || off >= 2*n {
					t.Errorf("n %d, predictability %v, day %d: the sum is off by %d", n, predictability, day, off)
				}
			}
		}
	}
	if cases != 1200 {
		t.Errorf("%d cases", cases)
	}
	for _, row := range spread(s, make([]int, 3), 0.5, 2) {
		if row[0] != 0 || row[1] != 0 {
			t.Errorf("%v of nothing", row)
		}
	}
}

// TestCatalog: 45 units at cost 4 with a margin of 15 % sell for 17, and then at cost 8 with 12 %
// for 28.
func TestCatalog(t *testing.T) {
	g := StandardLeague()
	g.Cash = Range{2, 2}
	c := &Config{Days: 4, Catalog: make([]int, 3), Factories: []Factory{{Level: 0, Cost: 4}, {Level: 1, Cost: 8}}}
	supplies := [][]int{{45}, {45}, {45}, {45}}
	s := rng.New(1).Stream()
	g.Margin = Range{0.15, 0.15}
	one := &Config{Days: 4, Catalog: make([]int, 2), Factories: c.Factories[:1]}
	if g.price(s, one, []int{1}, supplies); one.Catalog[0] != 10 || one.Catalog[1] != 17 {
		t.Errorf("catalog %v", one.Catalog)
	}
	// 4 days of 630, twice the money.
	if one.Factories[0].Balance != 4*630*2 {
		t.Errorf("balance %v", one.Factories[0].Balance)
	}
	// The second level by hand, with the margin of the first.
	last := g.price(s, c, []int{1, 1}, supplies)
	if want := math.Ceil(math.Ceil(1085*1.15) / 45); c.Catalog[2] != int(want) || last[3] != want {
		t.Errorf("catalog %v, last %v, expected %v", c.Catalog, last, want)
	}
	if got := math.Ceil(math.Ceil(1085*1.12) / 45); got != 28 {
		t.Errorf("%v", got)
	}
}
