package negotiation

import "math"

// Offer is an outcome that is proposed: Quantity units, delivered on day Time, at Price money each.
type Offer struct {
	Quantity, Time, Price int
}

// Truncate makes an offer of numbers that need not be whole. The league casts them towards zero
// before the partner sees them. One that is no number, or too large, becomes -1, which no box
// holds.
func Truncate(quantity, time, price float64) Offer {
	return Offer{whole(quantity), whole(time), whole(price)}
}

// whole is x without its fraction. What Go makes of NaN depends on the machine.
func whole(x float64) int {
	if x > -math.MaxInt32 && x < math.MaxInt32 {
		return int(x)
	}
	return -1
}

// Box has the smallest and largest offer of a negotiation, both of which it holds.
type Box struct {
	Low, High Offer
}

// Holds reports whether an offer may be made.
func (b *Box) Holds(o Offer) bool {
	return o.Quantity >= b.Low.Quantity && o.Quantity <= b.High.Quantity && o.Time >= b.Low.Time && o.Time <= b.High.Time && o.Price >= b.Low.Price && o.Price <= b.High.Price
}

// Response is what an agent says of an offer.
type Response int8

// The responses. An agent that gives none is passed over, and its partner may be asked about its
// own offer.
const (
	Reject Response = iota
	Accept
	End
	NoResponse
)

var responses = [...]string{"reject", "accept", "end", "none"}

// Valid reports whether it is one of the responses.
func (r Response) Valid() bool { return r >= 0 && int(r) < len(responses) }

// String returns reject, accept, end or none.
func (r Response) String() string {
	if !r.Valid() {
		return "invalid"
	}
	return responses[r]
}

// Reply is an answer about one negotiation. As an answer to an offer it has a response; with
// Reject, and as a proposal, it has an offer. A proposal that is not Offered breaks the
// negotiation, as an offer outside the box does.
type Reply struct {
	Response Response `json:"response,omitempty"`
	Offer    Offer    `json:"offer"`
	Offered  bool     `json:"offered,omitempty"`
	// Given says that a synchronous agent answers about this partner at all: a first proposal that
	// is not given is asked for again, and a partner that an agent leaves out of its counter offers
	// learns that the negotiation ends.
	Given bool `json:"given,omitempty"`
}

// Propose is the reply that offers o.
func Propose(o Offer) Reply { return Reply{Offer: o, Offered: true, Given: true} }

// Answer is the reply that only responds.
func Answer(r Response) Reply { return Reply{Response: r, Given: true} }
