package logs

import (
	"strconv"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// The columns of the tables of negotiations.
var (
	negotiationColumns = []string{
		"index", "id", "partner_ids", "partners", "partner_types", "requested_at", "ended_at", "mechanism_type", "issues", "final_status", "failed", "agreement", "group", "caller", "product", "is_buy", "buyer", "seller", "sim_step",
		"running", "waiting", "started", "step", "time", "relative_time", "broken", "timedout", "agreement_neg", "results", "n_negotiators", "has_error", "error_details", "erred_negotiator", "erred_agent", "threads", "last_thread",
		"current_offer", "current_proposer", "current_proposer_agent", "n_acceptances", "new_offers", "new_offerer_agents", "last_negotiator", "current_data", "new_data", "history", "offers",
	}
	negColumns = []string{
		"id", "sim_step", "simstep_id", "name", "n_steps", "time_limit", "hidden_time_limit", "world", "step", "time", "relative_time", "has_agreement", "timedout", "ended", "erred", "error", "erred_agent_id", "agent0_id", "agent1_id",
		"agent_time0", "agent_time1", "quantity", "delivery_step", "unit_price", "product", "exogenous_quantity0", "exogenous_quantity1", "exogenous_unit_price0", "exogenous_unit_price1", "needed_sales0", "needed_sales1", "needed_supplies0",
		"needed_supplies1", "trading_price",
	}
	actionColumns = []string{"id", "neg_id", "step", "relative_time", "time", "sender", "receiver", "sender_agent_id", "receiver_agent_id", "state", "quantity", "delivery_step", "unit_price"}
)

// Opened implements negotiation.Witness.
func (f *Folder) Opened(m *negotiation.Mechanism) {
	f.dawn()
	f.opened++
	var t *talk
	if n := len(f.spare); n > 0 {
		t, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		t = &talk{}
	}
	t.number, t.id, t.offers = f.opened, f.name("negotiation", f.opened), t.offers[:0]
	t.begun = [2]bool{}
	f.talks[keyOf(m)] = t
	for side, agent := range m.Agents {
		c := &f.counters[agent]
		c.received++
		if side == 0 {
			c.sent++
		}
	}
	f.requested(m, t)
	f.utility(m, t)
}

// Offered implements negotiation.Witness.
func (f *Folder) Offered(m *negotiation.Mechanism) {
	t := f.talks[keyOf(m)]
	if t == nil {
		return
	}
	f.trackOffered(m, t, t.offers)
	t.offers = append(t.offers, offered{m.Round, m.Turn, m.Current})
	f.acted++
	a, from, to := f.actions, m.Agents[m.Turn], m.Agents[1-m.Turn]
	a.whole(f.acted)
	a.whole(t.number)
	a.whole(m.Round + 1)
	a.number(f.relative(m.Round + 1))
	a.number(0)
	a.text(f.ids[to])
	a.text(f.ids[from])
	a.whole(agentID(from))
	a.whole(agentID(to))
	a.text("continuing")
	a.whole(m.Current.Quantity)
	a.whole(m.Current.Time)
	a.whole(m.Current.Price)
	a.end()
}

// Ended implements negotiation.Witness.
func (f *Folder) Ended(m *negotiation.Mechanism) {
	key := keyOf(m)
	t := f.talks[key]
	if t == nil {
		return
	}
	delete(f.talks, key)
	f.spare = append(f.spare, t)
	f.heard(m, t)
	f.negotiation(m, t)
	f.neg(m, t)
	f.told(m, t)
	f.rounds(m, t)
	f.trackEnded(m, t)
}

// heard counts what has ended, and keeps what its contract refers to.
func (f *Folder) heard(m *negotiation.Mechanism, t *talk) {
	agreed := m.Status == negotiation.Agreed
	for _, agent := range m.Agents {
		c := &f.counters[agent]
		switch {
		case agreed:
			c.succeeded++
		case m.Status == negotiation.TimedOut:
			c.timedOut++
			c.failed++
		default:
			c.failed++
		}
	}
	if agreed {
		f.agreements[len(f.w.Contracts())] = agreement{t.id, m.Agents[0], m.Box}
		f.today.succeeded++
		f.today.succeededRounds += m.Round + 1
		return
	}
	f.today.failed++
	f.today.failedRounds += m.Round + 1
}

// negotiation writes a row of negotiations.csv.
func (f *Folder) negotiation(m *negotiation.Mechanism, t *talk) {
	n := f.negotiations
	caller, partner := m.Agents[0], m.Agents[1]
	buyer, seller := f.sides(m)
	agreed := m.Status == negotiation.Agreed
	b := f.cell[:0]
	quoted := func() {
		n.quoted(b)
		b = b[:0]
	}
	n.whole(f.ended)
	f.ended++
	n.text(t.id)
	pair := f.pair(m)
	n.text(pair)
	n.text(pair)
	b = append(append(append(append(append(b, "['"...), f.types[caller]...), "', '"...), f.types[partner]...), "']"...)
	quoted()
	n.whole(m.Day)
	n.whole(f.w.Today())
	n.text("SAOMechanism")
	b = appendIssues(b, &m.Box)
	quoted()
	offer := func(given bool, none string) {
		if given {
			b = appendOffer(b, m.Current)
			quoted()
		} else {
			n.text(none)
		}
	}
	if agreed {
		n.text("succeeded")
	} else {
		n.text("failed")
	}
	n.flag(!agreed)
	offer(agreed, "None")
	n.text("")
	n.text(f.ids[caller])
	n.whole(m.Tag)
	n.flag(buyer == caller)
	n.text(f.ids[buyer])
	n.text(f.ids[seller])
	n.whole(m.Day)
	n.raw("False,False,True")
	n.whole(m.Round)
	n.number(0)
	n.number(f.relative(m.Round))
	n.flag(m.Status == negotiation.Broken)
	n.flag(m.Status == negotiation.TimedOut)
	offer(agreed, "")
	n.raw(",2,False,,,,{},")
	proposer := ""
	if k := len(t.offers); k > 0 {
		proposer = f.ids[m.Agents[1-t.offers[k-1].side]]
	}
	offer(m.Opened, "")
	n.text(proposer)
	n.text("")
	switch {
	case agreed:
		n.whole(2)
	case m.Opened:
		n.whole(1)
	default:
		n.whole(0)
	}
	last := t.last(m)
	b = f.appendRound(b, m, last, true)
	quoted()
	n.text(f.offerers(m, m.Opened))
	n.text(proposer)
	n.text("")
	b = f.appendRound(b, m, last, false)
	quoted()
	b = f.appendHistory(b, m, t.offers)
	quoted()
	b = append(b, '{')
	for side, agent := range m.Agents {
		if side > 0 {
			b = append(b, ", "...)
		}
		b = append(append(append(b, '\''), f.ids[agent]...), "': ["...)
		first := true
		for _, o := range t.offers {
			if int(o.side) != side {
				continue
			}
			if !first {
				b = append(b, ", "...)
			}
			first = false
			b = appendOffer(b, o.Offer)
		}
		b = append(b, ']')
	}
	b = append(b, '}')
	quoted()
	n.end()
	f.cell = b
}

// last are the offers of the last round.
func (t *talk) last(m *negotiation.Mechanism) []offered {
	for i, o := range t.offers {
		if o.round == m.Round-1 {
			return t.offers[i:]
		}
	}
	return nil
}

// sides returns who buys and who sells.
func (f *Folder) sides(m *negotiation.Mechanism) (buyer, seller int) {
	c := f.w.Config().Factories
	buyer, seller = m.Agents[0], m.Agents[1]
	if c[buyer].Level < c[seller].Level {
		buyer, seller = seller, buyer
	}
	return buyer, seller
}

// neg writes a row of negs.csv.
func (f *Folder) neg(m *negotiation.Mechanism, t *talk) {
	n := f.negs
	agreed := m.Status == negotiation.Agreed
	n.whole(t.number)
	n.whole(m.Day)
	n.whole(m.Day + 1)
	n.text(t.id)
	n.whole(f.w.Config().Rules.Rounds)
	n.raw(",") // No limits of time.
	n.text(f.o.World)
	n.whole(m.Round)
	n.number(0)
	n.number(f.relative(m.Round))
	n.flag(agreed)
	n.flag(m.Status == negotiation.TimedOut)
	n.raw("True,False,,0")
	n.whole(agentID(m.Agents[0]))
	n.whole(agentID(m.Agents[1]))
	n.text(f.ids[m.Agents[1]])
	n.text(f.ids[m.Agents[0]])
	if agreed {
		n.whole(m.Current.Quantity)
		n.whole(m.Current.Time)
		n.whole(m.Current.Price)
	} else {
		n.raw("0,0,0")
	}
	n.whole(m.Tag)
	var quantities [2]int
	var prices [2]float64
	for side, agent := range m.Agents {
		v := f.w.View(agent)
		x := v.Supply()
		if v.Last() {
			x = v.Demand()
		}
		if quantities[side] = x.Quantity; x.Quantity > 0 {
			prices[side] = x.Money / float64(x.Quantity)
		}
	}
	n.whole(quantities[0])
	n.whole(quantities[1])
	n.number(prices[0])
	n.number(prices[1])
	for _, agent := range m.Agents {
		n.whole(f.w.View(agent).NeededSales())
	}
	for _, agent := range m.Agents {
		n.whole(f.w.View(agent).NeededSupplies())
	}
	n.number(f.w.PriceInForce(m.Tag))
	n.end()
}

// agentID is an agent's in agents.csv, whose first row is of no agent.
func agentID(i int) int { return i + 2 }

// uuid writes an identifier in the usual form, of version 8, out of the bytes of a digest.
func uuid(sum []byte) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 36)
	for i, x := range sum[:16] {
		switch i {
		case 4, 6, 8, 10:
			b = append(b, '-')
		}
		switch i {
		case 6:
			x = x&0x0f | 0x80
		case 8:
			x = x&0x3f | 0x80
		}
		b = append(b, digits[x>>4], digits[x&15])
	}
	return string(b)
}

// name makes an identifier of the world's.
func (f *Folder) name(kind string, number int) string {
	f.hash.Reset()
	f.hash.Write([]byte(f.o.World + "/" + kind + "/" + strconv.Itoa(number)))
	return uuid(f.hash.Sum(f.sum[:0]))
}
