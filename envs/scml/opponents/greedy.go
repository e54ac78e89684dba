package opponents

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of GreedyStdAgent that are the same for all.
const (
	greedyTarget = 0.75 // share of the lines that are to produce
	greedyFuture = 0.9  // how good a price for a later day must be, and where its range begins
)

// greedy is GreedyStdAgent: from the best price it concedes towards what it has seen to be
// acceptable.
type greedy struct {
	world.Quiet
	greedyMemory
	v    *world.View
	s    *Dice
	days []int
}

// greedyMemory is what greedy keeps. Prices are by side, and of partners by their index.
type greedyMemory struct {
	Random *Dice `json:"random"`
	// Thresholds are, by round, the share of the range of prices that is not conceded yet; the
	// slacks say how much worse than a remembered price may be.
	Concession    float64      `json:"concession"`
	Thresholds    []float64    `json:"thresholds"`
	SlackToday    float64      `json:"slack_today"`
	SlackPartner  float64      `json:"slack_partner"`
	SlackAgreed   float64      `json:"slack_agreed"`
	SlackRange    float64      `json:"slack_range"`
	Today         [2]float64   `json:"today"`
	PartnerToday  [2][]float64 `json:"partner_today"`
	PartnerAgreed [2][]float64 `json:"partner_agreed"`
}

func newGreedy(s *Dice) world.Agent {
	uniform := func(low, high float64) float64 { return low + float64((high-low)*s.uniform()) }
	return &greedy{s: s, greedyMemory: greedyMemory{
		Random: s, Concession: uniform(0.2, 1), SlackToday: uniform(0.05, 0.15), SlackPartner: uniform(0.05, 0.15), SlackAgreed: uniform(0.05, 0.15), SlackRange: uniform(0.05, 0.25),
	}}
}

// unset are the prices remembered before there is one.
var unset = [2]float64{buys: math.MaxFloat64, sells: 0}

func (a *greedy) Starts(v *world.View) {
	a.v = v
	partners := 0
	for _, list := range [][]int{v.Suppliers(), v.Consumers()} {
		for _, i := range list {
			partners = max(partners, i+1)
		}
	}
	rounds := v.Rounds()
	a.Thresholds = a.Thresholds[:0]
	for round := range rounds {
		a.Thresholds = append(a.Thresholds, math.Pow(float64(rounds-round-1)/float64(max(rounds-1, 1)), a.Concession))
	}
	for side := range 2 {
		a.PartnerToday[side], a.PartnerAgreed[side] = make([]float64, partners), make([]float64, partners)
		fill(a.PartnerAgreed[side], unset[side])
	}
}

func fill(list []float64, x float64) {
	for i := range list {
		list[i] = x
	}
}

func (a *greedy) Memory() any { return &a.greedyMemory }

func (a *greedy) DayBegins() {
	a.Today = unset
	for side := range 2 {
		fill(a.PartnerToday[side], unset[side])
	}
}

func (a *greedy) Agreed(c *world.Contract) {
	if c.Buyer == a.v.Index() {
		p := &a.PartnerAgreed[buys][c.Seller]
		*p = min(*p, float64(c.Price))
		return
	}
	p := &a.PartnerAgreed[sells][c.Buyer]
	*p = max(*p, float64(c.Price))
}

// needed is what is needed of today, on a slot's side.
func (a *greedy) needed(k int) float64 {
	switch {
	case a.v.Middle():
		return greedyTarget * float64(a.v.Lines())
	case a.v.Buying(k):
		return float64(a.v.NeededSupplies())
	}
	return float64(a.v.NeededSales())
}

// ahead is what is needed of a day; what is agreed for today does not count.
func (a *greedy) ahead(k, day int) float64 {
	agreed := 0
	switch {
	case day == a.v.Today():
	case a.v.Buying(k):
		agreed = a.v.SuppliesAt(day)
	default:
		agreed = a.v.SalesAt(day)
	}
	return greedyTarget * float64(a.v.Lines()-agreed)
}

// threshold is the share of the range that is not conceded yet.
func (a *greedy) threshold(k int) float64 { return a.Thresholds[a.v.Round(k)] }

// limits is the range of prices for a day. It may begin below what can be offered.
func (a *greedy) limits(k, day int) (low, high float64) {
	b := a.v.Box(k)
	low, high = float64(b.Low.Price), float64(b.High.Price)
	if day != a.v.Today() {
		low = math.Trunc(greedyFuture * high)
	}
	side, partner := sideOf(a.v, k), a.v.Partner(k)
	step, opponent, agreed := a.Today[side], a.PartnerToday[side][partner], a.PartnerAgreed[side][partner]
	if side == sells {
		low = min(float64(high*(1-a.SlackRange)), max(low, float64(step*(1-a.SlackToday)), float64(opponent*(1-a.SlackPartner)), float64(agreed*(1-a.SlackAgreed))))
	} else {
		high = max(float64(low*(1+a.SlackRange)), min(high, float64(step*(1+a.SlackToday)), float64(opponent*(1+a.SlackPartner)), float64(agreed*(1+a.SlackAgreed))))
	}
	return math.Trunc(low), math.Trunc(high)
}

func (a *greedy) Respond(k int, o negotiation.Offer) negotiation.Response {
	s, q := a.v.Today(), float64(o.Quantity)
	wanted := o.Time == s && q <= a.needed(k) || o.Time > s && q < a.ahead(k, o.Time)
	if !wanted {
		return negotiation.Reject
	}
	low, high := a.limits(k, o.Time)
	least := a.threshold(k)
	if o.Time > s {
		least = greedyFuture
	}
	side, price := sideOf(a.v, k), float64(o.Price)
	gained := price - low
	if side == buys {
		gained = high - price
	}
	if o.Time == s {
		if side == buys {
			a.Today[side] = min(a.Today[side], price)
		} else {
			a.Today[side] = max(a.Today[side], price)
		}
		a.PartnerToday[side][a.v.Partner(k)] = a.Today[side]
	}
	if gained >= float64(least*(high-low)) {
		return negotiation.Accept
	}
	return negotiation.Reject
}

func (a *greedy) Propose(k int) (negotiation.Offer, bool) {
	b, s, n := a.v.Box(k), a.v.Today(), a.v.Days()
	begun := float64(s) / float64(n)
	o := negotiation.Offer{Time: s}
	need := math.Trunc(a.needed(k))
	if need <= 0 {
		a.days = a.days[:0]
		for t := b.Low.Time; t <= b.High.Time; t++ {
			a.days = append(a.days, t)
		}
		a.s.shuffle(a.days)
		for _, t := range a.days {
			if need = a.ahead(k, t); need <= 0 {
				continue
			}
			most := min(max(min(need, float64(b.High.Quantity)), float64(b.Low.Quantity)), float64(a.v.Lines()*(t-s)))
			if most < 1 {
				continue
			}
			o = negotiation.Offer{Quantity: a.s.integer(max(1, int(0.5+float64(most*begun))), int(most)), Time: t}
			break
		}
	}
	if o.Quantity == 0 {
		// The need of the last day looked at is taken for that of today.
		most := min(max(min(need, float64(b.High.Quantity)), float64(b.Low.Quantity)), float64(a.v.Lines()))
		o.Quantity = a.s.integer(max(1, int(0.5+float64(most*begun))), int(most))
	}
	low, high := a.limits(k, o.Time)
	width := float64(a.threshold(k) * (high - low))
	if o.Price = int(low + width); a.v.Buying(k) {
		o.Price = int(high - width)
	}
	return o, true
}
