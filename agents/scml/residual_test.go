package scml

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// TestReplies tables what residuals and answers come to.
func TestReplies(t *testing.T) {
	box := negotiation.Box{Low: negotiation.Offer{Quantity: 1, Time: 5, Price: 10}, High: negotiation.Offer{Quantity: 30, Time: 15, Price: 20}}
	offer := func(q, day, p int) negotiation.Reply {
		return negotiation.Propose(negotiation.Offer{Quantity: q, Time: day, Price: p})
	}
	accept, end := negotiation.Answer(negotiation.Accept), negotiation.Answer(negotiation.End)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	type answer = [Direct]float32
	n := 0
	for _, c := range []struct {
		name     string
		base     negotiation.Reply
		heard    bool
		direct   bool
		residual answer
		weight   float32
		want     negotiation.Reply
	}{
		{"nothing changes an offer", offer(4, 5, 15), true, false, answer{}, 1, offer(4, 5, 15)},
		{"nothing changes an acceptance", accept, true, false, answer{}, 1, accept},
		{"nothing changes an end", end, true, false, answer{}, 1, end},
		{"more units", offer(4, 5, 15), true, false, answer{0.5}, 1, offer(7, 5, 15)},
		{"halves go up", offer(4, 5, 15), true, false, answer{0.1, 0.1}, 1, offer(5, 5, 16)},
		{"less than there is", offer(4, 5, 15), true, false, answer{-1, -1}, 1, offer(1, 5, 10)},
		{"more than fits", offer(28, 5, 15), true, false, answer{7, 7}, 1, offer(30, 5, 20)},
		{"infinite", offer(4, 5, 15), true, false, answer{inf, -inf}, 1, offer(9, 5, 10)},
		{"no numbers", offer(4, 5, 15), true, false, answer{nan, nan, nan, nan}, 1, offer(4, 5, 15)},
		{"half a weight", offer(4, 5, 15), true, false, answer{0.5, 0.4}, 0.5, offer(5, 5, 16)},
		{"no weight", offer(4, 5, 15), true, false, answer{1, 1, 1, 1}, 0, offer(4, 5, 15)},
		{"accepts after all", offer(4, 5, 15), true, false, answer{0, 0, 0.51}, 1, accept},
		{"nearly accepts", offer(4, 5, 15), true, false, answer{0, 0, 0.5}, 1, offer(4, 5, 15)},
		{"accepts by weight", offer(4, 5, 15), true, false, answer{0, 0, 0.26}, 2, accept},
		{"nothing to accept", offer(4, 5, 15), false, false, answer{0, 0, 1}, 1, offer(4, 5, 15)},
		{"does not accept after all", accept, true, false, answer{0, 0, -0.51}, 1, offer(6, 7, 13)},
		{"ends after all", offer(4, 5, 15), true, false, answer{0, 0, 0, 0.51}, 1, end},
		{"does not end after all", end, true, false, answer{0, 0, 0, -0.51}, 1, offer(6, 7, 13)},
		{"accepts rather than end", end, true, false, answer{0, 0, 1, 1}, 1, accept},

		{"an answer", end, true, true, answer{0.4, 0, -1, -1, -1}, 1, offer(6, 5, 15)},
		{"an answer for later", accept, true, true, answer{0.4, 1, -1, -1, 1}, 1, offer(6, 15, 20)},
		{"an answer beyond", accept, true, true, answer{inf, inf, -1, -1, inf}, 1, offer(15, 15, 20)},
		{"an answer that accepts", end, true, true, answer{0, 0, 0.01}, 1, accept},
		{"an answer that ends", accept, true, true, answer{1, 0, 0, 0.01}, 1, end},
		{"an answer of no unit", accept, true, true, answer{-1, 0, 0, 0}, 1, end},
		{"an answer without numbers", accept, true, true, answer{nan, nan, nan, nan, nan}, 1, end},
		{"an answer knows no weight", end, true, true, answer{0.4, 0, -1, -1, -1}, 0, offer(6, 5, 15)},
	} {
		x := Thread{ThreadView: ThreadView{Heard: c.heard, Offer: negotiation.Offer{Quantity: 6, Time: 7, Price: 12}, Base: c.base, Counter: offer(6, 7, 13), Today: 5, Lines: 10, Low: 10, High: 20}, Residual: c.residual, Weight: c.weight}
		if c.base.Offered {
			x.Counter = c.base
		}
		got := x.residual(&box)
		if c.direct {
			got = x.direct(&box)
		}
		if got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.name, got, c.want)
		}
		n++
	}
	if n != 27 {
		t.Errorf("%d cases", n)
	}
	for _, c := range [][2]float32{{0, 1}, {1, 2}, {-1, 0}, {9, 2}, {-9, 0}, {0.5, 1.5}, {nan, 1}} {
		if got := Weight(c[0]); got != c[1] {
			t.Errorf("the weight of %g is %g, expected %g", c[0], got, c[1])
		}
	}
}

// TestResidualOf: the residual of an answer gives that answer, where one can.
func TestResidualOf(t *testing.T) {
	box := negotiation.Box{Low: negotiation.Offer{Quantity: 1, Time: 5, Price: 10}, High: negotiation.Offer{Quantity: 30, Time: 15, Price: 20}}
	offer := func(q, p int) negotiation.Reply {
		return negotiation.Propose(negotiation.Offer{Quantity: q, Time: 7, Price: p})
	}
	accept, end := negotiation.Answer(negotiation.Accept), negotiation.Answer(negotiation.End)
	n := 0
	for _, base := range []negotiation.Reply{offer(6, 13), accept, end, {}} {
		for _, answer := range []negotiation.Reply{offer(6, 13), offer(11, 18), offer(1, 10), offer(7, 14), accept, end} {
			x := Thread{ThreadView: ThreadView{Heard: true, Offer: negotiation.Offer{Quantity: 6, Time: 7, Price: 12}, Base: base, Counter: offer(6, 13), Today: 5, Lines: 10, Low: 10, High: 20}, Weight: 1}
			residual := x.ResidualOf(&answer)
			copy(x.Residual[:], residual[:])
			if got := x.residual(&box); got != answer {
				t.Errorf("%+v from %+v: the residual %v gives %+v", answer, base, residual, got)
			}
			n++
		}
	}
	far := Thread{ThreadView: ThreadView{Base: offer(6, 13), Counter: offer(6, 13), Lines: 10, Low: 10, High: 20}}
	if got := far.ResidualOf(&[]negotiation.Reply{offer(30, 20)}[0]); got != [Residual]float32{1, 1, 0, 0} {
		t.Errorf("an offer that is far off: %v", got)
	}
	if n != 24 {
		t.Errorf("%d answers", n)
	}
}
