package opponents

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
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
	v *world.View
	s *rng.Stream
	// concession is the exponent; the slacks say how much worse than a remembered price may be.
	concession                  float64
	slackToday, slackPartner    float64
	slackAgreed, slackRange     float64
	today                       [2]float64 // best price by side, of the day
	partnerToday, partnerAgreed [2][]float64
	days                        []int
}

func newGreedy(key rng.Key) world.Agent {
	s := key.Stream()
	uniform := func(low, high float64) float64 { return low + float64((high-low)*s.Float64()) }
	return &greedy{
		s: s, concession: uniform(0.2, 1), slackToday: uniform(0.05, 0.15), slackPartner: uniform(0.05, 0.15), slackAgreed: uniform(0.05, 0.15), slackRange: uniform(0.05, 0.25),
	}
}

// unset are the prices remembered before there is one.
var unset = [2]float64{buys: math.Inf(1), sells: 0}

func (a *greedy) Starts(v *world.View) {
	a.v = v
	partners := 0
	for _, list := range [][]int{v.Suppliers(), v.Consumers()} {
		for _, i := range list {
			partners = max(partners, i+1)
		}
	}
	for side := range 2 {
		a.partnerToday[side], a.partnerAgreed[side] = make([]float64, partners), make([]float64, partners)
		fill(a.partnerAgreed[side], unset[side])
	}
}

func fill(list []float64, x float64) {
	for i := range list {
		list[i] = x
	}
}

func (a *greedy) DayBegins() {
	a.today = unset
	for side := range 2 {
		fill(a.partnerToday[side], unset[side])
	}
}

func (a *greedy) Agreed(c *world.Contract) {
	if c.Buyer == a.v.Index() {
		p := &a.partnerAgreed[buys][c.Seller]
		*p = min(*p, float64(c.Price))
		return
	}
	p := &a.partnerAgreed[sells][c.Buyer]
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
func (a *greedy) threshold(k int) float64 {
	rounds := a.v.Rounds()
	return math.Pow(float64(rounds-a.v.Round(k)-1)/float64(rounds-1), a.concession)
}

// limits is the range of prices for a day. It may begin below what can be offered.
func (a *greedy) limits(k, day int) (low, high float64) {
	b := a.v.Box(k)
	low, high = float64(b.Low.Price), float64(b.High.Price)
	if day != a.v.Today() {
		low = math.Trunc(greedyFuture * high)
	}
	side, partner := sideOf(a.v, k), a.v.Partner(k)
	step, opponent, agreed := a.today[side], a.partnerToday[side][partner], a.partnerAgreed[side][partner]
	if side == sells {
		low = min(float64(high*(1-a.slackRange)), max(low, float64(step*(1-a.slackToday)), float64(opponent*(1-a.slackPartner)), float64(agreed*(1-a.slackAgreed))))
	} else {
		high = max(float64(low*(1+a.slackRange)), min(high, float64(step*(1+a.slackToday)), float64(opponent*(1+a.slackPartner)), float64(agreed*(1+a.slackAgreed))))
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
			a.today[side] = min(a.today[side], price)
		} else {
			a.today[side] = max(a.today[side], price)
		}
		a.partnerToday[side][a.v.Partner(k)] = a.today[side]
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
		shuffle(a.s, a.days)
		for _, t := range a.days {
			if need = a.ahead(k, t); need <= 0 {
				continue
			}
			most := min(max(min(need, float64(b.High.Quantity)), float64(b.Low.Quantity)), float64(a.v.Lines()*(t-s)))
			if most < 1 {
				continue
			}
			o = negotiation.Offer{Quantity: integer(a.s, max(1, int(0.5+float64(most*begun))), int(most)), Time: t}
			break
		}
	}
	if o.Quantity == 0 {
		// What the last day looked at needs is taken for what today does.
		most := min(max(min(need, float64(b.High.Quantity)), float64(b.Low.Quantity)), float64(a.v.Lines()))
		o.Quantity = integer(a.s, max(1, int(0.5+float64(most*begun))), int(most))
	}
	low, high := a.limits(k, o.Time)
	width := float64(a.threshold(k) * (high - low))
	if o.Price = int(low + width); a.v.Buying(k) {
		o.Price = int(high - width)
	}
	return o, true
}
