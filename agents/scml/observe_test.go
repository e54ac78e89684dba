package scml

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// morning is day 3 of 10 at the second of three levels.
func morning() Day {
	return Day{
		Level: 1, Levels: 3, Lines: 10, Today: 3, Days: 10, Stock: 4, Balance: 1200, Initial: 1000, Cost: 2, Storage: 0.03, Shortfall: 0.6,
		In: Prices{Catalog: 16, Trading: 20}, Out: Prices{Catalog: 32, Trading: 40}, Seen: 4,
		Supplies: []world.Total{{Quantity: 5, Money: 110}, {}, {Quantity: 20, Money: 360}}, Sales: []world.Total{{Quantity: 12, Money: 480}, {Quantity: 3, Money: 150}},
		Buys: true, Suppliers: 4, Consumers: 5, Competitors: 6, Horizon: 2,
	}
}

func equal(t *testing.T, what string, got []float32, want ...float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, expected %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if got[i] != float32(want[i]) {
			t.Errorf("%s[%d] is %v, expected %v", what, i, got[i], want[i])
		}
	}
}

// TestDay writes each number in its place.
func TestDay(t *testing.T) {
	d := morning()
	static, temporal, role := make([]float32, StaticFeatures), make([]float32, 8*TemporalFeatures), make([]float32, RoleFeatures)
	for i := range temporal {
		temporal[i] = 99 // what was there is overwritten
	}
	d.Write(static, temporal, role)
	equal(t, "static", static, 1.2, 0.4, 0.05, 0.3, 0.6, 0.3, 0.035, 1.25, 1.25, 0, 0, 0.45, 4.0/6, 5.0/6, 1, 0.5)
	equal(t, "role", role, 1, 0)
	days := [][]float64{
		// Of 9 units, all are made and 3 are missing, since 12 are owed.
		{0.5, 1.2, 0.1, 0, 0, 0, 0.4, 0.3, 1, 1},
		// Stock never shrinks: officially the 4 are there again.
		{0, 0.3, 0, 0.25, 0, 0, 0.4, 0, 1, 1},
		{2, 0, -0.1, 0, 0, 0, 0.4, 0, 1, 1},
		{0, 0, 0, 0, 0, 0, 2.4, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 2.4, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 2.4, 0, 1, 0},
		{0, 0, 0, 0, 0, 0, 2.4, 0, 1, 0},
		// Day 10 is none.
		{0, 0, 0, 0, 0, 0, 2.4, 0, 0, 0},
	}
	for i, want := range days {
		equal(t, "temporal", temporal[i*TemporalFeatures:(i+1)*TemporalFeatures], want...)
	}
	if n := d.Missing(); n != 3 {
		t.Errorf("%d missing, expected 3", n)
	}
	// Where stock shrinks, what was made is gone: one is left for the three of tomorrow.
	d.StockShrinks, d.Sales[0].Quantity = true, 8
	if n := d.Missing(); n != 2 {
		t.Errorf("%d missing where stock shrinks, expected 2", n)
	}
}

// TestExogenous: today's are known, those of later days are taken to be the mean of those seen,
// rounded down, and no more than the lines; there are none after the last day.
func TestExogenous(t *testing.T) {
	d := morning()
	d.Supplies, d.Sales = nil, nil
	d.Supply, d.Demand, d.Outside = world.Total{Quantity: 13}, world.Total{Quantity: 2}, [2]int{27, 70}
	temporal := make([]float32, 8*TemporalFeatures)
	d.Write(make([]float32, StaticFeatures), temporal, make([]float32, RoleFeatures))
	for i, want := range [][2]float64{{1.3, 0.2}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0.6, 1}, {0, 0}} {
		equal(t, "exogenous", temporal[i*TemporalFeatures+4:i*TemporalFeatures+6], want[0], want[1])
	}
	d.Seen = 0
	d.Write(make([]float32, StaticFeatures), temporal, make([]float32, RoleFeatures))
	equal(t, "nothing was seen", temporal[TemporalFeatures+4:TemporalFeatures+6], 0, 0)
}

// TestThread writes each number in its place, with an offer and without.
func TestThread(t *testing.T) {
	o := negotiation.Offer{Quantity: 6, Time: 5, Price: 15}
	full := ThreadView{
		Buying: true, Round: 6, Rounds: 20, Today: 3, Lines: 10, Low: 14, High: 18, Heard: true, Offer: o, Base: negotiation.Answer(negotiation.Accept), Counter: negotiation.Propose(negotiation.Offer{Quantity: 3, Time: 3, Price: 18}),
		Safe: 4, Open: 5, Later: 12, Limit: -0.5, Partners: 3, Agreed: 1, Met: 2,
		History: []Move{{Own: true, Round: 5, Offer: negotiation.Offer{Quantity: 1, Time: 13, Price: 14}}, {Round: 6, Offer: o}},
	}
	thread, history := make([]float32, ThreadFeatures), make([]float32, Moves*MoveFeatures)
	for i := range history {
		history[i] = 99
	}
	full.Write(thread, history)
	equal(t, "thread", thread, 1, 7.0/21, 1, 0.6, 0.2, -0.5, 1, 0, 1, 0.3, 0, 1, 0.5, 1.2, 0.4, -0.5, 0.5, 0.5)
	equal(t, "history", history[18*MoveFeatures:], 1, 1, 0.1, 1, -1, 6.0/21, 1, 0, 0.6, 0.2, -0.5, 7.0/21)
	if slices.ContainsFunc(history[:18*MoveFeatures], func(x float32) bool { return x != 0 }) {
		t.Errorf("%v before the first offer", history[:18*MoveFeatures])
	}
	// The latest twenty of thirty offers are kept.
	full.History = nil
	for round := range 30 {
		full.History = append(full.History, Move{Round: round, Offer: o})
	}
	full.Write(thread, history)
	for i := range Moves {
		equal(t, "round", history[i*MoveFeatures+5:(i+1)*MoveFeatures], float64(10+i+1)/21)
	}
	first := ThreadView{Rounds: 20, Today: 3, Lines: 10, Low: 14, High: 18, Offer: o, Base: negotiation.Answer(negotiation.End)}
	first.Write(thread, history)
	equal(t, "first", thread, 0, 1.0/21, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5)
}

func TestPrice(t *testing.T) {
	for _, c := range []struct {
		price     float64
		low, high int
		want      float64
	}{{14, 14, 18, -1}, {18, 14, 18, 1}, {16, 14, 18, 0}, {20, 14, 18, 2}, {7, 7, 7, 0}, {9, 7, 7, 0}, {3, 9, 4, 0}} {
		if got := PriceInRange(c.price, c.low, c.high); got != c.want || math.IsNaN(got) {
			t.Errorf("%v in %d … %d: %v, expected %v", c.price, c.low, c.high, got, c.want)
		}
	}
}
