package opponents

import (
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// as0 is AS0, which won in 2025: penguin that keeps how often it has come to an agreement with
// each partner, and how its money changes.
type as0 struct {
	penguin
	// balances are those of the last days, at most as0Memory.
	balances     []float64
	conservative bool
	aggressive   bool
}

// The settings of AS0.
const (
	as0Memory       = 5
	as0Trend        = 50  // money: beyond it the balance is taken to fall, or to rise
	as0Late         = 0.3 // share of the days from which on it is aggressive
	as0Conservative = 0.6
	as0Aggressive   = 0.85
)

func newAS0(key rng.Key) world.Agent {
	a := &as0{penguin: penguin{s: key.Stream()}}
	a.decisions = &as0Decisions{as0: a}
	return a
}

func (a *as0) Starts(v *world.View) {
	a.penguin.Starts(v)
	d := a.decisions.(*as0Decisions)
	partners := 0
	for _, list := range [][]int{v.Suppliers(), v.Consumers()} {
		for _, i := range list {
			partners = max(partners, i+1)
		}
	}
	d.success, d.failure = make([]int, partners), make([]int, partners)
}

func (a *as0) DayEnds() {
	if len(a.balances) == as0Memory {
		a.balances = append(a.balances[:0], a.balances[1:]...)
	}
	a.balances = append(a.balances, a.v.Balance())
	if n := len(a.balances); n >= 3 {
		switch trend := mean(a.balances[n-3:]) - mean(a.balances[:2]); {
		case trend < -as0Trend:
			a.conservative = true
		case trend > as0Trend:
			a.conservative = false
		}
	}
	if n := a.v.Days(); float64(n-a.v.Today())/float64(n) < as0Late {
		a.aggressive = true
	}
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// as0Decisions are AS0's.
type as0Decisions struct {
	*as0
	// success and failure count by partner.
	success, failure []int
}

// rate is how often offers of a slot's partner were accepted, 1/2 where there were none.
func (d *as0Decisions) rate(k int) float64 {
	i := d.v.Partner(k)
	if n := d.success[i] + d.failure[i]; n > 0 {
		return float64(d.success[i]) / float64(n)
	}
	return 0.5
}

// sorted puts those first that agree most often.
func (d *as0Decisions) sorted(list []int) []int {
	slices.SortStableFunc(list, func(a, b int) int {
		switch ra, rb := d.rate(a), d.rate(b); {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return 0
	})
	return list
}

func (d *as0Decisions) ratio() float64 {
	switch {
	case d.aggressive:
		return as0Aggressive
	case d.conservative:
		return as0Conservative
	}
	return penguinToday
}

// best are the first partners and up to two of the others, at random.
func (d *as0Decisions) best(list []int) []int {
	d.sorted(list)
	n := max(1, int(float64(d.ratio()*float64(len(list)))))
	shuffle(d.s, list[n:])
	return list[:min(len(list), n+2)]
}

func (d *as0Decisions) asked(_, needs int, list []int) []int {
	list = d.best(list)
	shuffle(d.s, list)
	list = list[:max(1, int(float64(d.ratio()*float64(len(list)))))]
	if needs < len(list) {
		list = list[:integer(d.s, 1, min(needs, len(list)))]
	}
	return list
}

func (d *as0Decisions) ordered(list []int, first bool) []int {
	if first && len(list) > 0 {
		list = d.best(list)
	}
	return d.sorted(list)
}

func (d *as0Decisions) needs(side int) int {
	s := d.v.Today()
	if side == sells && d.v.SalesAt(s) > d.v.Lines() {
		return 0
	}
	return max(0, int(d.need(side, s)))
}

func (d *as0Decisions) block(day, _ int) int { return day }

func (d *as0Decisions) weigh(off int, set []int) float64 {
	sum := 0.0
	for _, i := range set {
		sum += d.rate(d.same[i])
	}
	return float64(float64(off) * (2 - sum/float64(len(set))))
}

func (d *as0Decisions) surplus() float64 {
	if d.aggressive {
		return 2
	}
	return 1
}

func (d *as0Decisions) counter(k int) float64 {
	b, more, sr := d.v.Box(k), 0.0, d.rate(k)
	if d.aggressive {
		more = 0.1
	}
	low, high := float64(b.Low.Price), float64(b.High.Price)
	if d.v.Buying(k) {
		return min(float64(low*(1.2+float64(0.15*sr)+more)), high)
	}
	return max(float64(high*(0.7-float64(0.15*sr)-more)), low)
}

func (d *as0Decisions) learns(chosen, all []int) {
	for _, k := range all {
		if slices.Contains(chosen, k) {
			d.success[d.v.Partner(k)]++
		} else {
			d.failure[d.v.Partner(k)]++
		}
	}
}

func (d *as0Decisions) agreed(k int) { d.success[d.v.Partner(k)]++ }
