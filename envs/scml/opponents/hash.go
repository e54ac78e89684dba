package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// hashed decides by a hash of who asks whom, when and about what: the same anywhere, without a
// random stream. cmd/peers/scml_compare.py has it in the language of the official program. It makes
// all the mistakes that an agent can make, some of the time.
type hashed struct {
	world.Quiet
	v *world.View
}

// hash and hashSync are the two kinds.
type (
	hash     struct{ hashed }
	hashSync struct{ hashed }
)

func newHash(rng.Key) world.Agent     { return &hash{} }
func newHashSync(rng.Key) world.Agent { return &hashSync{} }

func (a *hashed) Starts(v *world.View) { a.v = v }

// The purposes of a draw.
const (
	toAnswer = iota + 1
	toOffer
	forQuantity
	forTime
	forPrice
)

// draw returns a number in [0, n): FNV-1a of five numbers, mixed as by SplitMix64.
func (a *hashed) draw(purpose, k, round, n int) int {
	x := uint64(0xcbf29ce484222325)
	for _, v := range [...]int{purpose, a.v.Today(), a.v.Index(), a.v.Partner(k), round} {
		x = (x ^ uint64(v)) * 0x100000001b3
	}
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % uint64(n))
}

// offer offers little more than can be made, most of it soon. One in sixty has a quantity that is
// not allowed, and breaks the negotiation.
func (a *hashed) offer(k, round int) negotiation.Offer {
	b := a.v.Box(k)
	o := negotiation.Offer{Quantity: 1 + a.draw(forQuantity, k, round, 6), Time: a.v.Today() + a.draw(forTime, k, round, 4)%(b.High.Time-b.Low.Time+1), Price: b.Low.Price + a.draw(forPrice, k, round, b.High.Price-b.Low.Price+1)}
	if a.draw(toOffer, k, round, 60) == 0 {
		o.Quantity = 31
	}
	return o
}

func (a *hash) Propose(k int) (negotiation.Offer, bool) {
	round := a.v.Round(k)
	return a.offer(k, round), a.draw(toOffer, k, round, 100) != 1
}

func (a *hash) Respond(k int, _ negotiation.Offer) negotiation.Response {
	switch d := a.draw(toAnswer, k, a.v.Round(k), 100); {
	case d < 8:
		return negotiation.Accept
	case d < 10:
		return negotiation.End
	}
	return negotiation.Reject
}

func (a *hashSync) FirstProposals(replies []negotiation.Reply) {
	for k := range replies {
		switch d := a.draw(toOffer, k, 0, 100); {
		case d == 1:
			replies[k] = negotiation.Answer(negotiation.Reject) // no offer
		case d > 5:
			replies[k] = negotiation.Propose(a.offer(k, 0))
		}
	}
}

func (a *hashSync) CounterAll(heard []int, replies []negotiation.Reply) {
	for _, k := range heard {
		round := a.v.Round(k)
		switch d := a.draw(toAnswer, k, round, 100); {
		case d < 12:
			replies[k] = negotiation.Answer(negotiation.Accept)
		case d < 14:
			replies[k] = negotiation.Answer(negotiation.End)
		case d < 16: // left out
		case d < 17:
			replies[k] = negotiation.Answer(negotiation.Reject) // no offer
		default:
			replies[k] = negotiation.Propose(a.offer(k, round))
		}
	}
}
