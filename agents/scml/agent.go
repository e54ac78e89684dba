package scml

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Layers are the networks of an agent; what is nil is left out.
type Layers struct {
	// Manager returns the goal of a day.
	Manager func(d *Day) (Goal, error)
	// Executor writes the residual of each thread, Coordinator its weight, which is 1 otherwise.
	Executor    func(threads []Thread) error
	Coordinator func(threads []Thread) error
	// Direct says that residuals are answers.
	Direct bool
}

// Residual is how many numbers a residual has, Direct those of an answer.
const (
	Residual = 4
	Direct   = 5
)

// Thread is a negotiation that is to be answered.
type Thread struct {
	Slot int
	ThreadView
	// Goal is that of the day.
	Goal *Goal
	// Residual and Weight are what the layers say.
	Residual [Direct]float32
	Weight   float32
}

// Agent is an agent of these layers. It implements world.Synchronous and world.Remembering.
type Agent struct {
	shield.Guard
	Layers Layers

	v   *world.View
	day Day
	memory
	exec Executor

	base, counters []negotiation.Reply
	threads        []Thread
	heard          []int
}

// memory is what the rest of a world depends on, beside the guard and the executor.
type memory struct {
	// Met and Agreed count the negotiations with each agent, and the contracts.
	Met    []int `json:"met"`
	Agreed []int `json:"agreed"`
	// Moves are today's offers, by slot.
	Moves [][]Move `json:"moves"`
}

var (
	_ world.Synchronous = (*Agent)(nil)
	_ world.Remembering = (*Agent)(nil)
)

// NewAgent returns an agent.
func NewAgent(layers Layers) *Agent { return &Agent{Layers: layers} }

// Memory implements world.Remembering.
func (a *Agent) Memory() any {
	return &struct {
		Guard    any     `json:"guard"`
		Executor any     `json:"executor"`
		Own      *memory `json:"own"`
	}{a.Guard.Memory(), a.exec.Memory(), &a.memory}
}

// Starts implements world.Agent.
func (a *Agent) Starts(v *world.View) {
	a.v = v
	a.Guard.Starts(v)
	a.exec.Starts(v)
	a.memory = memory{Met: make([]int, v.Agents()), Agreed: make([]int, v.Agents())}
}

// Today returns the situation of this morning.
func (a *Agent) Today() *Day { return &a.day }

// Resume reads the situation of this morning again, of an agent whose memory was loaded.
func (a *Agent) Resume() { a.day.Read(a.v, &a.Ledger) }

// Morning takes notice of a day, before a goal is set. What it returns is valid until the next day.
func (a *Agent) Morning() *Day {
	a.Guard.DayBegins()
	a.Resume()
	n := a.v.Slots()
	for len(a.Moves) < n {
		a.Moves = append(a.Moves, nil)
	}
	a.Moves = a.Moves[:n]
	for k := range a.Moves {
		a.Moves[k] = a.Moves[k][:0]
		a.Met[a.v.Partner(k)]++
	}
	return &a.day
}

// Set sets the goal of the day.
func (a *Agent) Set(g Goal) { a.exec.DayBegins(g) }

// Goal returns that of the day, and what was agreed towards it.
func (a *Agent) Goal() (g *Goal, agreed *[2][Buckets]int) {
	return &a.exec.Goal, &a.exec.Agreed
}

// DayBegins implements world.Agent. It panics where the manager fails; a world takes that for a
// fault of the agent's.
func (a *Agent) DayBegins() {
	g, err := a.Aim(a.Morning())
	if err != nil {
		panic(err)
	}
	a.Set(g)
}

// Aim returns the goal of the manager for a day, or the default one without a manager.
func (a *Agent) Aim(day *Day) (Goal, error) {
	if a.Layers.Manager == nil {
		return DefaultGoal(day), nil
	}
	g, err := a.Layers.Manager(day)
	if err != nil {
		return g, fmt.Errorf("the manager: %w", err)
	}
	return g, nil
}

// Agreed implements world.Agent.
func (a *Agent) Agreed(c *world.Contract) {
	a.Guard.Agreed(c)
	a.exec.Concluded(c)
	partner := c.Buyer
	if c.Buyer == a.v.Index() {
		partner = c.Seller
	}
	a.memory.Agreed[partner]++
}

// Failed implements world.Agent.
func (a *Agent) Failed(m *negotiation.Mechanism) { a.Guard.Failed(m) }

// DayEnds implements world.Agent.
func (a *Agent) DayEnds() {}

// FirstProposals implements world.Synchronous. It panics where a layer fails, as CounterAll does.
func (a *Agent) FirstProposals(replies []negotiation.Reply) { a.answer(nil, true, replies) }

// CounterAll implements world.Synchronous.
func (a *Agent) CounterAll(heard []int, replies []negotiation.Reply) { a.answer(heard, false, replies) }

func (a *Agent) answer(heard []int, first bool, replies []negotiation.Reply) {
	threads := a.Prepare(heard, first, len(replies))
	if err := a.Ask(threads); err != nil {
		panic(err)
	}
	a.Finish(replies)
}

// Ask lets executor and coordinator, where there are any, write into the threads of Prepare.
func (a *Agent) Ask(threads []Thread) error {
	if a.Layers.Executor == nil || len(threads) == 0 {
		return nil
	}
	if err := a.Layers.Executor(threads); err != nil {
		return fmt.Errorf("the executor: %w", err)
	}
	if a.Layers.Coordinator != nil {
		if err := a.Layers.Coordinator(threads); err != nil {
			return fmt.Errorf("the coordinator: %w", err)
		}
	}
	return nil
}

// Prepare computes what the baseline answers, and returns the negotiations that are to be answered,
// with residuals of 0 and weights of 1; first says that it is about first proposals, slots is how
// many replies there are. What it returns is valid until the next call.
func (a *Agent) Prepare(heard []int, first bool, slots int) []Thread {
	for _, k := range heard {
		a.Moves[k] = append(a.Moves[k], Move{Round: a.v.Round(k), Offer: a.v.Offer(k)})
	}
	return a.Again(heard, first, slots)
}

// Again is Prepare for an agent whose memory was saved after it was prepared for the question: the
// histories have what it hears already.
func (a *Agent) Again(heard []int, first bool, slots int) []Thread {
	a.Hears(heard)
	a.heard = append(a.heard[:0], heard...)
	a.base, a.counters = sized(a.base, slots), sized(a.counters, slots)
	today := a.v.Today()
	a.exec.Answer(heard, first, &a.Ledger, a.base, a.counters)
	a.threads = a.threads[:0]
	var partners [2]int
	for k := range slots {
		if live(a.v, k) {
			partners[Side(a.v, k)]++
		}
	}
	for k := range slots {
		hears := contains(heard, k)
		if !hears && !(first && live(a.v, k)) {
			continue
		}
		side, box := Side(a.v, k), a.v.Box(k)
		r := &a.base[k]
		if r.Offered {
			a.counters[k] = *r
		}
		o := ThreadView{
			Buying: side == shield.Buy, Round: a.v.Round(k), Rounds: a.v.Rounds(), Today: today, Lines: a.v.Lines(), Low: box.Low.Price, High: box.High.Price,
			Heard: hears, Base: *r, Partners: partners[side], Agreed: a.memory.Agreed[a.v.Partner(k)], Met: a.Met[a.v.Partner(k)], History: a.Moves[k],
		}
		ahead := 0
		if hears {
			o.Offer = a.v.Offer(k)
			o.Safe = a.Max(k, side, o.Offer)
			ahead = o.Offer.Time - today
		}
		if !a.counters[k].Offered {
			a.counters[k] = negotiation.Propose(a.token(k, hears))
		}
		o.Counter = a.counters[k]
		o.Limit = a.exec.Limit(side, ahead)
		o.Open, o.Later = a.exec.Left(side)
		a.threads = append(a.threads, Thread{Slot: k, ThreadView: o, Goal: &a.exec.Goal, Weight: 1})
	}
	return a.threads
}

// token is the offer of one unit that keeps a negotiation going: for the day that the partner asks
// for, or for tomorrow, at the price of the goal, or the best one where nobody has offered.
func (a *Agent) token(k int, heard bool) negotiation.Offer {
	box, side := a.v.Box(k), Side(a.v, k)
	o := negotiation.Offer{Quantity: 1, Time: min(a.v.Today()+1, box.High.Time), Price: box.High.Price}
	if side == shield.Buy {
		o.Price = box.Low.Price
	}
	if heard {
		o.Time = a.v.Offer(k).Time
		o.Price = PriceFromRange(a.exec.Limit(side, o.Time-a.v.Today()), &box)
	}
	return o
}

// Finish writes the replies: of Prepare's baseline, changed by the residuals and weights that are
// in its threads, and cut to what is safe.
func (a *Agent) Finish(replies []negotiation.Reply) {
	clear(replies)
	for i := range a.threads {
		t := &a.threads[i]
		box := a.v.Box(t.Slot)
		if a.Layers.Direct {
			replies[t.Slot] = t.direct(&box)
		} else {
			replies[t.Slot] = t.residual(&box)
		}
	}
	a.Apply(a.heard, replies)
	for i := range a.threads {
		if r := &replies[a.threads[i].Slot]; r.Offered {
			k := a.threads[i].Slot
			a.Moves[k] = append(a.Moves[k], Move{Own: true, Round: a.v.Round(k), Offer: r.Offer})
		}
	}
}

func sized(list []negotiation.Reply, n int) []negotiation.Reply {
	for len(list) < n {
		list = append(list, negotiation.Reply{})
	}
	return list[:n]
}

func contains(list []int, k int) bool {
	for _, x := range list {
		if x == k {
			return true
		}
	}
	return false
}
