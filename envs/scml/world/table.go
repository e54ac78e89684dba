package world

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// Table is a world with agents seated. Whatever they do the world goes on: an agent that panics, or
// does not return in time, is taken to have given no answer, so that the negotiations that it was
// asked about end; [Table.Faults] counts that.
type Table struct {
	*World
	// Limit is how long Ask and PlayDay wait for an agent at least, and twice as long at most; 0 is
	// for ever. It is not to be changed while they run.
	Limit time.Duration
	seats []seat
}

// Vacant is a seat whose questions [Table.Ask] returns: those of a synchronous agent, or those
// about one negotiation each.
type Vacant struct {
	Quiet
	Sync bool
}

// Remembering agents keep something from one call to the next. Memory points to all of it, which
// JSON can express; it is read by SaveState, and written by LoadState after Starts.
type Remembering interface{ Memory() any }

// seat is an agent, in the form in which it is asked.
type seat struct {
	agent Agent
	alone Independent
	sync  Synchronous
	// vacant seats are answered for by the caller.
	vacant bool
	// v is the agent's own view.
	v      *View
	faults Faults
	// away is what the agent was last called on, where the call was given up.
	away *watch
}

// Sit returns a world with an agent for each factory.
func Sit(c *Config, agents []Agent) (*Table, error) {
	t := &Table{seats: make([]seat, len(agents))}
	sync := make([]bool, len(agents))
	for i, a := range agents {
		s := &t.seats[i]
		s.agent = a
		s.alone, _ = a.(Independent)
		if s.sync, sync[i] = a.(Synchronous); s.alone == nil && s.sync == nil {
			if v, ok := a.(Vacant); ok {
				s.vacant, sync[i] = true, v.Sync
				continue
			}
			return nil, fmt.Errorf("seat %d: a %T is neither independent nor synchronous", i, a)
		}
	}
	w, err := New(c, sync)
	if err != nil {
		return nil, err
	}
	t.World = w
	for i := range t.seats {
		t.seats[i].v = &View{w: w.run, agent: i}
	}
	return t, nil
}

// Step goes on by one call of Next and answers, unless the question is for a vacant seat, or none.
// It waits for agents as long as they take.
func (t *Table) Step() *Question {
	q := t.Next()
	if q.Event < Settled {
		t.answer(q, nil)
	}
	return q
}

// Ask answers for all agents and goes on to the next question of a vacant seat, notices included,
// to Settled or to Over.
func (t *Table) Ask() *Question {
	if t.Limit > 0 {
		return t.watched()
	}
	for {
		if q := t.Step(); t.stops(q) {
			return q
		}
	}
}

// stops reports whether Ask stops at a question.
func (t *Table) stops(q *Question) bool { return q.Event >= Settled || t.seats[q.Agent].vacant }

// PlayDay answers for all agents until a day is settled, and reports whether there was one. Vacant
// seats let every negotiation break.
func (t *Table) PlayDay() bool {
	for {
		switch t.Ask().Event {
		case Settled:
			return true
		case Over:
			return false
		}
	}
}

// Faults returns what an agent has done wrong so far.
func (t *Table) Faults(agent int) Faults { return t.seats[agent].faults }

// answer asks an agent. It returns false if the call was given up meanwhile, by whom w tells; then
// the world goes on elsewhere, and nothing here may be touched.
func (t *Table) answer(q *Question, w *watch) bool {
	s := &t.seats[q.Agent]
	if s.vacant {
		return true
	}
	if s.absent(t.run) {
		s.leave(q)
		return true
	}
	w.begin(s)
	n := w.count()
	reason := s.call(q)
	if !w.end(n) {
		return false
	}
	if reason != nil {
		s.faults.Panics++
		s.faults.tell(q, s.v, fmt.Sprintf("panic: %v", reason))
		s.leave(q)
		return true
	}
	s.judge(q)
	return true
}

// call asks, and returns the reason of a panic.
func (s *seat) call(q *Question) (reason any) {
	defer func() { reason = recover() }()
	switch q.Event {
	case Starts:
		s.agent.Starts(s.v)
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
	return nil
}

// leave answers in the agent's place.
func (s *seat) leave(q *Question) {
	clear(q.Replies)
	if q.Event == AskResponse {
		q.Replies[0].Response = negotiation.End
	}
}
