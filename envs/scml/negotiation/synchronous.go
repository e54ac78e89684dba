package negotiation

// party is what the engine keeps of an agent on a day.
type party struct {
	Sync bool `json:"sync"`
	// Slots are its negotiations of the day.
	Slots []slot `json:"slots"`
	// Running is how many of them have not ended; those that never begin count.
	Running int `json:"running"`
	// FirstAsked says that the first proposals of the day were asked for.
	FirstAsked bool `json:"first_asked"`
	// Proposals and Offers are how many slots hold one.
	Proposals int `json:"proposals"`
	// Heard are the slots with an offer that is not answered, in the order in which they came.
	Heard []int `json:"heard"`
}

// slot is one negotiation of an agent, and for a synchronous one what it is to say and what it has
// heard.
type slot struct {
	// Mechanism is the negotiation's index, or -1 where it never begins.
	Mechanism int `json:"mechanism"`
	// Partner is the other agent.
	Partner int `json:"partner"`
	// Waits is how often the partner has been kept waiting.
	Waits int `json:"waits"`
	// Response and Proposal are what is kept to be said.
	HasResponse bool     `json:"has_response,omitempty"`
	Response    Response `json:"response,omitempty"`
	HasProposal bool     `json:"has_proposal,omitempty"`
	Proposal    Reply    `json:"proposal"`
	HasOffer    bool     `json:"has_offer,omitempty"`
	Offer       Offer    `json:"offer"`
}

// reset begins a day.
func (p *party) reset() {
	*p = party{Sync: p.Sync, Slots: p.Slots[:0], Heard: p.Heard[:0]}
}

// hear keeps an offer until it is answered.
func (p *party) hear(k int, o Offer) {
	s := &p.Slots[k]
	if !s.HasOffer {
		p.Heard = append(p.Heard, k)
	}
	s.HasOffer, s.Offer = true, o
}

// forget drops an offer.
func (p *party) forget(k int) {
	s := &p.Slots[k]
	if !s.HasOffer {
		return
	}
	s.HasOffer = false
	for i, other := range p.Heard {
		if other == k {
			p.Heard = append(p.Heard[:i], p.Heard[i+1:]...)
			return
		}
	}
}

// propose keeps first proposals in the place of all that were kept. Where none is given at all,
// there is one for every partner that breaks the negotiation.
func (p *party) propose(replies []Reply) {
	given := false
	for k := range replies {
		given = given || replies[k].Given
	}
	p.Proposals = 0
	for k := range p.Slots {
		s := &p.Slots[k]
		s.HasProposal, s.Proposal = replies[k].Given || !given, replies[k]
		if s.HasProposal {
			p.Proposals++
		}
	}
}

// take removes a proposal.
func (p *party) take(k int) Reply {
	s := &p.Slots[k]
	if s.HasProposal {
		s.HasProposal = false
		p.Proposals--
	}
	s.Waits, s.HasResponse = 0, false
	p.forget(k)
	return s.Proposal
}

// counter keeps an answer for every partner, those that have not spoken and those whose
// negotiations have ended included.
func (p *party) counter(replies []Reply) {
	for k := range p.Slots {
		s := &p.Slots[k]
		s.Response, s.Proposal = replies[k].Response, replies[k]
		if !replies[k].Given {
			s.Response, s.Proposal = End, Reply{}
		}
		s.HasResponse, s.HasProposal, s.Waits, s.HasOffer = true, true, 0, false
	}
	p.Proposals, p.Heard = len(p.Slots), p.Heard[:0]
}
