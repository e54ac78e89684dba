package scml

import (
	"slices"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Executor answers the negotiations of a factory. The factory tells it of days, goals and contracts.
type Executor struct {
	v *world.View
	executorMemory

	// The rest is scratch: slots of a side, what is left to be agreed of each bucket, and how many
	// partners are asked for it.
	slots []int
	left  [Buckets]int
}

// executorMemory is what the rest of a day depends on.
type executorMemory struct {
	Goal Goal `json:"goal"`
	// Agreed are the units of today's contracts, by side and bucket.
	Agreed [2][Buckets]int `json:"agreed"`
}

// Memory points to all that the executor keeps.
func (e *Executor) Memory() any { return &e.executorMemory }

// Starts begins a world.
func (e *Executor) Starts(v *world.View) { *e = Executor{v: v} }

// DayBegins sets the goal of a day.
func (e *Executor) DayBegins(g Goal) { e.executorMemory = executorMemory{Goal: g} }

// Concluded counts a contract of the factory towards the goal.
func (e *Executor) Concluded(c *world.Contract) {
	side := shield.Buy
	if c.Seller == e.v.Index() {
		side = shield.Sell
	}
	e.Agreed[side][e.Goal.Bucket(c.Time-e.v.Today())] += c.Quantity
}

// Side returns that of a slot.
func Side(v *world.View, k int) int {
	if v.Buying(k) {
		return shield.Buy
	}
	return shield.Sell
}

// Left returns how many units of the goal are not agreed yet, of today and of later days; for
// deliveries of any day of whole goals they are those of today.
func (e *Executor) Left(side int) (today, later int) {
	for b := range Buckets {
		n := max(0, e.Goal.Targets[side][b].Quantity-e.Agreed[side][b])
		if b == Today {
			today = n
		} else {
			later += n
		}
	}
	return today, later
}

// Limit returns the goal's price for a delivery in so many days, between −1 and 1.
func (e *Executor) Limit(side, ahead int) float64 {
	return e.Goal.Targets[side][e.Goal.Bucket(ahead)].Price
}

// live reports whether a slot's negotiation can still come to something.
func live(v *world.View, k int) bool {
	m := v.Negotiation(k)
	return m != nil && m.Status == negotiation.Running
}

// Answer writes what the baseline answers: heard are the slots with an offer, none at the first
// proposals. It leaves slots alone that have ended, and of those that are not heard all but at the
// first proposals. counters receives what would be offered to those that are accepted. Offers of
// the factory's that are open in slots that are not answered count as agreed.
func (e *Executor) Answer(heard []int, first bool, open *shield.Ledger, replies, counters []negotiation.Reply) {
	clear(replies)
	clear(counters)
	for side := range 2 {
		e.slots = e.slots[:0]
		for k := range replies {
			if Side(e.v, k) == side && (first && live(e.v, k) || slices.Contains(heard, k)) {
				e.slots = append(e.slots, k)
			}
		}
		e.remaining(side, open)
		if !first {
			e.accept(side, replies, counters)
		}
		e.share(side, first, replies)
	}
}

// remaining fills in what is left of the goal beside open offers in other slots than e.slots.
func (e *Executor) remaining(side int, open *shield.Ledger) {
	for b := range Buckets {
		e.left[b] = e.Goal.Targets[side][b].Quantity - e.Agreed[side][b]
	}
	for _, h := range open.Held {
		if h.Side == side && !slices.Contains(e.slots, h.Slot) {
			e.left[e.Goal.Bucket(h.Offer.Time-e.v.Today())] -= h.Offer.Quantity
		}
	}
	for b := range Buckets {
		e.left[b] = max(0, e.left[b])
	}
}

// accept accepts what fits the goal, and leaves the other slots of the side in e.slots.
func (e *Executor) accept(side int, replies, counters []negotiation.Reply) {
	today := e.v.Today()
	var scratch [64]int
	same := scratch[:0]
	for _, k := range e.slots {
		o := e.v.Offer(k)
		ahead := o.Time - today
		if !e.acceptable(side, k, o) {
			continue
		}
		if b := e.Goal.Bucket(ahead); b == Today {
			same = append(same, k)
		} else if o.Quantity <= e.left[b] {
			e.left[b] -= o.Quantity
			replies[k] = negotiation.Answer(negotiation.Accept)
		}
	}
	if e.left[Today] > 0 {
		chosen := e.choose(side, same)
		for i, k := range same {
			if chosen>>i&1 == 1 {
				e.left[Today] = max(0, e.left[Today]-e.v.Offer(k).Quantity)
				replies[k] = negotiation.Answer(negotiation.Accept)
			}
		}
	}
	rest := e.slots[:0]
	for _, k := range e.slots {
		if !replies[k].Given {
			rest = append(rest, k)
			continue
		}
		o := e.v.Offer(k)
		o.Price = e.limit(side, k, o.Time-today)
		counters[k] = negotiation.Propose(o)
	}
	e.slots = rest
}

// limit is the worst price of the goal for a slot and a delivery.
func (e *Executor) limit(side, k, ahead int) int {
	b := e.v.Box(k)
	return PriceFromRange(e.Limit(side, ahead), &b)
}

// acceptable reports whether a price is no worse than the goal's.
func (e *Executor) acceptable(side, k int, o negotiation.Offer) bool {
	limit := e.limit(side, k, o.Time-e.v.Today())
	if side == shield.Buy {
		return o.Price <= limit
	}
	return o.Price >= limit
}

// most is how many offers subsets are formed of; no level has as many agents.
const most = 12

// choose returns the subset of offers, a bit for each, whose units come closest to what is left for
// today, with at most a little more; of equal ones the one of the better prices, and then the
// first.
func (e *Executor) choose(side int, same []int) (best int) {
	n, need := min(len(same), most), e.left[Today]
	surplus := max(1, int(float64(excess*float64(e.v.Lines()))))
	off, gain := need, 0
	for set := 1; set < 1<<n; set++ {
		units, money := 0, 0
		for i := range n {
			if set>>i&1 == 1 {
				o := e.v.Offer(same[i])
				units += o.Quantity
				money += o.Quantity * o.Price
			}
		}
		if units > need+surplus {
			continue
		}
		if side == shield.Buy {
			money = -money
		}
		d := max(need-units, units-need)
		if d < off || d == off && best != 0 && money > gain {
			best, off, gain = set, d, money
		}
	}
	return best
}

// share shares out what is left over e.slots: today's units evenly over some of the partners, or
// over all where nothing is left for later days, and each later bucket over its share of the
// others. Who is left out gets no offer, which ends the negotiation.
func (e *Executor) share(side int, first bool, replies []negotiation.Reply) {
	n := len(e.slots)
	if n == 0 {
		return
	}
	var later [Buckets]int
	count := 0
	for b := Tomorrow; b < Buckets; b++ {
		if e.left[b] > 0 && e.v.Today()+firstOf[b] < e.v.Days() {
			later[count] = b
			count++
		}
	}
	now := 0
	if e.left[Today] > 0 {
		now = n
		if count > 0 {
			now = max(1, int(float64(asked*float64(n))))
		}
		now = min(now, e.left[Today])
	}
	// Another partner is the first one on each day.
	turn := func(i int) int { return e.slots[(i+e.v.Today())%n] }
	for i := range now {
		q := e.left[Today] / now
		if i < e.left[Today]%now {
			q++
		}
		e.offer(side, turn(i), q, e.v.Today(), first, replies)
	}
	if count == 0 {
		return
	}
	rest := n - now
	for j := range rest {
		which := j % count
		b := later[which]
		among := (rest - which + count - 1) / count
		q := e.left[b] / among
		if j/count < e.left[b]%among {
			q++
		}
		if q > 0 {
			e.offer(side, turn(now+j), q, e.v.Today()+firstOf[b], first, replies)
		}
	}
}

// offer writes an offer, at the best price of the range where it is the first one, and at the
// goal's otherwise.
func (e *Executor) offer(side, k, q, day int, first bool, replies []negotiation.Reply) {
	b := e.v.Box(k)
	o := negotiation.Offer{Quantity: min(q, b.High.Quantity), Time: day, Price: e.limit(side, k, day-e.v.Today())}
	if first {
		o.Price = b.Low.Price
		if side == shield.Sell {
			o.Price = b.High.Price
		}
	}
	replies[k] = negotiation.Propose(o)
}
