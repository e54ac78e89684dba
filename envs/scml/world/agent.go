package world

import "github.com/onnxrl/onnxrl/envs/scml/negotiation"

// Agent decides for a factory. It is Independent or Synchronous as well. Agents are called by one
// goroutine, keep the view they are given, and change nothing that it returns.
type Agent interface {
	// Starts comes once, before the first day.
	Starts(v *View)
	// DayBegins comes when the day's exogenous contracts, prices and negotiations are known.
	DayBegins()
	// Agreed comes when a negotiation of the agent's has led to a contract, Failed when one has
	// ended without: m.Day is then the day before if the pass limit cut it off.
	Agreed(c *Contract)
	Failed(m *negotiation.Mechanism)
	// DayEnds comes when nothing is left to negotiate; balance and stock are still those of the
	// morning.
	DayEnds()
}

// Independent agents decide about each negotiation by itself. k is the slot of View.
type Independent interface {
	Agent
	// Propose returns an offer, or false to break the negotiation.
	Propose(k int) (negotiation.Offer, bool)
	// Respond answers an offer; after Reject, Propose is called.
	Respond(k int, o negotiation.Offer) negotiation.Response
}

// Synchronous agents decide about all their negotiations together. replies has one element for
// each slot, zeroed: what is not Given is not answered.
type Synchronous interface {
	Agent
	// FirstProposals writes an offer for each slot: [negotiation.Propose]. Where it writes none the
	// negotiation breaks, unless it does when asked once more.
	FirstProposals(replies []negotiation.Reply)
	// CounterAll answers the offers of the slots in heard, which [View.Offer] returns: Accept, End,
	// or Reject with an offer. A slot that is not answered ends; one that is not in heard may be
	// answered in advance.
	CounterAll(heard []int, replies []negotiation.Reply)
}

// Quiet takes no notice of anything.
type Quiet struct{}

// Starts implements Agent.
func (Quiet) Starts(*View) {}

// DayBegins implements Agent.
func (Quiet) DayBegins() {}

// Agreed implements Agent.
func (Quiet) Agreed(*Contract) {}

// Failed implements Agent.
func (Quiet) Failed(*negotiation.Mechanism) {}

// DayEnds implements Agent.
func (Quiet) DayEnds() {}
