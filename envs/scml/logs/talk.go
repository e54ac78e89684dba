package logs

import (
	"path/filepath"
	"strconv"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// talk is a negotiation that runs.
type talk struct {
	// id names it, number counts those of the world from 1.
	id     string
	number int
	offers []offered
	// begun says that the log of a side has it.
	begun [2]bool
}

// offered is an offer of a side, 0 the caller, in a round.
type offered struct {
	round int
	side  int8
	negotiation.Offer
}

// between is a day's negotiation of two agents.
type between struct{ day, caller, partner int }

func keyOf(m *negotiation.Mechanism) between { return between{m.Day, m.Agents[0], m.Agents[1]} }

// appendOffer writes a tuple.
func appendOffer(to []byte, o negotiation.Offer) []byte {
	to = strconv.AppendInt(append(to, '('), int64(o.Quantity), 10)
	to = strconv.AppendInt(append(to, ", "...), int64(o.Time), 10)
	to = strconv.AppendInt(append(to, ", "...), int64(o.Price), 10)
	return append(to, ')')
}

// appendIssues writes the ranges of a box, as a list of strings.
func appendIssues(to []byte, b *negotiation.Box) []byte {
	to = appendRange(append(to, "['quantity: ("...), b.Low.Quantity, b.High.Quantity)
	to = appendRange(append(to, ")', 'time: ("...), b.Low.Time, b.High.Time)
	to = appendRange(append(to, ")', 'unit_price: ("...), b.Low.Price, b.High.Price)
	return append(to, ")']"...)
}

// appendRange writes two numbers.
func appendRange(to []byte, low, high int) []byte {
	return strconv.AppendInt(append(strconv.AppendInt(to, int64(low), 10), ", "...), int64(high), 10)
}

// appendRound writes what a round's offers are, in the order of play: each is tagged with whom it
// was made to. full has the offers; without them each side's element is its data, None.
func (f *Folder) appendRound(to []byte, m *negotiation.Mechanism, round []offered, full bool) []byte {
	to = append(to, '[')
	for i, o := range round {
		if i > 0 {
			to = append(to, ", "...)
		}
		to = append(append(append(to, "('"...), f.ids[m.Agents[1-o.side]]...), "', "...)
		if full {
			to = append(appendOffer(to, o.Offer), ')')
		} else {
			to = append(to, "None)"...)
		}
	}
	return append(to, ']')
}

// round is a round of a negotiation, complete or not.
type round struct {
	number int
	// offers were made in it, last is the one on the table, nil for none.
	offers []offered
	last   *offered
	// ends says that the negotiation ended in it, broken or agreed how.
	ends, broken, agreed bool
}

// acceptances is how many sides have accepted what is on the table.
func (r *round) acceptances() int {
	switch {
	case r.agreed:
		return 2
	case r.last != nil:
		return 1
	}
	return 0
}

// each goes through the rounds of a negotiation that has ended.
func each(m *negotiation.Mechanism, offers []offered, do func(r *round)) {
	var x round
	for k := 0; x.number < m.Round; x.number++ {
		from := k
		for k < len(offers) && offers[k].round == x.number {
			k++
		}
		x.offers = offers[from:k]
		if len(x.offers) > 0 {
			x.last = &x.offers[len(x.offers)-1]
		}
		x.ends = x.number == m.Round-1 && m.Status != negotiation.TimedOut
		x.broken, x.agreed = x.ends && m.Status == negotiation.Broken, x.ends && m.Status == negotiation.Agreed
		do(&x)
	}
}

// appendHistory writes a list of one dictionary for each round, complete or not.
func (f *Folder) appendHistory(to []byte, m *negotiation.Mechanism, offers []offered) []byte {
	names := f.offerers(m, len(offers) > 0)
	to = append(to, '[')
	each(m, offers, func(r *round) {
		if r.number > 0 {
			to = append(to, ", "...)
		}
		to = append(append(to, "{'running': "...), python(!r.ends)...)
		to = strconv.AppendInt(append(to, ", 'waiting': False, 'started': True, 'step': "...), int64(r.number), 10)
		to = appendFloat(append(to, ", 'time': 0.0, 'relative_time': "...), f.relative(r.number))
		to = append(append(to, ", 'broken': "...), python(r.broken)...)
		to = append(to, ", 'timedout': False, 'agreement': "...)
		if r.agreed {
			to = appendOffer(to, m.Current)
		} else {
			to = append(to, "None"...)
		}
		to = append(to, ", 'results': None, 'n_negotiators': 2, 'has_error': False, 'error_details': '', 'erred_negotiator': '', 'erred_agent': '', 'threads': {}, 'last_thread': '', 'current_offer': "...)
		proposer := "None"
		if r.last == nil {
			to = append(to, "None"...)
		} else {
			to = appendOffer(to, r.last.Offer)
			proposer = "'" + f.ids[m.Agents[1-r.last.side]] + "'"
		}
		to = append(append(to, ", 'current_proposer': "...), proposer...)
		to = strconv.AppendInt(append(to, ", 'current_proposer_agent': None, 'n_acceptances': "...), int64(r.acceptances()), 10)
		to = f.appendRound(append(to, ", 'new_offers': "...), m, r.offers, true)
		to = append(append(to, ", 'new_offerer_agents': "...), names...)
		to = append(append(to, ", 'last_negotiator': "...), proposer...)
		to = f.appendRound(append(to, ", 'current_data': None, 'new_data': "...), m, r.offers, false)
		to = append(to, '}')
	})
	return append(to, ']')
}

// rounds writes the file of a negotiation, of what its history has.
func (f *Folder) rounds(m *negotiation.Mechanism, t *talk) {
	if !f.o.Negotiations || f.err != nil {
		return
	}
	w, err := newTable(filepath.Join(f.partial, negotiationsDir), t.id+".csv", roundColumns...)
	if err != nil {
		f.err = err
		return
	}
	names := f.offerers(m, len(t.offers) > 0)
	each(m, t.offers, func(r *round) {
		w.flag(!r.ends)
		w.raw("False,True")
		w.whole(r.number)
		w.number(0)
		w.number(f.relative(r.number))
		w.flag(r.broken)
		w.raw("False")
		if r.agreed {
			w.quoted(appendOffer(nil, m.Current))
		} else {
			w.raw("")
		}
		w.raw(",2,False,,,,")
		proposer := ""
		if r.last == nil {
			w.raw("")
		} else {
			w.quoted(appendOffer(nil, r.last.Offer))
			proposer = f.ids[m.Agents[1-r.last.side]]
		}
		w.text(proposer)
		w.raw("")
		w.whole(r.acceptances())
		w.text(string(f.appendRound(nil, m, r.offers, true)))
		w.text(names)
		w.text(proposer)
		w.raw("")
		w.text(string(f.appendRound(nil, m, r.offers, false)))
		w.end()
	})
	f.err = w.close()
}

// offerers lists the sides of a negotiation in which somebody has offered.
func (f *Folder) offerers(m *negotiation.Mechanism, any bool) string {
	if !any {
		return "[]"
	}
	return f.pair(m)
}

// pair lists the sides of a negotiation.
func (f *Folder) pair(m *negotiation.Mechanism) string {
	return "['" + f.ids[m.Agents[0]] + "', '" + f.ids[m.Agents[1]] + "']"
}

// relative is how much of a negotiation has gone by in a round.
func (f *Folder) relative(round int) float64 {
	return min(1, float64(round+1)/float64(f.w.Config().Rules.Rounds+1))
}
