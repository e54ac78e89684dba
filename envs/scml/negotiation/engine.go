package negotiation

import "slices"

// Event is what [Engine.Next] stops for.
type Event int8

// The events. The first four ask for a decision of Asked.Agent, which is written into the replies;
// the fifth tells that a negotiation has ended, and the last that the day has.
const (
	// AskFirst asks a synchronous agent for its first proposals, one in each of its slots.
	AskFirst Event = iota + 1
	// AskCounters asks it about the offers in Asked.Heard: a response to each and, where it
	// rejects, an offer.
	AskCounters
	// AskResponse asks about the current offer of Asked.Slot.
	AskResponse
	// AskProposal asks for an offer in Asked.Slot.
	AskProposal
	// Ended tells that Asked.Mechanism has ended.
	Ended
	// DayOver tells that no pass is left or no negotiation runs.
	DayOver
)

// Asked is the state of an engine between two calls of Next.
type Asked struct {
	Event Event
	// Agent is asked, about Slot where it is one slot.
	Agent, Slot int
	// Mechanism is the negotiation that led here.
	Mechanism *Mechanism
	// Heard are the slots that AskCounters is about, in the order in which they were heard. It is
	// valid until the next call.
	Heard []int
}

// Engine plays the negotiations of one day after the other. Make one with [New].
type Engine struct {
	Options
	parties    []party
	mechanisms []Mechanism
	// live are the mechanisms that the current pass is to step, in the order they were made.
	live []int
	// next is the position in live, pass the number of passes that are complete.
	next, pass int
	// stuck is how many of the day's negotiations never begin: while there is one, the day does not
	// end before its last pass.
	stuck int
	day   int
	// running says that the day is not over, closing that what still runs is being ended.
	running, closing bool

	// index is the mechanism's of asked.
	asked Asked
	index int
	// replies are to what was asked; fresh says that they have not been read. reply is the one that
	// the negotiation being played goes on with.
	replies []Reply
	fresh   bool
	reply   Reply
	heard   []int
	witness Witness
}

// Options are the rules of an engine.
type Options struct {
	// Rounds is how many rounds a negotiation has, Passes how many passes a day: 0 for as many as
	// it takes.
	Rounds, Passes int
	// Finish ends negotiations that the last pass cuts off on their day, instead of the next one.
	Finish bool
	// Patient agents answer no offer before each of their negotiations that run has one, however
	// often they let a partner wait: all negotiations go on round by round, as a log's are
	// followed. Officially they answer what is there after a while. All agents must be synchronous.
	Patient bool
}

// New returns an engine for agents, of which sync says whether each decides synchronously.
func New(sync []bool, o Options) *Engine {
	e := &Engine{Options: o, parties: make([]party, len(sync))}
	for i := range sync {
		e.parties[i].Sync = sync[i]
	}
	return e
}

// Begin begins a day: agents forget yesterday. Negotiations that still run are left behind: the
// first time that they are stepped, they end. Those of the day are opened next.
func (e *Engine) Begin(day int) {
	kept := e.mechanisms[:0]
	for i := range e.mechanisms {
		if m := &e.mechanisms[i]; m.Status == Running {
			m.Orphan = true
			kept = append(kept, *m)
		}
	}
	e.mechanisms, e.live = kept, e.live[:0]
	for i := range kept {
		e.live = append(e.live, i)
	}
	for i := range e.parties {
		e.parties[i].reset()
	}
	e.day, e.next, e.pass, e.stuck, e.running, e.closing = day, 0, 0, 0, true, false
	e.asked, e.fresh = Asked{}, false
}

// Replies is where answers to the current question are written: one reply for a slot that is asked
// about alone, and one for each slot of the agent otherwise. It is zeroed when the question is
// asked.
func (e *Engine) Replies() []Reply { return e.replies }

// Asked is what the last call of Next returned.
func (e *Engine) Asked() *Asked { return &e.asked }

// Slots returns how many negotiations an agent has today, those that have ended included.
func (e *Engine) Slots(agent int) int { return len(e.parties[agent].Slots) }

// Partner returns the other agent of a slot.
func (e *Engine) Partner(agent, slot int) int { return e.parties[agent].Slots[slot].Partner }

// Running is how many negotiations of an agent have not ended, those included that never begin.
func (e *Engine) Running(agent int) int { return e.parties[agent].Running }

// Negotiation returns what a slot stands for, or nil where it never begins. It is valid until the
// next day.
func (e *Engine) Negotiation(agent, slot int) *Mechanism {
	if i := e.parties[agent].Slots[slot].Mechanism; i >= 0 {
		return &e.mechanisms[i]
	}
	return nil
}

// Heard returns the offer in a slot that AskCounters is about.
func (e *Engine) Heard(agent, slot int) Offer { return e.parties[agent].Slots[slot].Offer }

// Leftovers returns the negotiations that still run, and are stepped no more today.
func (e *Engine) Leftovers() []Mechanism {
	var left []Mechanism
	for i := range e.mechanisms {
		if e.mechanisms[i].Status == Running {
			left = append(left, e.mechanisms[i])
		}
	}
	return left
}

// Next goes on to the next event. What the last one asked for is read from the replies.
func (e *Engine) Next() *Asked {
	if !e.running {
		e.asked = Asked{Event: DayOver}
		return &e.asked
	}
	for {
		if e.next == len(e.live) {
			if e.pass++; e.closing || !e.again() {
				if !e.closing && e.Finish && len(e.live) > 0 {
					e.closing = true
					continue
				}
				e.running, e.asked = false, Asked{Event: DayOver}
				return &e.asked
			}
			continue
		}
		e.index = e.live[e.next]
		m := &e.mechanisms[e.index]
		if m.Status == Running && (e.closing && !e.end(m, TimedOut) || !e.closing && !e.play(m)) {
			return &e.asked
		}
		e.next++
	}
}

// again begins another pass over what still runs, or reports that there is none.
func (e *Engine) again() bool {
	e.next = 0
	e.live = slices.DeleteFunc(e.live, func(i int) bool { return e.mechanisms[i].Status != Running })
	if e.Passes > 0 && e.pass >= e.Passes {
		return false
	}
	return len(e.live) > 0 || e.stuck > 0 && e.Passes > 0
}

// play takes a negotiation through its round until an answer is needed, for which it returns false,
// or until the pass is done with it.
func (e *Engine) play(m *Mechanism) bool {
	for {
		agent, k := m.Agents[m.Turn], m.Slots[m.Turn]
		p := &e.parties[agent]
		switch m.At {
		case roundBegins:
			if m.Round >= e.Rounds {
				return e.end(m, TimedOut)
			}
			m.Turn, m.At = 0, turnBegins
		case turnBegins:
			if m.At = hears; !m.Opened {
				m.At = speaks
			}
			if m.Orphan {
				m.Round++
				return e.end(m, Broken)
			}
		case hears:
			if m.Orphan {
				m.Round++
				return e.end(m, Broken)
			}
			if !p.Sync {
				m.At = answered
				return e.ask(AskResponse, m, agent, k)
			}
			s := &p.Slots[k]
			if s.HasResponse {
				s.Waits, s.HasResponse = 0, false
				e.reply, m.At = Answer(s.Response), answered
				continue
			}
			p.hear(k, m.Current)
			if e.waits(p, s) {
				s.Waits++
				return true
			}
			m.At = reviews
			if !p.FirstAsked {
				return e.ask(AskFirst, m, agent, k)
			}
		case reviews:
			if !p.FirstAsked {
				p.FirstAsked = true
				p.propose(e.take())
			}
			m.At = countered
			return e.ask(AskCounters, m, agent, k)
		case countered:
			p.counter(e.take())
			s := &p.Slots[k]
			e.reply, m.At = Answer(s.Response), answered
			s.HasResponse = false
		case answered:
			if e.fresh {
				e.reply = e.take()[0]
			}
			switch e.reply.Response {
			case Accept:
				m.Round++
				return e.end(m, Agreed)
			case Reject:
				m.At = speaks
			case NoResponse:
				if e.turned(m) {
					return true
				}
			default:
				m.Round++
				return e.end(m, Broken)
			}
		case speaks:
			if !p.Sync {
				m.At = spoken
				return e.ask(AskProposal, m, agent, k)
			}
			if p.Proposals == 0 {
				m.At = opened
				return e.ask(AskFirst, m, agent, k)
			}
			m.At = reopened
		case opened:
			p.FirstAsked = true
			p.propose(e.take())
			m.At = reopened
		case reopened:
			if e.fresh {
				p.propose(e.take())
			} else if !p.Slots[k].HasProposal {
				return e.ask(AskFirst, m, agent, k)
			}
			if e.reply = (Reply{}); p.Slots[k].HasProposal {
				e.reply = p.Slots[k].Proposal
			}
			p.take(k)
			m.At = spoken
		case spoken:
			if e.fresh {
				e.reply = e.take()[0]
			}
			if !e.reply.Offered || !m.Box.Holds(e.reply.Offer) {
				m.Round++
				return e.end(m, Broken)
			}
			m.Current, m.Opened = e.reply.Offer, true
			if e.witness != nil {
				e.witness.Offered(m)
			}
			if e.turned(m) {
				return true
			}
		}
	}
}

// waits reports whether an agent that has heard an offer in a slot lets the partner wait.
func (e *Engine) waits(p *party, s *slot) bool {
	if !e.Patient {
		return len(p.Heard) < p.Running && s.Waits < p.Running
	}
	n := p.Running
	for i := range p.Slots {
		if p.Slots[i].Mechanism < 0 {
			n--
		}
	}
	return len(p.Heard) < n
}

// turned passes the turn on, and reports whether the round is over.
func (e *Engine) turned(m *Mechanism) bool {
	if m.At = turnBegins; m.Turn == 0 {
		m.Turn = 1
		return false
	}
	m.Turn, m.At = 0, roundBegins
	m.Round++
	return true
}

// ask stops for a decision.
func (e *Engine) ask(what Event, m *Mechanism, agent, k int) bool {
	e.asked = Asked{Event: what, Agent: agent, Slot: k, Mechanism: m}
	n := 1
	if what == AskFirst || what == AskCounters {
		n = e.Slots(agent)
	}
	if what == AskCounters {
		p := &e.parties[agent]
		e.heard = e.heard[:0]
		for _, i := range p.Heard {
			if o := e.Negotiation(agent, i); o != nil && o.Status == Running {
				e.heard = append(e.heard, i)
			}
		}
		e.asked.Heard = e.heard
	}
	e.replies = slices.Grow(e.replies[:0], n)[:n]
	clear(e.replies)
	e.fresh = true
	return false
}

// take returns the replies that were written.
func (e *Engine) take() []Reply {
	e.fresh = false
	return e.replies
}

// end ends a negotiation, of which Next tells.
func (e *Engine) end(m *Mechanism, s Status) bool {
	m.Status = s
	if e.witness != nil {
		e.witness.Ended(m)
	}
	if !m.Orphan {
		for side, agent := range m.Agents {
			p := &e.parties[agent]
			p.Running--
			p.forget(m.Slots[side])
		}
	}
	e.asked = Asked{Event: Ended, Mechanism: m}
	return false
}
