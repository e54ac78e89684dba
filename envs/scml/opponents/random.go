package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// random is RandomStdAgent.
type random struct {
	world.Quiet
	v *world.View
	s *rng.Stream
}

func newRandom(key rng.Key) world.Agent { return &random{s: key.Stream()} }

func (a *random) Starts(v *world.View) { a.v = v }

func (a *random) Propose(k int) (negotiation.Offer, bool) {
	b := a.v.Box(k)
	return negotiation.Offer{
		Quantity: integer(a.s, b.Low.Quantity, b.High.Quantity),
		Time:     integer(a.s, b.Low.Time, b.High.Time),
		Price:    integer(a.s, b.Low.Price, b.High.Price),
	}, true
}

func (a *random) Respond(int, negotiation.Offer) negotiation.Response {
	if a.s.Bernoulli(0.005) {
		return negotiation.End
	}
	if a.s.Bernoulli(0.1) {
		return negotiation.Accept
	}
	return negotiation.Reject
}
