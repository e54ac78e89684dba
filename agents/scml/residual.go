package scml

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// residual is the baseline's answer, changed by the residual.
func (t *Thread) residual(box *negotiation.Box) negotiation.Reply {
	weight := float64(t.Weight)
	change := func(i int) float64 { return weight * Cut(t.Residual[i]) }
	accepts := t.Base.Given && t.Base.Response == negotiation.Accept
	if t.Heard && sign(accepts)+2*change(2) > 0 {
		return negotiation.Answer(negotiation.Accept)
	}
	if ends := !accepts && !t.Base.Offered; sign(ends)+2*change(3) > 0 {
		return negotiation.Answer(negotiation.End)
	}
	o := t.Counter.Offer
	o.Quantity = within(float64(o.Quantity)+change(0)*float64(t.Lines)/2, box.Low.Quantity, box.High.Quantity)
	o.Price = within(float64(o.Price)+change(1)*float64(box.High.Price-box.Low.Price)/2, box.Low.Price, box.High.Price)
	return negotiation.Propose(o)
}

// ResidualOf is the residual that makes the baseline's answer another one, as far as there is one:
// offers differ by at most half the lines and half the range, and the day of delivery stays.
func (t *Thread) ResidualOf(r *negotiation.Reply) (x [Residual]float32) {
	apart := func(i int, now, base bool) { x[i] = float32((sign(now) - sign(base)) / 2) }
	accepts := t.Base.Given && t.Base.Response == negotiation.Accept
	ends := !accepts && !t.Base.Offered
	accepted := r.Given && r.Response == negotiation.Accept
	apart(2, accepted, accepts)
	if !accepted {
		apart(3, !r.Offered, ends)
	}
	if o := t.Counter.Offer; r.Offered && !accepted {
		x[0] = float32(min(max(2*float64(r.Offer.Quantity-o.Quantity)/float64(t.Lines), -1), 1))
		if t.High > t.Low {
			x[1] = float32(min(max(2*float64(r.Offer.Price-o.Price)/float64(t.High-t.Low), -1), 1))
		}
	}
	return x
}

// Limits returns the least and the greatest of each component of a thread's residual that the
// shield would leave as it is, beside the offers that are open: an offer of more units would be cut
// down, and an acceptance refused. Prices and ends are free. One unit is the least of an offer,
// also where none is safe.
func (a *Agent) Limits(t *Thread) (low, high [Residual]float32) {
	low, high = [Residual]float32{-1, -1, -1, -1}, [Residual]float32{1, 1, 1, 1}
	side, box, o := Side(a.v, t.Slot), a.v.Box(t.Slot), t.Counter.Offer
	most := o
	most.Quantity = box.High.Quantity
	high[0] = float32(min(max(2*float64(a.Max(t.Slot, side, most)-o.Quantity)/float64(t.Lines), -1), 1))
	if t.Heard && t.Safe < t.Offer.Quantity {
		high[2] = float32(-sign(t.Base.Given && t.Base.Response == negotiation.Accept) / 2)
	}
	return low, high
}

// direct is the answer that the residual says.
func (t *Thread) direct(box *negotiation.Box) negotiation.Reply {
	x := func(i int) float64 { return Cut(t.Residual[i]) }
	if t.Heard && x(2) > 0 {
		return negotiation.Answer(negotiation.Accept)
	}
	q := within(x(0)*MostUnits*float64(t.Lines), 0, box.High.Quantity)
	if x(3) > 0 || q == 0 {
		return negotiation.Answer(negotiation.End)
	}
	low, high := float64(box.Low.Price), float64(box.High.Price)
	return negotiation.Propose(negotiation.Offer{
		Quantity: q, Time: within(float64(t.Today)+5*(1+x(4)), box.Low.Time, box.High.Time),
		Price: within(low+(high-low)*(1+x(1))/2, box.Low.Price, box.High.Price),
	})
}

// within rounds x, halves up, and cuts it to a range.
func within(x float64, low, high int) int { return min(max(int(math.Floor(x+0.5)), low), high) }

func sign(b bool) float64 {
	if b {
		return 1
	}
	return -1
}
