package opponents

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of SyncRandomStdAgent.
const (
	syncToday         = 0.85 // share of partners that are asked for today
	syncProductivity  = 0.3  // share of a line that a day ahead is taken to use
	syncConcentrate   = 0.25 // how often today's needs go to few
	syncConcentrate2  = 0.75 // how often later needs do
	syncFutureMargin  = 0.25 // share of the range of prices that is not for later deliveries
	syncMiddleMinimum = 3    // what a middle level needs at least
)

// syncRandom is SyncRandomStdAgent: it spreads its needs over partners by random numbers, once
// proposing and again whenever it answers.
type syncRandom struct {
	world.Quiet
	v *world.View
	s *Dice
	// quantity is today's share of each slot, later an offer for a later day.
	quantity []int
	later    []negotiation.Reply
	// needs are by side, and day of delivery; due are the days of which there are any, some of less
	// than a unit.
	needs [2][]int
	due   [2][]int
	order []int
	side  []int
	parts []int
	rest  []int
}

func newSyncRandom(s *Dice) world.Agent { return &syncRandom{s: s} }

func (a *syncRandom) Starts(v *world.View) {
	a.v = v
	a.needs = [2][]int{make([]int, v.Days()), make([]int, v.Days())}
}

func (a *syncRandom) Memory() any { return a.s }

// buys and sells are the sides.
const (
	buys  = 0
	sells = 1
)

// sideOf returns the side that a slot is on.
func sideOf(v *world.View, k int) int {
	if v.Buying(k) {
		return buys
	}
	return sells
}

// prices is a range of unit prices, and which way is better.
type prices struct {
	low, high float64
	selling   bool
}

// at returns the price to ask for after a share of the time: it concedes with the square of it, and
// for later days with the fourth power.
func (r prices) at(x float64, future bool) float64 {
	conceded := float64(x * x)
	if future {
		conceded *= conceded
	}
	if !r.selling {
		return clamp(math.Trunc(r.low+float64(conceded*(r.high-r.low))+0.5), r.low, r.high)
	}
	low := r.low
	if future {
		low += float64(syncFutureMargin * (r.high - r.low))
	}
	return clamp(math.Trunc(0.5+r.high-float64(conceded*(r.high-low))), low, r.high)
}

// good reports whether a price is at least as good as the one to ask for.
func (r prices) good(p, x float64, future bool) bool {
	const slack = 0.0001
	if r.selling {
		return p >= r.at(x, future)-slack
	}
	if future {
		r.high -= float64(syncFutureMargin * (r.high - r.low))
	}
	return p <= r.at(x, future)+slack
}

func clamp(x, low, high float64) float64 { return max(low, min(high, x)) }

// limits returns the prices at which making a unit does not lose money by itself.
func (a *syncRandom) limits(side int) prices {
	in, out := a.v.InputBox(), a.v.OutputBox()
	if side == sells {
		return prices{float64(max(out.Low.Price, in.High.Price)), float64(out.High.Price), true}
	}
	return prices{float64(in.Low.Price), float64(min(in.High.Price, out.Low.Price)), false}
}

// today writes what is asked of each slot in order, for today.
func (a *syncRandom) today(order []int) {
	a.quantity = append(a.quantity[:0], make([]int, a.v.Slots())...)
	a.rest = append(a.rest[:0], order...)
	a.s.shuffle(a.rest)
	a.rest = a.rest[:min(len(a.rest), max(1, int(float64(syncToday*float64(len(a.rest))))))]
	for side := range 2 {
		needs := a.v.Lines()
		switch {
		case a.v.Middle():
		case side == buys:
			needs = a.v.NeededSupplies()
		default:
			needs = a.v.NeededSales()
		}
		a.side = a.side[:0]
		for _, k := range a.rest {
			if sideOf(a.v, k) == side {
				a.side = append(a.side, k)
			}
		}
		if len(a.side) == 0 || needs < 1 {
			continue
		}
		o := spreading{most: a.v.OutputBox().High.Quantity, zeros: true, concentrated: a.s.uniform() < syncConcentrate, equal: a.s.uniform() > 0.5}
		a.share(o, needs)
		for i, k := range a.side {
			a.quantity[k] = a.parts[i]
		}
	}
}

// share distributes among the slots of side, into parts.
func (a *syncRandom) share(o spreading, q int) {
	a.s.shuffle(a.side)
	a.parts = append(a.parts[:0], make([]int, len(a.side))...)
	o.distribute(a.s, q, a.parts)
}

// ahead estimates what is needed of later days. At level 0 it reads the days of its input, which
// are those of day 0 for ever.
func (a *syncRandom) ahead() {
	v := a.v
	clear(a.needs[buys])
	clear(a.needs[sells])
	a.due = [2][]int{a.due[buys][:0], a.due[sells][:0]}
	box, s, n := v.InputBox(), v.Today(), v.Days()
	// The units that have arrived by a day, and those to be delivered from then on.
	first := max(box.Low.Time, s+1)
	arrived, owed := v.Supplies(s, first-1)+v.Stock(), v.Sales(first, n-1)
	for t := first; t <= min(box.High.Time, n-1); t++ {
		arrived += v.SuppliesAt(t)
		supplies, sales := float64(arrived), float64(owed)
		owed -= v.SalesAt(t)
		if v.First() {
			supplies += float64(v.Supply().Quantity * (t - s))
		}
		if v.Last() {
			sales += float64(v.Demand().Quantity * (n - t))
		}
		supplies, sales = max(float64(syncProductivity*float64(t-s)), supplies), max(float64(syncProductivity*float64(n-t)), sales)
		if sales > supplies && !v.First() {
			a.needs[buys][t] = int(sales - supplies)
			a.due[buys] = append(a.due[buys], t)
		}
		if supplies > sales && !v.Last() {
			a.needs[sells][t] = int(supplies - sales)
			a.due[sells] = append(a.due[sells], t)
		}
	}
}

// future writes offers for a later day to slots in order, and none to the others. Of all days only
// one is used for each side.
func (a *syncRandom) future(order []int) {
	a.later = append(a.later[:0], make([]negotiation.Reply, a.v.Slots())...)
	a.ahead()
	s, n := a.v.Today(), a.v.Days()
	for side := range 2 {
		r := a.limits(side)
		if a.side = a.side[:0]; r.low > r.high {
			continue
		}
		for _, k := range order {
			if sideOf(a.v, k) == side {
				a.side = append(a.side, k)
			}
		}
		if len(a.side) == 0 || len(a.due[side]) == 0 {
			continue
		}
		a.s.shuffle(a.due[side])
		t := a.due[side][0]
		a.share(spreading{most: a.v.OutputBox().High.Quantity, concentrated: a.s.uniform() < syncConcentrate2, equal: a.s.uniform() > 0.5}, a.needs[side][t])
		price := r.at(1-clamp(float64(t-s)/float64(n-s), 0, 1), true)
		for i, k := range a.side {
			if a.parts[i] > 0 {
				a.later[k] = negotiation.Propose(negotiation.Truncate(float64(a.parts[i]), float64(t), price))
			}
		}
	}
}

// spread answers the slots in order: with today's share at a price, or an offer for a later day, or
// by none, which breaks the negotiation.
func (a *syncRandom) spread(order []int, replies []negotiation.Reply, price func(k int) float64) {
	a.today(order)
	a.order = a.order[:0]
	for _, k := range order {
		if a.quantity[k] <= 0 {
			a.order = append(a.order, k)
		}
	}
	a.future(a.order)
	for _, k := range order {
		if replies[k] = a.later[k]; a.quantity[k] > 0 {
			replies[k] = negotiation.Propose(negotiation.Truncate(float64(a.quantity[k]), float64(a.v.Today()), price(k)))
		}
		replies[k].Given = true
	}
}

// all are the slots 0, 1, … in scratch.
func all(v *world.View, scratch []int) []int {
	scratch = scratch[:0]
	for k := range v.Slots() {
		scratch = append(scratch, k)
	}
	return scratch
}

// best returns the best price of a slot's negotiation.
func best(v *world.View, k int) float64 {
	b := v.Box(k)
	if v.Buying(k) {
		return float64(b.Low.Price)
	}
	return float64(b.High.Price)
}

func (a *syncRandom) FirstProposals(replies []negotiation.Reply) {
	var scratch [32]int
	a.spread(all(a.v, scratch[:]), replies, func(k int) float64 { return best(a.v, k) })
}

func (a *syncRandom) CounterAll(heard []int, replies []negotiation.Reply) {
	v := a.v
	s, n := v.Today(), v.Days()
	a.ahead()
	a.needs[buys][s], a.needs[sells][s] = v.NeededSupplies(), v.NeededSales()
	if v.Middle() {
		a.needs[buys][s], a.needs[sells][s] = max(syncMiddleMinimum, a.needs[buys][s]), max(syncMiddleMinimum, a.needs[sells][s])
	}
	var scratch [32]int
	open := scratch[:0]
	for side := range 2 {
		r := a.limits(side)
		for _, k := range heard {
			if sideOf(v, k) != side {
				continue
			}
			o := v.Offer(k)
			x, need := v.RelativeTime(k), 0
			if o.Time != s {
				x = float64(o.Time-s) / float64(n-s)
			}
			if o.Time >= s {
				need = a.needs[side][o.Time]
			}
			if r.low <= r.high && r.good(float64(o.Price), x, o.Time != s) && o.Quantity > 0 && o.Quantity < need {
				replies[k] = negotiation.Answer(negotiation.Accept)
				a.needs[side][o.Time] -= o.Quantity
			}
		}
	}
	for _, k := range heard {
		if !replies[k].Given {
			open = append(open, k)
		}
	}
	a.spread(open, replies, func(k int) float64 {
		b := v.Box(k)
		return prices{float64(b.Low.Price), float64(b.High.Price), !v.Buying(k)}.at(v.RelativeTime(k), true)
	})
}
