package shield

import (
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Watch returns an agent that decides as another one does, independent or synchronous, and whose
// actions are judged: an offer or an acceptance is unsafe if it is outside of what may be offered,
// or [Ledger.Safe] would not have it.
func Watch(a world.Agent) league.Watched {
	if s, ok := a.(world.Synchronous); ok {
		return &watchedSync{observer{Agent: a}, s}
	}
	alone, _ := a.(world.Independent)
	return &watchedAlone{observer{Agent: a}, alone}
}

// observer keeps a ledger beside an agent.
type observer struct {
	world.Agent
	Ledger
	actions actions
}

// actions are those that were judged.
type actions struct {
	All    int `json:"all"`
	Unsafe int `json:"unsafe"`
}

// Actions implements league.Watched.
func (w *observer) Actions() (all, unsafe int) { return w.actions.All, w.actions.Unsafe }

func (w *observer) Memory() any {
	m := &struct {
		Ledger  *memory  `json:"ledger"`
		Actions *actions `json:"actions"`
		Inside  any      `json:"inside,omitempty"`
	}{Ledger: &w.memory, Actions: &w.actions}
	if r, ok := w.Agent.(world.Remembering); ok {
		m.Inside = r.Memory()
	}
	return m
}

func (w *observer) Starts(v *world.View) {
	w.Ledger.Starts(v)
	w.Agent.Starts(v)
}

func (w *observer) DayBegins() {
	w.Ledger.DayBegins()
	w.Agent.DayBegins()
}

func (w *observer) Agreed(c *world.Contract) {
	w.Ledger.Agreed(c)
	w.Agent.Agreed(c)
}

func (w *observer) Failed(m *negotiation.Mechanism) {
	for k := range w.v.Slots() {
		if w.v.Negotiation(k) == m {
			w.Release(k)
		}
	}
	w.Agent.Failed(m)
}

// judge counts an action of a slot, which leaves an offer that may be accepted, or is.
func (w *observer) judge(k int, o negotiation.Offer) {
	side, b := Sell, w.v.Box(k)
	if w.v.Buying(k) {
		side = Buy
	}
	w.actions.All++
	w.Release(k)
	if !b.Holds(o) {
		// It breaks the negotiation, and nobody can accept it.
		w.actions.Unsafe++
		return
	}
	if !w.Safe(k, side, o) {
		w.actions.Unsafe++
	}
	w.Hold(k, side, o)
}

type watchedSync struct {
	observer
	inside world.Synchronous
}

func (w *watchedSync) FirstProposals(replies []negotiation.Reply) {
	w.inside.FirstProposals(replies)
	for k := range replies {
		if replies[k].Offered {
			w.judge(k, replies[k].Offer)
		}
	}
}

func (w *watchedSync) CounterAll(heard []int, replies []negotiation.Reply) {
	for _, k := range heard {
		w.Release(k)
	}
	w.inside.CounterAll(heard, replies)
	for _, k := range heard {
		if r := &replies[k]; r.Given && r.Response == negotiation.Accept {
			w.judge(k, w.v.Offer(k))
		}
	}
	for k := range replies {
		if r := &replies[k]; r.Given && r.Response == negotiation.Reject && r.Offered {
			w.judge(k, r.Offer)
		}
	}
}

type watchedAlone struct {
	observer
	inside world.Independent
}

func (w *watchedAlone) Propose(k int) (negotiation.Offer, bool) {
	o, ok := w.inside.Propose(k)
	if ok {
		w.judge(k, o)
	}
	return o, ok
}

func (w *watchedAlone) Respond(k int, o negotiation.Offer) negotiation.Response {
	w.Release(k)
	r := w.inside.Respond(k, o)
	if r == negotiation.Accept {
		w.judge(k, o)
	}
	return r
}
