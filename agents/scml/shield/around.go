package shield

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Counts are what a shield has seen and done.
type Counts struct {
	// Decisions are offers and acceptances of the agent inside, Reduced those offers that were cut
	// down, and Refused those of both that were left out.
	Decisions int `json:"decisions"`
	Reduced   int `json:"reduced"`
	Refused   int `json:"refused"`
}

// Guard is a ledger that takes part in the decisions of an agent: whatever it decides is passed
// through [Guard.Apply].
type Guard struct {
	Ledger
	Counts
}

// Memory points to all that a guard keeps.
func (g *Guard) Memory() any {
	return &struct {
		Ledger *memory `json:"ledger"`
		Counts *Counts `json:"counts"`
	}{&g.memory, &g.Counts}
}

// Failed releases the open offer of a negotiation that has ended.
func (g *Guard) Failed(m *negotiation.Mechanism) {
	for k := range g.v.Slots() {
		if g.v.Negotiation(k) == m {
			g.Release(k)
		}
	}
}

// Hears releases the offers that partners have answered by others of their own: whoever counters
// has not accepted. It comes before decisions about the slots in heard.
func (g *Guard) Hears(heard []int) {
	for _, k := range heard {
		g.Release(k)
	}
}

// Apply makes replies safe: to offers that were heard, none at first proposals. Acceptances come
// first: an offer can be made again.
func (g *Guard) Apply(heard []int, replies []negotiation.Reply) {
	for _, k := range heard {
		if r := &replies[k]; r.Given && r.Response == negotiation.Accept {
			g.accept(k, r)
		}
	}
	for k := range replies {
		if r := &replies[k]; r.Given && r.Response == negotiation.Reject {
			g.offer(k, r)
		}
	}
}

// Shielded is an agent inside a shield.
type Shielded struct {
	world.Synchronous
	Guard
}

// Around returns a synchronous agent that does what another decides as far as it is safe.
func Around(a world.Synchronous) *Shielded { return &Shielded{Synchronous: a} }

// Memory implements world.Remembering.
func (s *Shielded) Memory() any {
	m := &struct {
		Guard  any `json:"guard"`
		Inside any `json:"inside,omitempty"`
	}{Guard: s.Guard.Memory()}
	if r, ok := s.Synchronous.(world.Remembering); ok {
		m.Inside = r.Memory()
	}
	return m
}

// Starts implements world.Agent.
func (s *Shielded) Starts(v *world.View) {
	s.Guard.Starts(v)
	s.Synchronous.Starts(v)
}

// DayBegins implements world.Agent.
func (s *Shielded) DayBegins() {
	s.Guard.DayBegins()
	s.Synchronous.DayBegins()
}

// Agreed implements world.Agent.
func (s *Shielded) Agreed(c *world.Contract) {
	s.Guard.Agreed(c)
	s.Synchronous.Agreed(c)
}

// Failed implements world.Agent.
func (s *Shielded) Failed(m *negotiation.Mechanism) {
	s.Guard.Failed(m)
	s.Synchronous.Failed(m)
}

// FirstProposals implements world.Synchronous.
func (s *Shielded) FirstProposals(replies []negotiation.Reply) {
	s.Synchronous.FirstProposals(replies)
	s.Apply(nil, replies)
}

// CounterAll implements world.Synchronous.
func (s *Shielded) CounterAll(heard []int, replies []negotiation.Reply) {
	s.Hears(heard)
	s.Synchronous.CounterAll(heard, replies)
	s.Apply(heard, replies)
}

// side is that of a slot.
func (g *Guard) side(k int) int {
	if g.v.Buying(k) {
		return Buy
	}
	return Sell
}

// accept accepts an offer if it is safe, and offers what is left of it otherwise.
func (g *Guard) accept(k int, r *negotiation.Reply) {
	g.Decisions++
	o, side := g.v.Offer(k), g.side(k)
	switch q := g.Max(k, side, o); {
	case q == o.Quantity:
		g.Hold(k, side, o)
	case q == 0:
		g.Refused++
		*r = negotiation.Answer(negotiation.End)
	default:
		g.Reduced++
		o.Quantity = q
		*r = negotiation.Propose(o)
		g.Hold(k, side, o)
	}
}

// offer cuts an offer down to what is safe.
func (g *Guard) offer(k int, r *negotiation.Reply) {
	if !r.Offered {
		return
	}
	g.Decisions++
	side := g.side(k)
	switch q := g.Max(k, side, r.Offer); {
	case q == 0:
		g.Refused++
		*r = negotiation.Answer(negotiation.End)
	case q < r.Offer.Quantity:
		g.Reduced++
		r.Offer.Quantity = q
		fallthrough
	default:
		g.Hold(k, side, r.Offer)
	}
}
