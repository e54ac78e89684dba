package opponents

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The settings of SyncRandomOneShotAgent.
const (
	oneShotOver     = 0.2 // share of the needs that is ordered beyond them, at first
	oneShotExponent = 0.4 // of the time by which that falls to none
	oneShotMismatch = 0.3 // share of the lines by which what is accepted may differ, at last
)

// oneShot is SyncRandomOneShotAgent of the league's other track, which knows of today only: it
// spreads what it needs over all partners, and accepts the offers that come closest to it. On
// middle levels it needs nothing.
type oneShot struct {
	world.Quiet
	v      *world.View
	s      *Dice
	equal  bool
	list   []int
	parts  []int
	chosen []int
	sets   subsets
}

func newOneShot(s *Dice) world.Agent { return &oneShot{s: s} }

// newEqualDist returns EqualDistOneShotAgent, whose parts differ by little.
func newEqualDist(s *Dice) world.Agent { return &oneShot{s: s, equal: true} }

func (a *oneShot) Starts(v *world.View) { a.v = v }

func (a *oneShot) Memory() any { return a.s }

func (a *oneShot) needs(side int) int {
	switch {
	case a.v.Middle():
		return 0
	case side == buys:
		return a.v.NeededSupplies()
	}
	return a.v.NeededSales()
}

// spread offers what is needed to the slots in list, at a price or, at 0, the best ones.
func (a *oneShot) spread(side int, time float64, price int, replies []negotiation.Reply) {
	q := int(float64(a.needs(side)) * float64(1+oneShotOver-float64(oneShotOver*math.Pow(time, oneShotExponent))))
	if q <= 0 || len(a.list) == 0 {
		return
	}
	a.parts = append(a.parts[:0], make([]int, len(a.list))...)
	spreading{equal: a.equal}.distribute(a.s, q, a.parts)
	for i, k := range a.list {
		if o := (negotiation.Offer{Quantity: a.parts[i], Time: a.v.Today(), Price: price}); o.Quantity > 0 {
			if price == 0 {
				o.Price = int(best(a.v, k))
			}
			replies[k] = negotiation.Propose(o)
		}
	}
}

func (a *oneShot) FirstProposals(replies []negotiation.Reply) {
	for side := range 2 {
		a.list = a.list[:0]
		for k := range replies {
			if sideOf(a.v, k) == side {
				a.list = append(a.list, k)
			}
		}
		a.spread(side, 0, 0, replies)
	}
}

func (a *oneShot) CounterAll(heard []int, replies []negotiation.Reply) {
	for side := range 2 {
		need := a.needs(side)
		a.list = a.list[:0]
		time, box := 1.0, a.v.InputBox()
		if side == sells {
			box = a.v.OutputBox()
		}
		for _, k := range heard {
			if sideOf(a.v, k) == side && a.v.Offer(k).Time == a.v.Today() && need > 0 {
				a.list = append(a.list, k)
				time = min(time, a.v.RelativeTime(k))
			}
		}
		if len(a.list) == 0 {
			continue
		}
		if a.choose(need, oneShotMismatch*float64(a.v.Lines())*math.Pow(time, 4)) {
			for _, k := range a.chosen {
				replies[k] = negotiation.Answer(negotiation.Accept)
			}
			continue
		}
		a.spread(side, time, a.s.integer(box.Low.Price, box.High.Price), replies)
	}
}

// choose finds the offers in list whose total comes closest to what is needed, as many as possible
// where there are several, and reports whether it is close enough.
func (a *oneShot) choose(need int, mismatch float64) bool {
	off := math.MaxInt
	a.sets.start(len(a.list))
	for a.sets.next() {
		total := 0
		for _, i := range a.sets.chose {
			total += a.v.Offer(a.list[i]).Quantity
		}
		d := total - need
		if d = max(d, -d); d > off {
			continue
		}
		off = d
		a.chosen = a.chosen[:0]
		for _, i := range a.sets.chose {
			a.chosen = append(a.chosen, a.list[i])
		}
	}
	return float64(off) <= mismatch
}
