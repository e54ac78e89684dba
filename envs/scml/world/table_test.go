package world_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// steady offers five units at the middle of the range and accepts what is offered to it, if it is
// asked to.
type steady struct {
	world.Quiet
	v       *world.View
	accepts bool
}

func (a *steady) Starts(v *world.View) { a.v = v }

func (a *steady) Propose(k int) (negotiation.Offer, bool) {
	b := a.v.Box(k)
	return negotiation.Offer{Quantity: 5, Time: b.Low.Time, Price: (b.Low.Price + b.High.Price) / 2}, true
}

func (a *steady) Respond(int, negotiation.Offer) negotiation.Response {
	if a.accepts {
		return negotiation.Accept
	}
	return negotiation.Reject
}

// alone panics when it is asked, and together all at once; both also in their other calls.
type alone struct{ world.Quiet }

func (alone) DayBegins()                                          { panic("no idea") }
func (alone) Propose(int) (negotiation.Offer, bool)               { panic("no offer") }
func (alone) Respond(int, negotiation.Offer) negotiation.Response { panic("no answer") }

type together struct{ world.Quiet }

func (together) FirstProposals(replies []negotiation.Reply) {
	replies[0] = negotiation.Propose(negotiation.Offer{Quantity: 1})
	panic("no offers")
}
func (together) CounterAll([]int, []negotiation.Reply) { panic("no answers") }

// none is not an agent that can be asked.
type none struct{ world.Quiet }

// TestAgentsThatPanic end their negotiations, and the world goes on without them.
func TestAgentsThatPanic(t *testing.T) {
	cases := []struct {
		name          string
		seller, buyer world.Agent
		agreements    int
		faults        [2]int
		says          string
	}{
		{"nobody", &steady{accepts: true}, &steady{}, 3, [2]int{}, ""},
		{"seller", alone{}, &steady{}, 0, [2]int{6, 0}, "day 0, day begins: panic: no idea"},
		{"buyer", &steady{}, alone{}, 0, [2]int{0, 6}, "day 0, day begins: panic: no idea"},
		{"synchronous seller", together{}, &steady{}, 0, [2]int{6, 0}, "day 0, first proposals: panic: no offers"},
		{"synchronous buyer", &steady{}, together{}, 0, [2]int{0, 3}, "day 0, first proposals: panic: no offers"},
	}
	for _, k := range cases {
		c := two(3, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1000}, world.Factory{Cost: 4, Balance: 1000})
		w, err := world.Sit(c, []world.Agent{k.seller, k.buyer})
		if err != nil {
			t.Fatal(err)
		}
		days, agreements := 0, 0
		for w.PlayDay() {
			days++
			agreements += len(w.SignedToday())
		}
		a, b := w.Faults(0), w.Faults(1)
		if days != 3 || agreements != k.agreements || [2]int{a.Panics, b.Panics} != k.faults || a.Count()+b.Count() != a.Panics+b.Panics {
			t.Errorf("%s: %d days, %d agreements, %+v and %+v", k.name, days, agreements, a, b)
		}
		if a.First+b.First != k.says {
			t.Errorf("%s: %q", k.name, a.First+b.First)
		}
	}
	c := two(3, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1000}, world.Factory{Cost: 4, Balance: 1000})
	if _, err := world.Sit(c, []world.Agent{&steady{}, none{}}); err == nil || !strings.Contains(err.Error(), "seat 1: a world_test.none is neither") {
		t.Errorf("%v", err)
	}
	if _, err := world.Sit(c, []world.Agent{&steady{}}); err == nil || !strings.Contains(err.Error(), "1 agents for 2 factories") {
		t.Errorf("%v", err)
	}
}
