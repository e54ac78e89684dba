package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// random is RandomStdAgent.
type random struct {
	world.Quiet
	v *world.View
	s *Dice
}

func newRandom(s *Dice) world.Agent { return &random{s: s} }

func (a *random) Starts(v *world.View) { a.v = v }

func (a *random) Memory() any { return a.s }

func (a *random) Propose(k int) (negotiation.Offer, bool) {
	b := a.v.Box(k)
	return negotiation.Offer{
		Quantity: a.s.integer(b.Low.Quantity, b.High.Quantity),
		Time:     a.s.integer(b.Low.Time, b.High.Time),
		Price:    a.s.integer(b.Low.Price, b.High.Price),
	}, true
}

func (a *random) Respond(int, negotiation.Offer) negotiation.Response {
	if a.s.uniform() < 0.005 {
		return negotiation.End
	}
	if a.s.uniform() < 0.1 {
		return negotiation.Accept
	}
	return negotiation.Reject
}
