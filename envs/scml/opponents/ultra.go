package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The settings of UltraSuperMiracleSoraFinalAgentZ.
const (
	ultraAhead = 7    // days
	ultraEarly = 0.15 // share of the days on which it buys
	ultraStock = 10   // units, beyond which it does not
	ultraDaily = 5    // units, half of the lines
)

// ultra is UltraSuperMiracleSoraFinalAgentZ as it is executed: its synchronous methods are never
// called. It offers the first day with a need at the best price, and becomes stricter with time.
type ultra struct {
	world.Quiet
	v *world.View
	// projected is what it thinks it will sell.
	projected int
}

func newUltra(rng.Key) world.Agent { return &ultra{} }

func (a *ultra) Starts(v *world.View) { a.v = v }

func (a *ultra) DayBegins() {
	average := 0.0
	if a.v.Today() == 0 {
		average = ultraDaily
	}
	n := float64(a.v.Days())
	full := max(0, 1-float64(a.v.Stock())/30)
	left := min(1, max(1, n-float64(a.v.Today()))/n)
	a.projected = max(1, int(float64(float64((average+3)*full)*left)))
}

func (a *ultra) needs(k, day int) int {
	if a.v.Buying(k) {
		return max(0, a.projected+ultraDaily-a.v.Supplies(day, a.v.Days()-1))
	}
	base, s := ultraDaily, a.v.Today()
	switch {
	case a.v.First():
		base = a.v.NeededSales()
	case a.v.Last():
		base = a.v.NeededSupplies()
	}
	base += ultraDaily*(day-s) - a.v.Sales(s, day)
	return min(base, min(a.v.Lines(), a.v.Stock()+a.v.SuppliesAt(s)))
}

// late reports whether it has stopped to buy.
func (a *ultra) late() bool { return a.v.Today() >= int(float64(ultraEarly*float64(a.v.Days()))) }

func (a *ultra) Propose(k int) (negotiation.Offer, bool) {
	if a.v.Buying(k) && a.late() {
		return negotiation.Offer{}, false
	}
	b, s := a.v.Box(k), a.v.Today()
	for day := b.Low.Time; day <= min(b.High.Time, s+ultraAhead); day++ {
		if need := a.needs(k, day); need > 0 {
			return negotiation.Truncate(float64(max(b.Low.Quantity, min(need, b.High.Quantity))), float64(day), best(a.v, k)), true
		}
	}
	return negotiation.Offer{}, false
}

func (a *ultra) Respond(k int, o negotiation.Offer) negotiation.Response {
	s, buying := a.v.Today(), a.v.Buying(k)
	if o.Time-s > ultraAhead || buying && a.late() && a.v.Stock() > ultraStock || o.Quantity > a.needs(k, o.Time) {
		return negotiation.Reject
	}
	x := a.v.RelativeTime(k)
	if o.Time > s {
		x *= 0.1
	}
	b := a.v.Box(k)
	limit := float64(b.Low.Price) + float64((1-x)*float64(b.High.Price-b.Low.Price))
	if p := float64(o.Price); buying && p <= limit || !buying && p >= limit {
		return negotiation.Accept
	}
	return negotiation.Reject
}
