package world

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// Faults is what an agent has done wrong; the JSON keys are stable.
type Faults struct {
	// Panics and Stalls are calls without an answer; while an agent has not come back from one that
	// was given up it is not called.
	Panics int `json:"panics"`
	Stalls int `json:"stalls"`
	// Nonsense counts invalid answers: offers that may not be made, which break the negotiation,
	// and responses that are none, which end it.
	Nonsense int `json:"nonsense"`
	// First tells of the first of them, or is empty.
	First string `json:"first_fault,omitempty"`
}

// Count is the number of faults.
func (f Faults) Count() int { return f.Panics + f.Stalls + f.Nonsense }

// Add adds those of another world.
func (f *Faults) Add(o Faults) {
	f.Panics, f.Stalls, f.Nonsense = f.Panics+o.Panics, f.Stalls+o.Stalls, f.Nonsense+o.Nonsense
	if f.First == "" {
		f.First = o.First
	}
}

// judge counts the invalid answers to a question.
func (s *seat) judge(q *Question) {
	switch q.Event {
	case AskResponse:
		s.judgeOne(q, q.Slot, &q.Replies[0], true)
	case AskProposal:
		s.judgeOne(q, q.Slot, &q.Replies[0], false)
	case AskFirst, AskCounters:
		for k := range q.Replies {
			if r := &q.Replies[k]; r.Given {
				s.judgeOne(q, k, r, q.Event == AskCounters)
			}
		}
	}
}

// judgeOne looks at the answer about a slot, which is one to an offer or a proposal.
func (s *seat) judgeOne(q *Question, k int, r *negotiation.Reply, answers bool) {
	f, known := &s.faults, s.faults.First != ""
	if answers && !r.Response.Valid() {
		f.Nonsense++
		if !known {
			f.tell(q, s.v, fmt.Sprintf("response %d, expected 0 … 3", r.Response))
		}
		return
	}
	if !r.Offered || answers && r.Response != negotiation.Reject {
		return
	}
	if b, o := s.v.Box(k), r.Offer; !b.Holds(o) {
		f.Nonsense++
		if !known {
			f.tell(q, s.v, fmt.Sprintf("%d units on day %d at %d, expected %d … %d, %d … %d and %d … %d", o.Quantity, o.Time, o.Price, b.Low.Quantity, b.High.Quantity, b.Low.Time, b.High.Time, b.Low.Price, b.High.Price))
		}
	}
}

// tell keeps what is said of a fault, if it is the first.
func (f *Faults) tell(q *Question, v *View, what string) {
	if f.First == "" {
		f.First = fmt.Sprintf("day %d, %v: %s", v.Today(), q.Event, what)
	}
}
