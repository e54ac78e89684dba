package scml

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The buckets of days of delivery: today, tomorrow, the two days after it, and what follows.
const (
	Today = iota
	Tomorrow
	Soon
	Later
	Buckets
)

// firstOf is how many days ahead a bucket begins.
var firstOf = [Buckets + 1]int{0, 1, 2, 4, math.MaxInt}

// The sizes of goals as vectors: [Q_buy, P_buy, Q_sell, P_sell] of the whole day, or of each
// bucket.
const (
	WholeGoal = 4
	FullGoal  = 4 * Buckets
)

// MostUnits is how many units a goal may ask for, relative to the lines.
const MostUnits = 1.5

// Target is what is to be agreed on a day: so many units, at no worse a price, between −1, the
// lowest of the range, and 1 ([PriceInRange]).
type Target struct {
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

// Goal has the targets of a day, by side and bucket ([shield.Buy], [shield.Sell]). Whole goals have
// one target for all days of delivery, which is that of Today.
type Goal struct {
	Targets [2][Buckets]Target `json:"targets"`
	Whole   bool               `json:"whole,omitempty"`
}

// DecodeGoal reads a vector of [WholeGoal] or [FullGoal] numbers, which are cut to −1 … 1, relative to the
// default goal of a day, which zeros are: of each target how many units more, relative to the
// lines, and how much of the range the price is higher. Quantities are at most [MostUnits] of the lines.
func DecodeGoal(vector []float32, d *Day) Goal {
	g := DefaultGoal(d)
	g.Whole = len(vector) == WholeGoal
	for i := range len(vector) / 4 {
		for side := range 2 {
			t := &g.Targets[side][i]
			q, p := Cut(vector[4*i+2*side]), Cut(vector[4*i+2*side+1])
			units := math.Floor(float64(t.Quantity) + float64(q*float64(d.Lines)) + 0.5)
			t.Quantity = int(min(max(units, 0), float64(MostUnits*float64(d.Lines))))
			t.Price = min(max(t.Price+float64(2*p), -1), 1)
		}
	}
	return g
}

// Cut is x in [−1, 1], and 0 of what is no number.
func Cut(x float32) float64 {
	if x != x {
		return 0
	}
	return min(max(float64(x), -1), 1)
}

// Encode is the inverse of Decode as far as there is one.
func (g *Goal) Encode(vector []float32, d *Day) {
	from := DefaultGoal(d)
	for i := range len(vector) / 4 {
		for side := range 2 {
			t, o := g.Targets[side][i], from.Targets[side][i]
			vector[4*i+2*side] = float32(min(max(float64(t.Quantity-o.Quantity)/float64(d.Lines), -1), 1))
			vector[4*i+2*side+1] = float32((t.Price - o.Price) / 2)
		}
	}
}

// The settings of PenguinAgent.
const (
	target = 0.7 // share of the lines that are to produce
	asked  = 0.7 // share of the partners that are asked for today
	excess = 0.1 // share of the lines that may be agreed beyond what is needed
)

// buyAt is the price at which a default goal buys: about a fifth above the lowest of the range,
// which is what Penguin's counter offers come to.
const buyAt = 0.5

// DefaultGoal returns the goal that PenguinAgent works for: seven of ten lines busy on each of the next
// days. Sales are at any price.
func DefaultGoal(d *Day) Goal {
	var g Goal
	lines := float64(d.Lines)
	for bucket := range Later {
		ahead := firstOf[bucket]
		if d.Today+ahead >= d.Days {
			break
		}
		buy := int(float64(target*lines)) - d.Stock - quantity(d.Supplies, ahead)
		sell := min(d.Lines, int(float64(target*lines))+d.Stock) - quantity(d.Sales, ahead)
		g.Targets[shield.Buy][bucket] = Target{max(0, buy), buyAt}
		g.Targets[shield.Sell][bucket] = Target{max(0, sell), -1}
	}
	return g
}

// Bucket is that of a number of days ahead.
func (g *Goal) Bucket(ahead int) int {
	b := Today
	for !g.Whole && b < Later && ahead >= firstOf[b+1] {
		b++
	}
	return b
}

// PriceFromRange returns what a price of a goal is in money.
func PriceFromRange(p float64, b *negotiation.Box) int {
	low, high := float64(b.Low.Price), float64(b.High.Price)
	return int(math.Floor(low + (high-low)*(1+p)/2 + 0.5))
}

func quantity(list []world.Total, i int) int {
	if i < len(list) {
		return list[i].Quantity
	}
	return 0
}
