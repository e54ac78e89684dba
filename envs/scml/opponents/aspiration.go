package opponents

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// aspiration is SingleAgreementAspirationAgent, after what it was seen to do: one agreement a day
// is all it is after, and what it aspires to decays with time. That works on the first level only.
// On the last one it offers prices of what it sells, which break the negotiation, and on middle
// levels it ends all.
type aspiration struct {
	world.Quiet
	aspirationMemory
	v *world.View
}

// aspirationMemory is what it keeps.
type aspirationMemory struct {
	Random *Dice `json:"random"`
	// Agrees says that there is a contract of today.
	Agrees bool `json:"agrees"`
}

func newAspiration(s *Dice) world.Agent {
	return &aspiration{aspirationMemory: aspirationMemory{Random: s}}
}

func (a *aspiration) Starts(v *world.View) { a.v = v }

func (a *aspiration) Memory() any { return &a.aspirationMemory }

func (a *aspiration) DayBegins() { a.Agrees = false }

func (a *aspiration) Agreed(*world.Contract) { a.Agrees = true }

// utility is the day's revenue of a sale, less the penalty for what cannot be delivered.
func (a *aspiration) utility(o negotiation.Offer) float64 {
	if o.Time != a.v.Today() {
		return 0
	}
	made := min(o.Quantity, a.units())
	return float64(made*(o.Price-a.v.Cost())) - float64(float64(o.Quantity-made)*a.v.ShortfallPenalty())
}

// units is how many it can deliver today.
func (a *aspiration) units() int { return min(max(a.v.NeededSales(), 0), a.v.Lines()) }

func (a *aspiration) FirstProposals(replies []negotiation.Reply) {
	b, s := a.v.OutputBox(), a.v.Today()
	for k := range replies {
		switch {
		case a.v.Middle():
		case a.v.Last():
			q := min(max(a.v.NeededSupplies(), 1), a.v.Lines())
			replies[k] = negotiation.Propose(negotiation.Offer{Quantity: q, Time: s, Price: b.Low.Price})
		case a.units() == 0:
			replies[k] = negotiation.Propose(negotiation.Offer{Quantity: 1, Time: min(s+1, b.High.Time), Price: b.Low.Price})
		default:
			replies[k] = negotiation.Propose(negotiation.Offer{Quantity: a.units(), Time: s, Price: b.High.Price})
		}
	}
}

func (a *aspiration) CounterAll(heard []int, replies []negotiation.Reply) {
	if !a.v.First() || a.Agrees {
		return
	}
	b, s := a.v.OutputBox(), a.v.Today()
	ideal := negotiation.Offer{Quantity: a.units(), Time: s, Price: b.High.Price}
	for _, k := range heard {
		level := float64(1-a.v.RelativeTime(k)) * a.utility(ideal)
		switch o := a.v.Offer(k); {
		case a.Agrees:
		case a.units() > 0 && a.utility(o) >= level && a.utility(o) > 0:
			replies[k] = negotiation.Answer(negotiation.Accept)
			a.Agrees = true
		default:
			replies[k] = negotiation.Propose(a.counter(level))
		}
	}
}

// counter is one of the offers with the least utility that is aspired to, at random.
func (a *aspiration) counter(level float64) negotiation.Offer {
	b, s, n := a.v.OutputBox(), a.v.Today(), a.units()
	chosen := negotiation.Offer{Quantity: 1, Time: min(s+1, b.High.Time), Price: b.Low.Price}
	found := 0
	for q := 1; q <= a.v.Lines() && n > 0; q++ {
		least := -1
		for p := b.High.Price; p >= b.Low.Price; p-- {
			if a.utility(negotiation.Offer{Quantity: q, Time: s, Price: p}) >= level {
				least = p
			}
		}
		if least < 0 {
			continue
		}
		if found++; a.Random.below(found) == 0 {
			chosen = negotiation.Offer{Quantity: q, Time: s, Price: least}
		}
	}
	return chosen
}
