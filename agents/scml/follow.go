package scml

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// Follow takes notice, in place of Finish, of what somebody else has answered to the threads of
// Prepare: offers are open, and moves of the negotiations.
func (a *Agent) Follow(replies []negotiation.Reply) {
	for i := range a.threads {
		t := &a.threads[i]
		side := 0
		if !t.Buying {
			side = 1
		}
		switch r := &replies[t.Slot]; {
		case r.Offered:
			a.Hold(t.Slot, side, r.Offer)
			a.Moves[t.Slot] = append(a.Moves[t.Slot], Move{Own: true, Round: t.Round, Offer: r.Offer})
		case t.Heard && r.Response == negotiation.Accept:
			a.Hold(t.Slot, side, t.Offer)
		}
	}
}
