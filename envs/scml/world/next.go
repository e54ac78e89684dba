package world

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// Event is what a world stops for.
type Event int8

// The events, in the order of a day. Those from AskFirst to AskProposal ask for a decision; the
// others are news, of which the first six are meant for one agent.
const (
	Starts Event = iota + 1
	DayBegins
	DayEnds
	Agreed
	Failed
	AskFirst
	AskCounters
	AskResponse
	AskProposal
	// Settled: the day's numbers are there.
	Settled
	// Over: there is no other day.
	Over
)

var events = [...]string{Starts: "starts", DayBegins: "day begins", DayEnds: "day ends", Agreed: "agreed", Failed: "failed", AskFirst: "first proposals", AskCounters: "counter all", AskResponse: "respond", AskProposal: "propose", Settled: "settled", Over: "over"}

// String returns the event in words.
func (e Event) String() string {
	if e < 0 || int(e) >= len(events) {
		return "none"
	}
	return events[e]
}

// Question is the state of a world between two calls of Next.
type Question struct {
	Event Event
	// Agent is the one that is asked or told.
	Agent int
	// Slot is the negotiation that AskResponse and AskProposal are about, with the offer to answer;
	// Heard are those of AskCounters.
	Slot  int
	Offer negotiation.Offer
	Heard []int
	// Replies is where the answer is written, one element for each slot of the agent or, to
	// AskResponse and AskProposal, one. It is zeroed.
	Replies []negotiation.Reply
	// Contract is what was Agreed, Negotiation what Failed.
	Contract    *Contract
	Negotiation *negotiation.Mechanism
}

// phase is where a day goes on.
type phase int8

const (
	starting phase = iota
	dawning
	beginning
	negotiating
	agreeing
	failing
	ending
	settling
	settled
	over
)

// Question returns what Next returned last.
func (w *World) Question() *Question { return &w.question }

// Next goes on to what is needed next; it reads the replies to the question before. What it returns
// is valid until the next call.
func (w *World) Next() *Question {
	for {
		switch w.s.Phase {
		case starting:
			if w.s.Agent < len(w.views) {
				if w.s.Agent == 0 {
					w.exogenous()
				}
				return w.tell(Starts)
			}
			w.s.Phase = dawning
		case dawning:
			w.dawn()
			w.s.Phase, w.s.Agent = beginning, 0
		case beginning:
			if w.s.Agent < len(w.views) {
				return w.tell(DayBegins)
			}
			w.s.Phase = negotiating
		case negotiating:
			if q := w.negotiate(); q != nil {
				return q
			}
		case agreeing:
			m := w.engine.Asked().Mechanism
			if w.s.Agent == len(m.Agents) {
				w.s.Phase = negotiating
				continue
			}
			agent := m.Agents[w.s.Agent]
			w.enter(agent, &w.s.Contracts[len(w.s.Contracts)-1])
			w.s.Agent++
			return w.ask(Agreed, agent)
		case failing:
			m := w.engine.Asked().Mechanism
			if w.s.Agent == len(m.Agents) {
				w.s.Phase = negotiating
				continue
			}
			agent := m.Agents[w.s.Agent]
			w.s.Agent++
			return w.ask(Failed, agent)
		case ending:
			if w.s.Agent < len(w.views) {
				return w.tell(DayEnds)
			}
			w.s.Phase = settling
		case settling:
			if w.closer != nil {
				w.closer.Closing()
			}
			w.settle()
			w.s.Phase = settled
			return w.ask(Settled, 0)
		case settled:
			if w.s.Day+1 == w.c.Days {
				w.s.Phase = over
				continue
			}
			w.s.Day++
			w.exogenous()
			w.s.Phase = dawning
		default:
			return w.ask(Over, 0)
		}
	}
}

// Sign adds a contract to those agreed today, as if it had been negotiated: between the first
// DayBegins and the first DayEnds. Books and deliveries follow.
func (w *World) Sign(c Contract) error {
	n := len(w.views)
	if c.Seller < 0 || c.Seller >= n || c.Buyer < 0 || c.Buyer >= n || w.c.Factories[c.Seller].Level+1 != w.c.Factories[c.Buyer].Level {
		return fmt.Errorf("sign a contract: seller %d and buyer %d are not of neighbouring levels", c.Seller, c.Buyer)
	}
	id := func(i int) string { return w.c.Factories[i].ID }
	if c.Time < w.s.Day || c.Time >= w.c.Days || c.Quantity < 1 || c.Price < 0 {
		return fmt.Errorf("sign a contract of %s and %s on day %d: %d units on day %d at %d", id(c.Seller), id(c.Buyer), w.s.Day, c.Quantity, c.Time, c.Price)
	}
	for _, i := range []int{c.Seller, c.Buyer} {
		if w.s.Accounts[i].Bankrupt {
			return fmt.Errorf("sign a contract of %s and %s on day %d: %s is bankrupt", id(c.Seller), id(c.Buyer), w.s.Day, id(i))
		}
	}
	c.Product, c.Signed, c.Dropped = w.c.Factories[c.Buyer].Level, w.s.Day, false
	w.conclude(c)
	w.enter(c.Seller, &c)
	w.enter(c.Buyer, &c)
	return nil
}

// conclude adds a contract.
func (w *World) conclude(c Contract) {
	w.s.Contracts = append(w.s.Contracts, c)
	w.s.Due[c.Time] = append(w.s.Due[c.Time], len(w.s.Contracts)-1)
	w.statistics.Agreements++
	w.statistics.Concluded++
}

// tell has news for one agent after the other.
func (w *World) tell(e Event) *Question {
	w.s.Agent++
	return w.ask(e, w.s.Agent-1)
}

// negotiate goes on with the day's negotiations. It returns nil where the phase has changed.
func (w *World) negotiate() *Question {
	a := w.engine.Next()
	switch a.Event {
	case negotiation.Ended:
		if w.s.Phase, w.s.Agent = failing, 0; a.Mechanism.Status == negotiation.Agreed {
			w.s.Phase = agreeing
			w.sign(a.Mechanism)
		}
		return nil
	case negotiation.DayOver:
		w.s.Phase, w.s.Agent = ending, 0
		return nil
	}
	return w.ask(asks[a.Event], a.Agent)
}

// asks has the event of each of the engine's.
var asks = [...]Event{negotiation.AskFirst: AskFirst, negotiation.AskCounters: AskCounters, negotiation.AskResponse: AskResponse, negotiation.AskProposal: AskProposal}

// ask makes the question of an event.
func (w *run) ask(e Event, agent int) *Question {
	a := w.engine.Asked()
	w.question = Question{Event: e, Agent: agent}
	q := &w.question
	switch e {
	case Agreed:
		q.Contract = &w.s.Contracts[len(w.s.Contracts)-1]
	case Failed:
		q.Negotiation = a.Mechanism
	case AskFirst, AskCounters, AskResponse, AskProposal:
		q.Slot, q.Heard, q.Replies = a.Slot, a.Heard, w.engine.Replies()
		if e == AskResponse {
			q.Offer = a.Mechanism.Current
		}
	}
	return q
}

// sign makes a contract of an agreement.
func (w *World) sign(m *negotiation.Mechanism) {
	seller, buyer := m.Agents[0], m.Agents[1]
	if w.c.Factories[seller].Level > w.c.Factories[buyer].Level {
		seller, buyer = buyer, seller
	}
	o := m.Current
	w.conclude(Contract{Seller: seller, Buyer: buyer, Product: m.Tag, Quantity: o.Quantity, Time: o.Time, Price: o.Price, Signed: w.s.Day, Rounds: m.Round})
}

// enter writes a contract into the books of one side.
func (w *World) enter(agent int, c *Contract) {
	a := &w.s.Accounts[agent]
	if c.Seller == agent {
		a.Sales[c.Time] += c.Quantity
	} else {
		a.Supplies[c.Time] += c.Quantity
	}
}

// exogenous collects the day's contracts with the outside.
func (w *World) exogenous() {
	clear(w.supplyOf)
	clear(w.demand)
	for w.s.Exogenous < len(w.c.Exogenous) && w.c.Exogenous[w.s.Exogenous].Day == w.s.Day {
		e := &w.c.Exogenous[w.s.Exogenous]
		t := &w.supplyOf[e.Factory]
		if e.Demand {
			t = &w.demand[e.Factory]
		}
		*t = Total{Quantity: t.Quantity + e.Quantity, Money: t.Money + float64(e.Quantity*e.Price)}
		w.s.Exogenous++
	}
}

// dawn opens the day's negotiations.
func (w *World) dawn() {
	st := &w.statistics
	*st = Statistics{Quantity: st.Quantity, Money: st.Money}
	clear(st.Quantity)
	clear(st.Money)
	w.s.Signed = len(w.s.Contracts)
	for p := range w.boxes {
		if p > 0 || w.c.Rules.RefreshRaw {
			w.boxes[p] = w.box(p, w.s.Day)
		}
		w.inForce[p] = w.s.Prices[p].Trading
	}
	for level, all := range w.levels {
		w.able[level] = w.able[level][:0]
		for _, i := range all {
			if !w.s.Accounts[i].Bankrupt {
				w.able[level] = append(w.able[level], i)
			}
		}
	}
	w.engine.Begin(w.s.Day)
	st.Negotiations = w.engine.Open(w.able, w.boxes, w.c.Rules.MiddleEdge)
}
