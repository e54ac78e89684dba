package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// nothing is StdDoNothingAgent.
type nothing struct{ world.Quiet }

func newNothing(rng.Key) world.Agent { return nothing{} }

func (nothing) Propose(int) (negotiation.Offer, bool) { return negotiation.Offer{}, false }

func (nothing) Respond(int, negotiation.Offer) negotiation.Response { return negotiation.End }
