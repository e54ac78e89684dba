package world

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/scml/market"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// Table is a world with agents seated. An agent that panics is taken to have given no answer: the
// negotiations that it was asked about end, and the world goes on.
type Table struct {
	*World
	seats []seat
}

// seat is an agent, in the form in which it is asked.
type seat struct {
	agent Agent
	alone Independent
	sync  Synchronous
	// faults counts panics, and fault tells of the first.
	faults int
	fault  error
}

// Sit returns a world with an agent for each factory.
func Sit(c *market.Config, agents []Agent) (*Table, error) {
	t := &Table{seats: make([]seat, len(agents))}
	sync := make([]bool, len(agents))
	for i, a := range agents {
		s := &t.seats[i]
		s.agent = a
		s.alone, _ = a.(Independent)
		if s.sync, sync[i] = a.(Synchronous); s.alone == nil && s.sync == nil {
			return nil, fmt.Errorf("seat %d: a %T is neither independent nor synchronous", i, a)
		}
	}
	w, err := New(c, sync)
	if err != nil {
		return nil, err
	}
	t.World = w
	return t, nil
}

// Step goes on to the next question and answers it, if it is one for an agent.
func (t *Table) Step() *Question {
	q := t.Next()
	if q.Event < Settled {
		t.seats[q.Agent].answer(q, t.View(q.Agent))
	}
	return q
}

// PlayDay answers for all agents until a day is settled, and reports whether there was one.
func (t *Table) PlayDay() bool {
	for {
		switch t.Step().Event {
		case Settled:
			return true
		case Over:
			return false
		}
	}
}

// Faults returns how often an agent has panicked, and what the first panic said.
func (t *Table) Faults(agent int) (int, error) {
	return t.seats[agent].faults, t.seats[agent].fault
}

func (s *seat) answer(q *Question, v *View) {
	defer func() {
		if r := recover(); r != nil {
			s.failed(q, v, r)
		}
	}()
	switch q.Event {
	case Starts:
		s.agent.Starts(v)
	case DayBegins:
		s.agent.DayBegins()
	case DayEnds:
		s.agent.DayEnds()
	case Agreed:
		s.agent.Agreed(q.Contract)
	case Failed:
		s.agent.Failed(q.Negotiation)
	case AskFirst:
		s.sync.FirstProposals(q.Replies)
	case AskCounters:
		s.sync.CounterAll(q.Heard, q.Replies)
	case AskResponse:
		q.Replies[0].Response = s.alone.Respond(q.Slot, q.Offer)
	case AskProposal:
		q.Replies[0].Offer, q.Replies[0].Offered = s.alone.Propose(q.Slot)
	}
}

// failed keeps a panic, and answers in the agent's place.
func (s *seat) failed(q *Question, v *View, reason any) {
	if s.faults++; s.fault == nil {
		s.fault = fmt.Errorf("day %d: panic: %v", v.Today(), reason)
	}
	clear(q.Replies)
	if q.Event == AskResponse {
		q.Replies[0].Response = negotiation.End
	}
}
