package logs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// noTime stands in log.txt where the official program has the time on a clock.
const noTime = "1970-01-01 00:00:00,000"

// event adds a line to events.json. The file is no list: each line is an object with a comma behind
// it, as the official program writes it.
func (f *Folder) event(kind, data string) {
	f.events.raw(`{"sender": "` + f.o.World + `", "time": 0.0, "type": "` + kind + `", "data": ` + data + `}`)
	// end puts the end of the line in the place of the last comma.
	f.events.raw("")
	f.events.end()
}

// say adds a line to log.txt.
func (f *Folder) say(level, text string) {
	day, days := f.today.day, f.w.Config().Days
	f.log.raw(fmt.Sprintf("%s - %s - %d/%d [%.2f%%]: %s", noTime, level, day, days, 100*float64(day)/float64(days), text))
	f.log.end()
}

// joined tells of the agents, and that the world is there.
func (f *Folder) joined() {
	f.say("INFO", f.o.World+": World Created")
	for _, id := range f.ids {
		f.event("agent-joined", `{"agent": "`+id+`"}`)
		f.say("INFO", id+" joined")
	}
}

// dawn begins a day that has not begun.
func (f *Folder) dawn() {
	if f.today.begun {
		return
	}
	f.today.begun = true
	f.say("INFO", fmt.Sprintf("%d Negotiations/%d Agents", len(f.talks), len(f.ids)))
}

// literals are how the two files write what a negotiation is about: JSON in events.json, a literal
// of Python in log.txt, whose contracts have strings alone.
type literals struct{ quote, yes, no string }

var (
	inJSON   = literals{`"`, "true", "false"}
	inPython = literals{"'", "True", "False"}
)

// annotation describes a negotiation.
func (f *Folder) annotation(m *negotiation.Mechanism, as literals, quoted bool) string {
	buyer, seller := f.sides(m)
	q := as.quote
	is := as.no
	if buyer == m.Agents[0] {
		is = as.yes
	}
	value := func(text string) string {
		if quoted {
			return q + text + q
		}
		return text
	}
	return "{" + q + "product" + q + ": " + value(strconv.Itoa(m.Tag)) + ", " + q + "is_buy" + q + ": " + value(is) + ", " + q + "buyer" + q + ": " + q + f.ids[buyer] + q + ", " + q + "seller" + q + ": " + q + f.ids[seller] + q +
		", " + q + "caller" + q + ": " + q + f.ids[m.Agents[0]] + q + ", " + q + "sim_step" + q + ": " + value(strconv.Itoa(m.Day)) + "}"
}

// partners lists the sides of a negotiation in JSON.
func (f *Folder) partners(m *negotiation.Mechanism) string {
	return `["` + f.ids[m.Agents[0]] + `", "` + f.ids[m.Agents[1]] + `"]`
}

// requested tells of a negotiation that was asked for, and begins.
func (f *Folder) requested(m *negotiation.Mechanism, t *talk) {
	caller, request, about := f.ids[m.Agents[0]], f.name("request", t.number), f.annotation(m, inJSON, false)
	b := &m.Box
	f.event("negotiation-request", fmt.Sprintf(`{"caller": "%s", "partners": %s, "issues": [{"name": "quantity", "values": [%d, %d]}, {"name": "time", "values": [%d, %d]}, {"name": "unit_price", "values": [%d, %d]}], "mechanism_name": null, "annotation": %s, "req_id": "%s"}`,
		caller, f.partners(m), b.Low.Quantity, b.High.Quantity, b.Low.Time, b.High.Time, b.Low.Price, b.High.Price, about, request))
	f.event("negotiation-request-accepted", fmt.Sprintf(`{"req_id": "%s", "caller": "%s", "partners": %s, "mechanism": "%s", "annotation": %s}`, request, caller, f.partners(m), t.id, about))
	f.say("INFO", caller+" requested negotiation with "+f.pair(m)+" (ID "+request+")")
	f.say("INFO", caller+" request was accepted")
}

// told tells how a negotiation has ended.
func (f *Folder) told(m *negotiation.Mechanism, t *talk) {
	if m.Status == negotiation.Agreed {
		f.event("negotiation-success", fmt.Sprintf(`{"mechanism": "%s", "contract": "%s", "partners": %s}`, t.id, f.contractID(len(f.w.Contracts())), f.partners(m)))
		f.say("DEBUG", "Contract [signed]: "+f.pair(m)+" > "+string(appendOffer(nil, m.Current))+" on annotation "+f.annotation(m, inPython, true))
		return
	}
	f.event("negotiation-failure", fmt.Sprintf(`{"mechanism": "%s", "partners": %s}`, t.id, f.partners(m)))
	f.say("DEBUG", "Negotiation failure between "+f.pair(m)+" on annotation "+f.annotation(m, inPython, false))
}

// closing tells of the reports of the day, and of contracts that were due and dropped.
func (f *Folder) closing() {
	f.dawn()
	for i, r := range f.w.Reports() {
		bankrupt := ""
		if r.Bankrupt {
			bankrupt = " (BANKRUPT)"
		}
		id := f.ids[i]
		f.say("DEBUG", fmt.Sprintf("%s: %s @ %d %s: Cash: %s, Assets: 0, breach_prob: %s, breach_level: %s", id, id, r.Day, bankrupt, appendFloat(nil, r.Cash), appendFloat(nil, r.BreachProb), appendFloat(nil, r.BreachLevel)))
	}
	for due := range f.w.DueToday() {
		if due.Dropped {
			id := f.contractID(f.firsts[due.Signed] + due.Rank)
			f.event("dropped-contract", `{"contract": "`+id+`"}`)
			f.say("INFO", "Dropped "+id)
		}
	}
	f.firsts = append(f.firsts, len(f.w.Contracts()))
}

// contractID names the k-th contract that was agreed, whose row in contracts.csv it is: those with
// the outside follow what was agreed on their day.
func (f *Folder) contractID(k int) string {
	all, day := f.w.Contracts(), f.w.Today()
	if k < len(all) {
		day = all[k].Signed
	}
	for _, e := range f.w.Config().Exogenous {
		if e.Day >= day {
			break
		}
		k++
	}
	return f.name("contract", k)
}

var (
	// roundColumns are those of the file of a negotiation.
	roundColumns = strings.Fields("running waiting started step time relative_time broken timedout agreement results n_negotiators has_error error_details erred_negotiator erred_agent last_thread current_offer current_proposer current_proposer_agent n_acceptances new_offers new_offerer_agents last_negotiator current_data new_data")
	// utilityColumns are those of ufuns.csv.
	utilityColumns = strings.Fields("mechanism_id agent0 reserved0 u0 agent1 reserved1 u1 quantity time unit_price")
)

// utility lists all that may be agreed in a negotiation. Utilities are empty in the official file,
// too: agents have them for a day, and no negotiator has one of its own.
func (f *Folder) utility(m *negotiation.Mechanism, t *talk) {
	if f.utilities == nil {
		return
	}
	head := t.id + "," + f.ids[m.Agents[0]] + ",,," + f.ids[m.Agents[1]] + ",,"
	for q := m.Box.Low.Quantity; q <= m.Box.High.Quantity; q++ {
		for day := m.Box.Low.Time; day <= m.Box.High.Time; day++ {
			for p := m.Box.Low.Price; p <= m.Box.High.Price; p++ {
				f.utilities.raw(head)
				f.utilities.whole(q)
				f.utilities.whole(day)
				f.utilities.whole(p)
				f.utilities.end()
			}
		}
	}
}
