package world

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// View is all that an agent may know of its world. Its methods read the current state.
type View struct {
	w     *run
	agent int
}

func (v *View) factory() *Factory { return &v.w.c.Factories[v.agent] }

func (v *View) account() *account { return &v.w.s.Accounts[v.agent] }

// Index returns which agent this is.
func (v *View) Index() int { return v.agent }

// Today returns the current day, Days how many there are.
func (v *View) Today() int { return v.w.s.Day }

// Days returns the number of days of the world.
func (v *View) Days() int { return v.w.c.Days }

// Lines returns how many units a factory can make in a day.
func (v *View) Lines() int { return v.w.c.Lines }

// Level returns the agent's level, which is also its input product; its output is one more.
func (v *View) Level() int { return v.factory().Level }

// First and Last report whether the agent's supplies or its sales are exogenous.
func (v *View) First() bool { return v.factory().Level == 0 }

// Last reports whether the agent's sales are exogenous.
func (v *View) Last() bool { return v.factory().Level == len(v.w.levels)-1 }

// Middle reports whether both supplies and sales are negotiated.
func (v *View) Middle() bool { return !v.First() && !v.Last() }

// Stock returns the input units kept, as of this morning.
func (v *View) Stock() int { return v.account().Stock }

// Balance returns the agent's money, as of this morning.
func (v *View) Balance() float64 { return v.account().Balance }

// Supply and Demand are today's exogenous contracts of the agent.
func (v *View) Supply() Total { return v.w.supplyOf[v.agent] }

// Demand returns what is to be delivered to the outside today.
func (v *View) Demand() Total { return v.w.demand[v.agent] }

// SuppliesAt returns the negotiated quantity that arrives on a day, 0 for days past.
func (v *View) SuppliesAt(day int) int { return v.sum(v.account().Supplies, day, day) }

// SalesAt returns the negotiated quantity to be delivered on a day, 0 for days past.
func (v *View) SalesAt(day int) int { return v.sum(v.account().Sales, day, day) }

// Supplies returns the negotiated quantity that arrives from one day to another, both included;
// days past count 0.
func (v *View) Supplies(from, to int) int { return v.sum(v.account().Supplies, from, to) }

// Sales returns the negotiated quantity to be delivered from one day to another, both included;
// days past count 0.
func (v *View) Sales(from, to int) int { return v.sum(v.account().Sales, from, to) }

func (v *View) sum(book []int, from, to int) int {
	total := 0
	// Nothing is agreed for days beyond the horizon.
	for day := max(from, v.w.s.Day); day <= min(to, len(book)-1, v.w.s.Day+v.w.c.Rules.Horizon); day++ {
		total += book[day]
	}
	return total
}

// NeededSales returns how many units the agent has for today and nobody has bought, and 0 on the
// last level. It may be negative.
func (v *View) NeededSales() int {
	if v.Last() {
		return 0
	}
	return v.surplus()
}

// NeededSupplies returns how many units the agent owes today and does not have, and 0 on the first
// level. It may be negative.
func (v *View) NeededSupplies() int {
	if v.First() {
		return 0
	}
	return -v.surplus()
}

func (v *View) surplus() int {
	today := v.w.s.Day
	return v.Supply().Quantity + v.Stock() + v.SuppliesAt(today) - v.SalesAt(today) - v.Demand().Quantity
}

// InputBox returns the box of what the agent buys. On the first level it is that of day 0.
func (v *View) InputBox() negotiation.Box { return v.w.boxes[v.Level()] }

// OutputBox returns the box of what the agent sells.
func (v *View) OutputBox() negotiation.Box { return v.w.boxes[v.Level()+1] }

// Slots returns how many negotiations the agent has today, those that have ended included.
func (v *View) Slots() int { return v.w.engine.Slots(v.agent) }

// Partner returns the agent that a slot's negotiation is with.
func (v *View) Partner(k int) int { return v.w.engine.Partner(v.agent, k) }

// Buying reports whether the agent is to buy in a slot's negotiation.
func (v *View) Buying(k int) bool {
	return v.w.c.Factories[v.Partner(k)].Level < v.Level()
}

// Box returns the box of a slot's negotiation.
func (v *View) Box(k int) negotiation.Box {
	if v.Buying(k) {
		return v.InputBox()
	}
	return v.OutputBox()
}

// Negotiation returns what a slot stands for, or nil where it never begins.
func (v *View) Negotiation(k int) *negotiation.Mechanism { return v.w.engine.Negotiation(v.agent, k) }

// Round returns the number of complete rounds of a slot's negotiation.
func (v *View) Round(k int) int {
	if m := v.Negotiation(k); m != nil {
		return m.Round
	}
	return 0
}

// RelativeTime returns how much of a slot's negotiation has gone by, in (0, 1].
func (v *View) RelativeTime(k int) float64 {
	return float64(v.Round(k)+1) / float64(v.w.c.Rules.Rounds+1)
}

// Rounds returns how many rounds a negotiation has.
func (v *View) Rounds() int { return v.w.c.Rules.Rounds }

// Offer returns the offer in a slot that CounterAll is about.
func (v *View) Offer(k int) negotiation.Offer { return v.w.engine.Heard(v.agent, k) }

// Suppliers and Consumers are the agents of the levels before and after, bankrupt ones included.
func (v *View) Suppliers() []int { return v.w.profile[v.agent].suppliers }

// Consumers returns the agents of the level after the agent's.
func (v *View) Consumers() []int { return v.w.profile[v.agent].consumers }
