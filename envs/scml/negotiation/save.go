package negotiation

import (
	"errors"
	"fmt"
	"slices"
)

// State is a saved engine; its JSON is all that it has.
type State struct {
	Parties    []party     `json:"parties"`
	Mechanisms []Mechanism `json:"mechanisms"`
	Live       []int       `json:"live"`
	Next       int         `json:"next"`
	Pass       int         `json:"pass"`
	Stuck      int         `json:"stuck"`
	Day        int         `json:"day"`
	Running    bool        `json:"running"`
	Closing    bool        `json:"closing"`
	// Event is what the last call of Next returned, about Mechanism; Pending that the replies to it
	// have not been read.
	Event     Event   `json:"event"`
	Agent     int     `json:"agent"`
	Slot      int     `json:"slot"`
	Mechanism int     `json:"mechanism"`
	Pending   bool    `json:"pending"`
	Heard     []int   `json:"heard"`
	Replies   []Reply `json:"replies"`
}

// State returns what SetState goes on from. It is valid until the next call of Next.
func (e *Engine) State() *State {
	s := &State{
		Parties: e.parties, Mechanisms: e.mechanisms, Live: e.live, Next: e.next, Pass: e.pass, Stuck: e.stuck, Day: e.day, Running: e.running, Closing: e.closing,
		Event: e.asked.Event, Agent: e.asked.Agent, Slot: e.asked.Slot, Mechanism: -1, Pending: e.fresh, Heard: e.asked.Heard, Replies: e.replies,
	}
	if e.asked.Mechanism != nil {
		s.Mechanism = e.index
	}
	return s
}

// SetState goes on from a state, which it takes over, in an engine of as many agents that are asked
// in the same way. Asked and Replies are those of the last call of Next.
func (e *Engine) SetState(s *State) error {
	if s == nil || len(s.Parties) != len(e.parties) {
		return errors.New("set an engine's state: it is of another number of agents")
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("set an engine's state: %w", err)
	}
	for i := range s.Parties {
		if s.Parties[i].Sync != e.parties[i].Sync {
			return fmt.Errorf("set an engine's state: agent %d is synchronous in one of them", i)
		}
	}
	e.parties, e.mechanisms, e.live = s.Parties, s.Mechanisms, s.Live
	e.next, e.pass, e.stuck, e.day, e.running, e.closing = s.Next, s.Pass, s.Stuck, s.Day, s.Running, s.Closing
	e.asked, e.fresh, e.index = Asked{Event: s.Event, Agent: s.Agent, Slot: s.Slot, Heard: s.Heard}, s.Pending, s.Mechanism
	e.replies = s.Replies
	if s.Mechanism >= 0 {
		e.asked.Mechanism = &e.mechanisms[s.Mechanism]
	}
	return nil
}

// Fork returns an engine in the same state, with memory of its own. What was replied to the current
// question, which somebody may still be writing, is left out.
func (e *Engine) Fork() *Engine {
	f := *e
	f.parties, f.mechanisms, f.live, f.heard = slices.Clone(e.parties), slices.Clone(e.mechanisms), slices.Clone(e.live), slices.Clone(e.heard)
	for i := range f.parties {
		p := &f.parties[i]
		p.Slots, p.Heard = slices.Clone(p.Slots), slices.Clone(p.Heard)
	}
	f.replies = make([]Reply, len(e.replies))
	f.asked.Heard = slices.Clone(e.asked.Heard)
	if e.asked.Mechanism != nil {
		f.asked.Mechanism = &f.mechanisms[e.index]
	}
	return &f
}

// check makes sure that no index leads nowhere.
func (s *State) check() error {
	within := func(i, n int) bool { return i >= 0 && i < n }
	wrong := func(what string) error { return fmt.Errorf("%s is out of range", what) }
	n := len(s.Mechanisms)
	if slices.ContainsFunc(s.Live, func(i int) bool { return !within(i, n) }) || s.Next < 0 || s.Next > len(s.Live) {
		return wrong("live")
	}
	for i := range s.Mechanisms {
		m := &s.Mechanisms[i]
		for side, agent := range m.Agents {
			if !within(agent, len(s.Parties)) || !m.Orphan && !within(m.Slots[side], len(s.Parties[agent].Slots)) {
				return wrong(fmt.Sprintf("mechanism %d", i))
			}
		}
		if !within(int(m.Turn), 2) || !within(int(m.Status), len(statuses)) || !within(int(m.At), int(spoken)+1) {
			return wrong(fmt.Sprintf("the progress of mechanism %d", i))
		}
	}
	for i := range s.Parties {
		p := &s.Parties[i]
		for _, slot := range p.Slots {
			if slot.Mechanism >= n || !within(slot.Partner, len(s.Parties)) {
				return wrong(fmt.Sprintf("a slot of agent %d", i))
			}
		}
		if slices.ContainsFunc(p.Heard, func(k int) bool { return !within(k, len(p.Slots)) }) {
			return wrong(fmt.Sprintf("heard of agent %d", i))
		}
	}
	want := 1
	if s.Event == AskFirst || s.Event == AskCounters {
		want = 0
		if within(s.Agent, len(s.Parties)) {
			want = len(s.Parties[s.Agent].Slots)
		}
	}
	if s.Mechanism >= n || s.Pending && (len(s.Replies) != want || s.Mechanism < 0 || !within(s.Agent, len(s.Parties)) || !within(s.Slot, len(s.Parties[s.Agent].Slots)) || s.Event < AskFirst || s.Event > AskProposal) {
		return wrong("what was asked")
	}
	return nil
}
