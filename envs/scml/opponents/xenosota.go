package opponents

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of XenoSotaAgent, of which some are as observed.
const (
	xenoAccepts  = 0.9   // utility of an offer that is accepted at once
	xenoEarly    = 0.745 // the same, of the purchases of the first days
	xenoPatience = 0.95  // what that is multiplied by for each call
	xenoDays     = 2     // days on which it buys ahead
	xenoDaily    = 7     // units that it means to agree on for a day
	xenoPartner  = 4     // units of one offer
	xenoAsked    = 6     // offers for today of which it takes the largest sum
	xenoAhead    = 3     // days ahead at most that it offers, today being 1
	xenoPrice    = 0.048 // how much better than what it takes for the middle its first price is
	xenoRange    = 0.1   // half width of what it takes for the range
)

// xenoSota is XenoSotaAgent, second of 2025, after its idea and what it was seen to do: each
// partner has a share of what is needed, and an offer a utility by how close it comes to that, how
// soon it is delivered and by its price. It buys a stock on the first two days.
type xenoSota struct {
	world.Quiet
	xenoMemory
	v     *world.View
	share []int
	same  []int
	best  []int
	sets  subsets
}

// xenoMemory is what XenoSotaAgent keeps.
type xenoMemory struct {
	Random *Dice `json:"random"`
	// Score is what was agreed with each partner, by index, and a little more at random.
	Score []float64 `json:"score"`
	// Calls is how often it was asked today.
	Calls int `json:"calls"`
}

func newXenoSota(s *Dice) world.Agent { return &xenoSota{xenoMemory: xenoMemory{Random: s}} }

func (a *xenoSota) Starts(v *world.View) {
	a.v = v
	a.Score = make([]float64, v.Agents())
	for i := range a.Score {
		a.Score[i] = 1 + a.Random.uniform()
	}
}

func (a *xenoSota) Memory() any { return &a.xenoMemory }

func (a *xenoSota) DayBegins() { a.Calls = 0 }

func (a *xenoSota) Agreed(c *world.Contract) {
	partner := c.Seller
	if partner == a.v.Index() {
		partner = c.Buyer
	}
	a.Score[partner] += float64(c.Quantity)
}

// early reports whether it buys ahead.
func (a *xenoSota) early(side int) bool { return side == buys && a.v.Today() < xenoDays }

// allocate writes the share of each slot: none of those that do not run.
func (a *xenoSota) allocate() {
	a.share = append(a.share[:0], make([]int, a.v.Slots())...)
	for side := range 2 {
		need, n, sum := min(a.v.NeededSales(), xenoDaily), 0, 0.0
		s := a.v.Today()
		switch {
		case side == sells && a.v.First():
		case side == sells:
			// Future stock is sold ahead.
			need = min(max(need, a.v.Stock()+a.v.SuppliesAt(s)), xenoDaily)
		case a.early(side):
			need = min(2*a.v.Lines(), xenoPartner*len(a.v.Suppliers()))
		default:
			need = min(a.v.NeededSupplies(), xenoDaily)
			if l := a.v.Lines(); a.v.Stock() > 3*l || float64(a.v.Stock()+a.v.Supplies(s, s+3)) >= float64(1.8*float64(l)) {
				need = 0
			}
		}
		for k := range a.share {
			if a.asks(k, side) {
				n++
				sum += a.Score[a.v.Partner(k)]
			}
		}
		for k := range a.share {
			if !a.asks(k, side) || side == buys && need <= 0 {
				continue
			}
			w := a.Score[a.v.Partner(k)] / sum
			if a.early(side) {
				w = 1 / float64(n)
			}
			a.share[k] = max(1, min(int(0.5+float64(w*float64(max(need, 0)))), xenoPartner))
		}
	}
}

// asks reports whether a slot is of a side and runs.
func (a *xenoSota) asks(k, side int) bool {
	m := a.v.Negotiation(k)
	return sideOf(a.v, k) == side && m != nil && m.Status == negotiation.Running
}

// middle is the price between the catalog's and the trading price of a slot's product, which it
// takes for the middle of the range. Where trading prices have fallen it asks for more than may be
// offered, and the negotiation breaks.
func (a *xenoSota) middle(k int) float64 {
	product := a.v.Level()
	if !a.v.Buying(k) {
		product++
	}
	return (float64(a.v.Catalog(product)) + a.v.TradingPrice(product)) / 2
}

// utility is that of an offer in a slot, between 0 and 1.
func (a *xenoSota) utility(k int, o negotiation.Offer) float64 {
	side, middle := sideOf(a.v, k), a.middle(k)
	price := (float64(o.Price)/middle - 1 + xenoRange) / (2 * xenoRange)
	if side == buys {
		price = 1 - price
	}
	price = max(0, min(price, 1))
	share, q := float64(a.share[k]), float64(o.Quantity)
	match := 0.0
	if share > 0 {
		match = min(share/q, q/share)
	}
	soon := 1 - float64(o.Time-a.v.Today())/float64(a.v.Days()-a.v.Today())
	if a.early(side) {
		// Less than the share is as good as the share.
		return float64(0.3*min(1, share/q)) + float64(0.4*soon) + float64(0.2*price)
	}
	return float64(0.6*match) + float64(0.2*soon) + float64(0.2*price)
}

// required is the utility of an offer that is accepted.
func (a *xenoSota) required(side int) float64 {
	u := xenoAccepts
	if a.early(side) {
		u = xenoEarly
	}
	return float64(u * math.Pow(xenoPatience, float64(a.Calls)))
}

func (a *xenoSota) FirstProposals(replies []negotiation.Reply) {
	a.allocate()
	for k := range replies {
		if a.share[k] == 0 {
			continue
		}
		b, s := a.v.Box(k), a.v.Today()
		better := 1 + xenoPrice
		if a.v.Buying(k) {
			better = 1 - xenoPrice
		}
		replies[k] = negotiation.Propose(negotiation.Offer{Quantity: a.share[k], Time: min(s+1, b.High.Time), Price: int(better * a.middle(k))})
	}
	a.Calls++
}

func (a *xenoSota) CounterAll(heard []int, replies []negotiation.Reply) {
	a.allocate()
	s := a.v.Today()
	a.take(heard, replies)
	agreed := [2]int{}
	for _, k := range heard {
		side, o := sideOf(a.v, k), a.v.Offer(k)
		if replies[k].Given || a.share[k] == 0 {
			continue
		}
		booked := a.v.SalesAt(o.Time)
		if side == buys {
			booked = 0
		}
		if a.utility(k, o) >= a.required(side) && (side == buys || booked+agreed[side]+o.Quantity <= xenoDaily && o.Quantity <= xenoPartner) {
			replies[k] = negotiation.Answer(negotiation.Accept)
			agreed[side] += o.Quantity
			continue
		}
		replies[k] = negotiation.Propose(a.counter(k, o, s))
	}
	a.Calls++
}

// take accepts, once the first days are over, those requests for today that come to the most that
// can be made.
func (a *xenoSota) take(heard []int, replies []negotiation.Reply) {
	s := a.v.Today()
	a.same = a.same[:0]
	for _, k := range heard {
		if sideOf(a.v, k) == sells && a.v.Offer(k).Time == s {
			a.same = append(a.same, k)
		}
	}
	if s < xenoDays || len(a.same) > xenoAsked {
		return
	}
	most, room := 0, a.v.Lines()-a.v.SalesAt(s)
	a.best = a.best[:0]
	a.sets.start(len(a.same))
	for a.sets.next() {
		total := 0
		for _, i := range a.sets.chose {
			total += a.v.Offer(a.same[i]).Quantity
		}
		if total > most && total <= room {
			most = total
			a.best = append(a.best[:0], a.sets.chose...)
		}
	}
	for _, i := range a.best {
		replies[a.same[i]] = negotiation.Answer(negotiation.Accept)
	}
}

// counter is the offer of a slot's share that is closest to the partner's and has the utility that
// is required, or the one with the most if there is none.
func (a *xenoSota) counter(k int, theirs negotiation.Offer, s int) negotiation.Offer {
	b, need := a.v.Box(k), a.required(sideOf(a.v, k))
	width := float64(max(b.High.Price-b.Low.Price, 1))
	var chosen negotiation.Offer
	far, most := math.MaxFloat64, -1.0
	for t := s; t < s+xenoAhead && t <= b.High.Time; t++ {
		for p := b.Low.Price; p <= b.High.Price; p++ {
			o := negotiation.Offer{Quantity: a.share[k], Time: t, Price: p}
			u := a.utility(k, o)
			d := math.Abs(float64(p-theirs.Price))/width + math.Abs(float64(t-theirs.Time))/float64(a.v.Rules().Horizon)
			if u >= need && d < far || far == math.MaxFloat64 && u < need && u > most {
				chosen, most = o, u
				if u >= need {
					far = d
				}
			}
		}
	}
	return chosen
}
