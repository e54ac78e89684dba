package scml

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// examined is a factory whose executor works for goals at random, and whose answers are examined.
type examined struct {
	world.Quiet
	Executor
	t        *testing.T
	s        *rng.Stream
	ledger   shield.Ledger
	day      Day
	counters []negotiation.Reply
	// The observations: answers by kind, and subsets that were compared with all others.
	first, accepted, offered, subsets int
}

func (a *examined) Starts(v *world.View) {
	a.Executor.Starts(v)
	a.ledger.Starts(v)
}

func (a *examined) DayBegins() {
	a.ledger.DayBegins()
	a.day.Read(a.v, &a.ledger)
	vector := make([]float32, []int{WholeGoal, FullGoal}[a.s.IntN(2)])
	for i := range vector {
		vector[i] = float32(a.s.Float64()*1.6 - 0.6)
	}
	a.Executor.DayBegins(DecodeGoal(vector, &a.day))
}

func (a *examined) Agreed(c *world.Contract) {
	a.ledger.Agreed(c)
	a.Concluded(c)
}

// left is what is left of a target.
func (a *examined) left(side, b int) int {
	return max(0, a.Goal.Targets[side][b].Quantity-a.Executor.Agreed[side][b])
}

func (a *examined) FirstProposals(replies []negotiation.Reply) {
	a.counters = append(a.counters[:0], make([]negotiation.Reply, len(replies))...)
	a.Answer(nil, true, &a.ledger, replies, a.counters)
	a.examine(nil, replies)
	a.first++
}

func (a *examined) CounterAll(heard []int, replies []negotiation.Reply) {
	a.counters = append(a.counters[:0], make([]negotiation.Reply, len(replies))...)
	a.Answer(heard, false, &a.ledger, replies, a.counters)
	a.examine(heard, replies)
}

// examine checks answers against the goal.
func (a *examined) examine(heard []int, replies []negotiation.Reply) {
	v, today := a.v, a.v.Today()
	for side := range 2 {
		var accepted, offered [Buckets]int
		var same []int
		for k, r := range replies {
			if Side(v, k) != side || !r.Given {
				continue
			}
			b := v.Box(k)
			if r.Response == negotiation.Accept {
				o := v.Offer(k)
				if !slices.Contains(heard, k) || !a.acceptable(side, k, o) || a.counters[k].Offer.Quantity != o.Quantity || a.counters[k].Offer.Time != o.Time {
					a.t.Errorf("day %d, slot %d: accepts %+v, or else offers %+v", today, k, o, a.counters[k])
				}
				accepted[a.Goal.Bucket(o.Time-today)] += o.Quantity
				a.accepted++
				continue
			}
			if !r.Offered || !b.Holds(r.Offer) {
				a.t.Errorf("day %d, slot %d: answers %+v in %+v", today, k, r, b)
			}
			a.offered++
			// Beside a whole goal, which is of today's offers, later days are offered as the
			// default goal has it.
			if a.Goal.Whole && r.Offer.Time > today {
				continue
			}
			offered[a.Goal.Bucket(r.Offer.Time-today)] += r.Offer.Quantity
		}
		for _, k := range heard {
			if o := v.Offer(k); Side(v, k) == side && a.Goal.Bucket(o.Time-today) == Today && a.acceptable(side, k, o) {
				same = append(same, k)
			}
		}
		for b := range Buckets {
			most := a.left(side, b)
			if b == Today {
				most++ // a tenth of the lines may be more
			}
			if accepted[b] > most || accepted[b]+offered[b] > most {
				a.t.Errorf("day %d, side %d, bucket %d: %d accepted and %d offered, %d are left of the goal", today, side, b, accepted[b], offered[b], a.left(side, b))
			}
		}
		a.best(side, same, accepted[Today])
	}
}

// best checks that no other subset of offers for today comes closer to what is left.
func (a *examined) best(side int, same []int, accepted int) {
	need := a.left(side, Today)
	if len(same) == 0 || len(same) > most || need == 0 {
		return
	}
	off := max(need-accepted, accepted-need)
	for set := range 1 << len(same) {
		units := 0
		for i, k := range same {
			if set>>i&1 == 1 {
				units += a.v.Offer(k).Quantity
			}
		}
		if d := max(need-units, units-need); units <= need+1 && d < off {
			a.t.Errorf("day %d, side %d: %d units are accepted of %d, and %d could be", a.v.Today(), side, accepted, need, units)
		}
	}
	a.subsets++
}

// TestAnswers: offers are in their box and come to what is left of the goal at most; what is
// accepted is no worse than the goal's price, and for today no subset comes closer to what is left.
func TestAnswers(t *testing.T) {
	var sum examined
	for seed := range 12 {
		key, levels := rng.New(uint64(seed)), 2+seed%3
		g := world.StandardLeague()
		g.Days = world.Range{Low: 20, High: 20}
		sizes := slices.Repeat([]int{4}, levels)
		types, agents := make([]string, 4*levels), make([]world.Agent, 4*levels)
		for i := range agents {
			kind, err := opponents.Find([]string{"penguin", "greedy", "random", "syncrandom"}[(i+seed)%4])
			if err != nil {
				t.Fatal(err)
			}
			types[i], agents[i] = kind.Type, kind.New(opponents.FairDice(key.Split("agent", i)))
		}
		var seats []*examined
		for i := 0; i < len(agents); i += 4 {
			a := &examined{t: t, s: key.Split("goals", i).Stream()}
			agents[i], seats = a, append(seats, a)
		}
		c, err := g.Draw(key, sizes, types)
		if err != nil {
			t.Fatal(err)
		}
		w, err := world.Sit(c, agents)
		if err != nil {
			t.Fatal(err)
		}
		for w.PlayDay() {
		}
		for i, a := range seats {
			sum.first, sum.accepted, sum.offered, sum.subsets = sum.first+a.first, sum.accepted+a.accepted, sum.offered+a.offered, sum.subsets+a.subsets
			if f := w.Faults(4 * i); f.Count() > 0 {
				t.Errorf("seed %d: %+v", seed, f)
			}
		}
	}
	if sum.first < 300 || sum.accepted < 300 || sum.offered < 3000 || sum.subsets < 300 {
		t.Errorf("%d first proposals, %d accepted, %d offered, %d subsets", sum.first, sum.accepted, sum.offered, sum.subsets)
	}
}
