package opponents

import (
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of PenguinAgent.
const (
	penguinToday   = 0.7 // share of partners that are asked for today
	penguinTarget  = 0.7 // share of the lines that are to produce
	penguinSurplus = 0.1 // share of the lines that may be agreed beyond what is needed
)

// penguin is PenguinAgent, which won in 2024. It means to make seven units a day. It accepts the
// subset of today's offers that comes closest to what it needs, and later deliveries that fit.
type penguin struct {
	world.Quiet
	v *world.View
	s *Dice
	// quantity is today's share of each slot.
	quantity  []int
	list      []int
	parts     []int
	same      []int
	rest      []int
	promised  []int
	chosen    []int
	sets      subsets
	decisions decisions
}

// decisions are what the agents of penguin's kind differ in. Sides are buys and sells.
type decisions interface {
	// asked picks those partners of a side that are asked for needs units today, from list, in
	// place.
	asked(side, needs int, list []int) []int
	// ordered puts partners in the order in which later days are offered to them, in place; fewer
	// when first proposals are made.
	ordered(list []int, first bool) []int
	// needs is what offers for today are chosen for.
	needs(side int) int
	// block returns the day whose sales guard a block of later offers for a day.
	block(day, i int) int
	// close returns how far a total is from the needs in the eyes of the agent, for a subset.
	weigh(off int, set []int) float64
	// surplus is how much more than needed may be accepted.
	surplus() float64
	// counter is the price of a counter offer.
	counter(k int) float64
	// learns receives the outcome of the offers of today: those that were chosen, of all.
	learns(chosen, all []int)
	// agreed is called when an offer for a later day is accepted.
	agreed(k int)
}

func newPenguin(s *Dice) world.Agent {
	a := &penguin{s: s}
	a.decisions = penguinDecisions{a}
	return a
}

func (a *penguin) Starts(v *world.View) {
	a.v = v
	a.promised = make([]int, v.Days())
}

func (a *penguin) Memory() any { return a.s }

// need is what is needed of a day, before it is made whole; purchases may be negative.
func (a *penguin) need(side, day int) float64 {
	target, stock := float64(penguinTarget*float64(a.v.Lines())), float64(a.v.Stock())
	if side == buys {
		return target - stock - float64(a.v.SuppliesAt(day))
	}
	return max(0, min(float64(a.v.Lines()), target+stock)-float64(a.v.SalesAt(day)))
}

// deal shares out q units among n parts: one to each at least, if there are enough.
func (a *penguin) deal(q, n int) []int {
	a.parts = append(a.parts[:0], make([]int, n)...)
	spreading{}.distribute(a.s, q, a.parts)
	return a.parts
}

// ofSide returns the slots of a side, in order, in scratch.
func (a *penguin) ofSide(side int, order []int) []int {
	a.list = a.list[:0]
	for _, k := range order {
		if sideOf(a.v, k) == side {
			a.list = append(a.list, k)
		}
	}
	return a.list
}

// today writes the share of each slot in order; slots of ended negotiations get theirs, too.
func (a *penguin) today(side int, order []int) {
	s := a.v.Today()
	for _, k := range order {
		a.quantity[k] = 0
	}
	needs := int(a.need(side, s))
	if needs <= 0 || side == sells && a.v.SalesAt(s) > a.v.Lines() {
		return
	}
	list := a.ofSide(side, order)
	if len(list) == 0 {
		return
	}
	list = a.decisions.asked(side, needs, list)
	for i, q := range a.deal(needs, len(list)) {
		a.quantity[list[i]] = q
	}
}

// future offers later days to slots of a side: tomorrow to the first half, the day after to the
// next, and one more day to the rest.
func (a *penguin) future(side int, order []int, first bool, replies []negotiation.Reply) {
	list := a.decisions.ordered(a.ofSide(side, order), first)
	n := len(list)
	cuts := [...]int{0, n * 5 / 10, n * 8 / 10, n}
	for i := range 3 {
		block, day := list[cuts[i]:cuts[i+1]], a.v.Today()+1+i
		if day >= a.v.Days() || side == sells && a.v.SalesAt(a.decisions.block(day, i)) > a.v.Lines() {
			continue
		}
		q := int(a.need(side, day) / 3)
		if q <= 0 || len(block) == 0 {
			continue
		}
		for j, q := range a.deal(q, len(block)) {
			if q > 0 {
				replies[block[j]] = negotiation.Propose(negotiation.Truncate(float64(q), float64(day), best(a.v, block[j])))
			}
		}
	}
}

// offer answers the slots in order, of one side: today's share at a price, or a later day, or
// nothing.
func (a *penguin) offer(side int, order []int, first bool, price func(k int) float64, replies []negotiation.Reply) {
	a.today(side, order)
	var scratch [32]int
	later := scratch[:0]
	for _, k := range order {
		if q := a.quantity[k]; q > 0 {
			replies[k] = negotiation.Propose(negotiation.Truncate(float64(q), float64(a.v.Today()), price(k)))
		} else {
			later = append(later, k)
		}
	}
	a.future(side, later, first, replies)
}

func (a *penguin) FirstProposals(replies []negotiation.Reply) {
	a.quantity = append(a.quantity[:0], make([]int, len(replies))...)
	a.rest = all(a.v, a.rest)
	for side := range 2 {
		var scratch [32]int
		order := append(scratch[:0], a.ofSide(side, a.rest)...)
		a.offer(side, order, true, a.best, replies)
	}
}

func (a *penguin) best(k int) float64 { return best(a.v, k) }

func (a *penguin) CounterAll(heard []int, replies []negotiation.Reply) {
	a.quantity = append(a.quantity[:0], make([]int, len(replies))...)
	for side := range 2 {
		a.answer(side, heard, replies)
	}
}

// answer answers the offers of a side.
func (a *penguin) answer(side int, heard []int, replies []negotiation.Reply) {
	s := a.v.Today()
	clear(a.promised)
	a.same = a.same[:0]
	// Partners are looked at in their own order, not in that in which they were heard.
	for k := range replies {
		if sideOf(a.v, k) != side || !slices.Contains(heard, k) {
			continue
		}
		o := a.v.Offer(k)
		if o.Time == s {
			a.same = append(a.same, k)
			continue
		}
		if o.Time > s && o.Quantity+a.promised[o.Time] <= int(a.need(side, o.Time)) {
			replies[k] = negotiation.Answer(negotiation.Accept)
			a.promised[o.Time] += o.Quantity
			a.decisions.agreed(k)
		}
	}
	needs := a.decisions.needs(side)
	if needs > 0 && a.choose(needs) {
		for _, k := range a.chosen {
			replies[k] = negotiation.Answer(negotiation.Accept)
		}
		a.decisions.learns(a.chosen, a.same)
		a.rest = a.rest[:0]
		for _, k := range a.same {
			if !replies[k].Given {
				a.rest = append(a.rest, k)
			}
		}
		a.future(side, a.rest, false, replies)
		return
	}
	a.rest = a.rest[:0]
	for k := range replies {
		if sideOf(a.v, k) == side && !replies[k].Given {
			a.rest = append(a.rest, k)
		}
	}
	a.offer(side, a.rest, false, a.decisions.counter, replies)
}

// choose finds the slots whose offers for today are accepted together: those of the smallest
// surplus if it is small, or else of the smallest deficit. Where there is no deficit, which is if
// every single offer is too large, it takes all of them.
func (a *penguin) choose(needs int) bool {
	if len(a.same) == 0 {
		return false
	}
	const none = -1
	plus, minus := float64(none), float64(none)
	var over, under [32]int
	overs, unders := over[:0], under[:0]
	a.sets.start(len(a.same))
	for a.sets.next() {
		total := 0
		for _, i := range a.sets.chose {
			total += a.v.Offer(a.same[i]).Quantity
		}
		if total == 0 {
			continue
		}
		if off := total - needs; off >= 0 {
			if w := a.decisions.weigh(off, a.sets.chose); plus == none || w < plus {
				plus, overs = w, append(over[:0], a.sets.chose...)
			}
		} else if w := a.decisions.weigh(-off, a.sets.chose); minus == none || w < minus {
			minus, unders = w, append(under[:0], a.sets.chose...)
		}
	}
	a.chosen = a.chosen[:0]
	pick := overs
	if plus == none || plus > a.decisions.surplus() {
		if pick = unders; minus == none {
			a.chosen = append(a.chosen, a.same...)
			return true
		}
	}
	for _, i := range pick {
		a.chosen = append(a.chosen, a.same[i])
	}
	return true
}

// penguinDecisions are PenguinAgent's own.
type penguinDecisions struct{ *penguin }

func (d penguinDecisions) asked(_, _ int, list []int) []int {
	d.s.shuffle(list)
	return list[:max(1, int(float64(penguinToday*float64(len(list)))))]
}

func (d penguinDecisions) ordered(list []int, _ bool) []int { return list }

// needs of sales are 0 from day 2 on: the number that guards them is taken for a day.
func (d penguinDecisions) needs(side int) int {
	s := d.v.Today()
	if side == sells {
		guard := 0
		if d.v.SalesAt(s) <= d.v.Lines() {
			guard = 1
		}
		if d.v.SalesAt(guard) <= 0 {
			return 0
		}
	}
	return int(d.need(side, s))
}

// block of the last day is guarded by the day before it.
func (d penguinDecisions) block(day, i int) int {
	if i == 2 {
		return day - 1
	}
	return day
}

func (d penguinDecisions) weigh(off int, _ []int) float64 { return float64(off) }

func (d penguinDecisions) surplus() float64 {
	return max(1, float64(penguinSurplus*float64(d.v.Lines())))
}

// counter asks for the highest price when buying that is not above a fifth more than the lowest.
func (d penguinDecisions) counter(k int) float64 {
	b := d.v.Box(k)
	low, high := float64(b.Low.Price), float64(b.High.Price)
	if d.v.Buying(k) {
		return min(float64(1.2*low), high)
	}
	return max(float64(0.7*high), low)
}

func (d penguinDecisions) learns([]int, []int) {}

func (d penguinDecisions) agreed(int) {}
