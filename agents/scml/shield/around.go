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

// Shielded is an agent inside a shield.
type Shielded struct {
	world.Synchronous
	Ledger
	Counts
}

// Around returns a synchronous agent that does what another decides as far as it is safe.
func Around(a world.Synchronous) *Shielded { return &Shielded{Synchronous: a} }

// Memory implements world.Remembering.
func (s *Shielded) Memory() any {
	m := &struct {
		Ledger *memory `json:"ledger"`
		Counts *Counts `json:"counts"`
		Inside any     `json:"inside,omitempty"`
	}{Ledger: &s.memory, Counts: &s.Counts}
	if r, ok := s.Synchronous.(world.Remembering); ok {
		m.Inside = r.Memory()
	}
	return m
}

// Starts implements world.Agent.
func (s *Shielded) Starts(v *world.View) {
	s.Ledger.Starts(v)
	s.Synchronous.Starts(v)
}

// DayBegins implements world.Agent.
func (s *Shielded) DayBegins() {
	s.Ledger.DayBegins()
	s.Synchronous.DayBegins()
}

// Agreed implements world.Agent.
func (s *Shielded) Agreed(c *world.Contract) {
	s.Ledger.Agreed(c)
	s.Synchronous.Agreed(c)
}

// Failed implements world.Agent.
func (s *Shielded) Failed(m *negotiation.Mechanism) {
	for k := range s.v.Slots() {
		if s.v.Negotiation(k) == m {
			s.Release(k)
		}
	}
	s.Synchronous.Failed(m)
}

// FirstProposals implements world.Synchronous.
func (s *Shielded) FirstProposals(replies []negotiation.Reply) {
	s.Synchronous.FirstProposals(replies)
	for k := range replies {
		s.offer(k, &replies[k])
	}
}

// CounterAll implements world.Synchronous. Acceptances come first: an offer can be made again.
func (s *Shielded) CounterAll(heard []int, replies []negotiation.Reply) {
	for _, k := range heard {
		// Whoever counters has not accepted.
		s.Release(k)
	}
	s.Synchronous.CounterAll(heard, replies)
	for _, k := range heard {
		if r := &replies[k]; r.Given && r.Response == negotiation.Accept {
			s.accept(k, r)
		}
	}
	for k := range replies {
		if r := &replies[k]; r.Given && r.Response == negotiation.Reject {
			s.offer(k, r)
		}
	}
}

// side is that of a slot.
func (s *Shielded) side(k int) int {
	if s.v.Buying(k) {
		return Buy
	}
	return Sell
}

// accept accepts an offer if it is safe, and offers what is left of it otherwise.
func (s *Shielded) accept(k int, r *negotiation.Reply) {
	s.Decisions++
	o, side := s.v.Offer(k), s.side(k)
	switch q := s.Max(k, side, o); {
	case q == o.Quantity:
		s.Hold(k, side, o)
	case q == 0:
		s.Refused++
		*r = negotiation.Answer(negotiation.End)
	default:
		s.Reduced++
		o.Quantity = q
		*r = negotiation.Propose(o)
		s.Hold(k, side, o)
	}
}

// offer cuts an offer down to what is safe.
func (s *Shielded) offer(k int, r *negotiation.Reply) {
	if !r.Offered {
		return
	}
	s.Decisions++
	side := s.side(k)
	switch q := s.Max(k, side, r.Offer); {
	case q == 0:
		s.Refused++
		*r = negotiation.Answer(negotiation.End)
	case q < r.Offer.Quantity:
		s.Reduced++
		r.Offer.Quantity = q
		fallthrough
	default:
		s.Hold(k, side, r.Offer)
	}
}
