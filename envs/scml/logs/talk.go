package logs

import (
	"strconv"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// talk is a negotiation that runs.
type talk struct {
	// id names it, number counts those of the world from 1.
	id     string
	number int
	offers []offered
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

// appendHistory writes a list of one dictionary for each round, complete or not.
func (f *Folder) appendHistory(to []byte, m *negotiation.Mechanism, offers []offered) []byte {
	names := f.offerers(m, len(offers) > 0)
	var last *offered
	to = append(to, '[')
	for r, k := 0, 0; r < m.Round; r++ {
		from := k
		for k < len(offers) && offers[k].round == r {
			k++
		}
		round := offers[from:k]
		if len(round) > 0 {
			last = &round[len(round)-1]
		}
		ends := r == m.Round-1 && m.Status != negotiation.TimedOut
		if r > 0 {
			to = append(to, ", "...)
		}
		to = append(append(to, "{'running': "...), python(!ends)...)
		to = strconv.AppendInt(append(to, ", 'waiting': False, 'started': True, 'step': "...), int64(r), 10)
		to = appendFloat(append(to, ", 'time': 0.0, 'relative_time': "...), f.relative(r))
		to = append(append(to, ", 'broken': "...), python(ends && m.Status == negotiation.Broken)...)
		to = append(to, ", 'timedout': False, 'agreement': "...)
		if ends && m.Status == negotiation.Agreed {
			to = appendOffer(to, m.Current)
		} else {
			to = append(to, "None"...)
		}
		to = append(to, ", 'results': None, 'n_negotiators': 2, 'has_error': False, 'error_details': '', 'erred_negotiator': '', 'erred_agent': '', 'threads': {}, 'last_thread': '', 'current_offer': "...)
		proposer := "None"
		if last == nil {
			to = append(to, "None"...)
		} else {
			to = appendOffer(to, last.Offer)
			proposer = "'" + f.ids[m.Agents[1-last.side]] + "'"
		}
		to = append(append(to, ", 'current_proposer': "...), proposer...)
		acceptances := int64(0)
		switch {
		case ends && m.Status == negotiation.Agreed:
			acceptances = 2
		case last != nil:
			acceptances = 1
		}
		to = strconv.AppendInt(append(to, ", 'current_proposer_agent': None, 'n_acceptances': "...), acceptances, 10)
		to = f.appendRound(append(to, ", 'new_offers': "...), m, round, true)
		to = append(append(to, ", 'new_offerer_agents': "...), names...)
		to = append(append(to, ", 'last_negotiator': "...), proposer...)
		to = f.appendRound(append(to, ", 'current_data': None, 'new_data': "...), m, round, false)
		to = append(to, '}')
	}
	return append(to, ']')
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
