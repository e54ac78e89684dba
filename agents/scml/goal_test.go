package scml

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func units(list ...int) (totals []world.Total) {
	for _, q := range list {
		totals = append(totals, world.Total{Quantity: q})
	}
	return totals
}

// TestDefault is what PenguinAgent works for: purchases up to seven units beside the stock, sales
// of what seven units and the stock come to, at most the lines; on today, tomorrow and the day
// after.
func TestDefault(t *testing.T) {
	cases := []struct {
		d         Day
		buy, sell [Buckets]int
	}{
		{Day{Lines: 10, Days: 50}, [Buckets]int{7, 7, 7, 0}, [Buckets]int{7, 7, 7, 0}},
		{Day{Lines: 10, Days: 50, Stock: 2}, [Buckets]int{5, 5, 5, 0}, [Buckets]int{9, 9, 9, 0}},
		{Day{Lines: 10, Days: 50, Stock: 30}, [Buckets]int{}, [Buckets]int{10, 10, 10, 0}},
		{Day{Lines: 10, Days: 50, Supplies: units(3, 9, 1), Sales: units(8, 2)}, [Buckets]int{4, 0, 6, 0}, [Buckets]int{0, 5, 7, 0}},
		{Day{Lines: 10, Days: 50, Today: 48}, [Buckets]int{7, 7, 0, 0}, [Buckets]int{7, 7, 0, 0}},
		{Day{Lines: 10, Days: 50, Today: 49}, [Buckets]int{7, 0, 0, 0}, [Buckets]int{7, 0, 0, 0}},
		{Day{Lines: 1, Days: 50}, [Buckets]int{}, [Buckets]int{}},
	}
	for i, c := range cases {
		g := DefaultGoal(&c.d)
		for b := range Buckets {
			if buy, sell := g.Targets[shield.Buy][b], g.Targets[shield.Sell][b]; buy.Quantity != c.buy[b] || sell.Quantity != c.sell[b] || c.buy[b] > 0 && (buy.Price != 0.5 || sell.Price != -1) {
				t.Errorf("case %d, bucket %d: %+v and %+v, expected %d and %d", i, b, buy, sell, c.buy[b], c.sell[b])
			}
		}
	}
}

// TestDecode: zeros are the default goal, what is beyond the range is cut, and no number is 0.
func TestDecode(t *testing.T) {
	d := &Day{Lines: 10, Days: 50, Stock: 2}
	for _, n := range []int{WholeGoal, FullGoal} {
		want := DefaultGoal(d)
		want.Whole = n == WholeGoal
		if got := DecodeGoal(make([]float32, n), d); got != want {
			t.Errorf("%d zeros: %+v, expected %+v", n, got, want)
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		vector    []float32
		buy, sell Target
	}{
		{[]float32{0.3, -0.25, 0.1, 0.5}, Target{8, 0}, Target{10, 0}},
		{[]float32{1, 1, 1, 1}, Target{15, 1}, Target{15, 1}},
		{[]float32{-1, -1, -1, -1}, Target{0, -1}, Target{0, -1}},
		{[]float32{7, 7, 7, 7}, Target{15, 1}, Target{15, 1}},
		{[]float32{nan, nan, nan, nan}, Target{5, 0.5}, Target{9, -1}},
		{[]float32{inf, -inf, -inf, inf}, Target{15, -1}, Target{0, 1}},
	} {
		g := DecodeGoal(c.vector, d)
		if buy, sell := g.Targets[shield.Buy][Today], g.Targets[shield.Sell][Today]; buy != c.buy || sell != c.sell || !g.Whole {
			t.Errorf("%v: %+v and %+v, expected %+v and %+v", c.vector, buy, sell, c.buy, c.sell)
		}
	}
}

// TestEncodeIsTheInverse of Decode, for every goal that vectors can express.
func TestEncodeIsTheInverse(t *testing.T) {
	s, goals := rng.New(3).Stream(), 0
	for range 2000 {
		d := &Day{Lines: 1 + s.IntN(20), Days: 50, Today: s.IntN(50), Stock: s.IntN(30), Supplies: units(s.IntN(10), s.IntN(10), s.IntN(10)), Sales: units(s.IntN(10), s.IntN(10), s.IntN(10))}
		vector := make([]float32, []int{WholeGoal, FullGoal}[s.IntN(2)])
		for i := range vector {
			vector[i] = float32(2*s.Float64() - 1)
		}
		g := DecodeGoal(vector, d)
		again := make([]float32, len(vector))
		g.Encode(again, d)
		got := DecodeGoal(again, d)
		for side := range 2 {
			for b := range Buckets {
				x, y := g.Targets[side][b], got.Targets[side][b]
				if x.Quantity != y.Quantity || math.Abs(x.Price-y.Price) > 1e-6 || x.Quantity < 0 || float64(x.Quantity) > MostUnits*float64(d.Lines) || math.Abs(x.Price) > 1 {
					t.Fatalf("%+v and %+v of %v and %v", x, y, vector, again)
				}
				goals++
			}
		}
	}
	if goals != 2000*2*Buckets {
		t.Errorf("%d targets", goals)
	}
}

// TestBucket: today, tomorrow, the two days after it, and later ones.
func TestBucket(t *testing.T) {
	g := Goal{}
	for ahead, want := range []int{Today, Tomorrow, Soon, Soon, Later, Later, Later} {
		if got := g.Bucket(ahead); got != want {
			t.Errorf("%d days ahead: bucket %d, expected %d", ahead, got, want)
		}
	}
	if g.Whole = true; g.Bucket(9) != Today {
		t.Error("a whole goal has one target")
	}
}

func TestGoalPrice(t *testing.T) {
	b := &negotiation.Box{Low: negotiation.Offer{Price: 14}, High: negotiation.Offer{Price: 17}}
	for p, want := range sorted.All(map[float64]int{-1: 14, 1: 17, 0: 16, 0.5: 16, -0.5: 15}) {
		if got := PriceFromRange(p, b); got != want {
			t.Errorf("%v: %d, expected %d", p, got, want)
		}
	}
}
