package opponents

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of PriceTrendStdAgent, as observed.
const (
	trendOver     = 3       // units, what it means to buy beyond what it owes on the last level
	trendMost     = 5       // units, what it buys at most beyond that
	trendConceded = 2. / 3. // share of the range of prices that it concedes
	trendRounds   = 5       // rounds that it takes for that
	trendOffers   = 12      // how many offers it chooses from
)

// priceTrend is PriceTrendStdAgent, a finalist of 2025, after what it was seen to do: it begins
// with all it needs at the best price, takes the offers that come closest to what it needs, and
// ends what is left. Middle levels keep a day's input, and concede some rounds for it.
type priceTrend struct {
	world.Quiet
	v      *world.View
	s      *Dice
	list   []int
	parts  []int
	chosen []int
	sets   subsets
}

func newPriceTrend(s *Dice) world.Agent { return &priceTrend{s: s} }

func (a *priceTrend) Starts(v *world.View) { a.v = v }

func (a *priceTrend) Memory() any { return a.s }

// sells is how many units it has that nobody has bought, for any day.
func (a *priceTrend) sells() int {
	return a.v.NeededSales() - a.v.Sales(a.v.Today()+1, a.v.Days()-1)
}

// buys is how many units it asks for. On the last level that is more than it owes, the more the
// more days are left.
func (a *priceTrend) buys() int {
	n := a.v.Lines()
	if a.v.Last() {
		return a.v.NeededSupplies() + n*(a.v.Days()-1-a.v.Today())/a.v.Days()
	}
	return n - a.v.Stock() - a.v.SuppliesAt(a.v.Today())
}

// side fills list with the slots of a side that run.
func (a *priceTrend) side(side int) {
	a.list = a.list[:0]
	for k := range a.v.Slots() {
		if m := a.v.Negotiation(k); sideOf(a.v, k) == side && m != nil && m.Status == negotiation.Running {
			a.list = append(a.list, k)
		}
	}
}

func (a *priceTrend) FirstProposals(replies []negotiation.Reply) {
	for side := range 2 {
		if a.side(side); len(a.list) == 0 {
			continue
		}
		total := a.buys()
		if side == sells {
			total = a.sells()
		}
		// A quantity above a day's production is offered for the days after.
		for day := a.v.Today(); day < a.v.Days() && len(a.list) > 0 && total > 0; day++ {
			q := min(total, a.v.Lines())
			if side == buys {
				q = total
			}
			total -= q
			a.parts = append(a.parts[:0], make([]int, len(a.list))...)
			spreading{}.distribute(a.s, q, a.parts)
			left := a.list[:0]
			for i, k := range a.list {
				if a.parts[i] > 0 && !replies[k].Given {
					replies[k] = negotiation.Propose(negotiation.Truncate(float64(a.parts[i]), float64(day), best(a.v, k)))
				} else {
					left = append(left, k)
				}
			}
			a.list = left
		}
	}
}

func (a *priceTrend) CounterAll(heard []int, replies []negotiation.Reply) {
	for side := range 2 {
		a.list = a.list[:0]
		for _, k := range heard {
			if sideOf(a.v, k) == side {
				a.list = append(a.list, k)
			}
		}
		switch {
		case len(a.list) == 0:
		case side == sells:
			need := a.sells()
			a.choose(need, min(need, 1), need)
		case a.v.Last():
			need := a.v.NeededSupplies()
			a.today()
			a.choose(need+trendOver, max(need, 1), need+trendOver+trendMost)
		default:
			a.concede(replies)
		}
		for _, k := range a.chosen {
			replies[k] = negotiation.Answer(negotiation.Accept)
		}
		a.chosen = a.chosen[:0]
	}
}

// today keeps the offers in list that are of today.
func (a *priceTrend) today() {
	a.list = slices.DeleteFunc(a.list, func(k int) bool { return a.v.Offer(k).Time != a.v.Today() })
}

// choose finds the offers in list whose total is between two numbers and comes closest to a third,
// the best prices where there are several.
func (a *priceTrend) choose(target, least, most int) {
	list := a.list[:min(len(a.list), trendOffers)]
	a.chosen = a.chosen[:0]
	off, value := math.MaxInt, 0
	a.sets.start(len(list))
	for a.sets.next() {
		total, money := 0, 0
		for _, i := range a.sets.chose {
			o := a.v.Offer(list[i])
			total += o.Quantity
			if money += o.Quantity * o.Price; a.v.Buying(list[i]) {
				money -= 2 * o.Quantity * o.Price
			}
		}
		d := total - target
		if d = max(d, -d); total < least || total > most || d > off || d == off && money <= value {
			continue
		}
		off, value = d, money
		a.chosen = a.chosen[:0]
		for _, i := range a.sets.chose {
			a.chosen = append(a.chosen, list[i])
		}
	}
}

// concede is how a middle level buys: it accepts what is not dearer than what it concedes, and
// otherwise asks for the partner's quantity, today.
func (a *priceTrend) concede(replies []negotiation.Reply) {
	need := a.buys()
	for _, k := range a.list {
		b, o := a.v.Box(k), a.v.Offer(k)
		conceded := float64(trendConceded * min(1, float64(a.v.Round(k)+1)/trendRounds))
		price := b.Low.Price + int(math.Ceil(float64(conceded*float64(b.High.Price-b.Low.Price))))
		switch {
		case need <= 0:
		case o.Price <= price && o.Quantity <= need:
			replies[k] = negotiation.Answer(negotiation.Accept)
			need -= o.Quantity
		default:
			replies[k] = negotiation.Propose(negotiation.Offer{Quantity: min(o.Quantity, need), Time: a.v.Today(), Price: price})
		}
	}
}
