package negotiation

// Witness sees everything that happens in negotiations, whoever decides. It changes nothing, and
// keeps no pointer to what it is shown.
type Witness interface {
	// Opened comes when a negotiation is made.
	Opened(m *Mechanism)
	// Offered comes when side m.Turn has made the offer m.Current, in the round after m.Round
	// complete ones.
	Offered(m *Mechanism)
	// Ended comes when m.Status says how a negotiation has ended, before the agents learn it. Of
	// one that was left behind by the day before, m.Orphan is set.
	Ended(m *Mechanism)
}

// Watch lets a witness see what happens from now on; nil ends it.
func (e *Engine) Watch(w Witness) { e.witness = w }
