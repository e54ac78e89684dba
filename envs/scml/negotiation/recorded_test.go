package negotiation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// scenario is a recording of the official engine: what was asked of each agent, and its answer.
type scenario struct {
	Seed   int
	Levels int  `json:"n_levels"`
	Days   int  `json:"n_steps"`
	Speed  *int `json:"negotiation_speed"`
	Rounds int  `json:"n_rounds"`
	Agents map[string]struct {
		Level int
		Sync  bool
	}
	Dead  [][2]string
	Days_ []struct {
		Day    int
		Prices map[string][2]int `json:"price_range"`
		Events [][]json.RawMessage
		Left   []json.RawMessage
	} `json:"days"`
}

// TestRecordedScenarios gives the agents their recorded answers and expects the same questions, in
// the same order, agreements and leftovers. The recordings are read where
// ONNXRL_SCML_RECORDINGS points.
func TestRecordedScenarios(t *testing.T) {
	const all = 10
	dir := os.Getenv("ONNXRL_SCML_RECORDINGS")
	if dir == "" {
		fmt.Printf("0 of %d recorded scenarios played (set ONNXRL_SCML_RECORDINGS)\n", all)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "neg_traces.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []scenario
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != all {
		t.Errorf("%d scenarios, expected %d", len(list), all)
	}
	events := 0
	for _, s := range list {
		t.Run(fmt.Sprintf("seed %d", s.Seed), func(t *testing.T) { events += follow(t, &s) })
	}
	if events != 4707 {
		t.Errorf("%d events, expected %d", events, 4707)
	}
}

// follow plays a scenario and returns how many events it had.
func follow(t *testing.T, s *scenario) int {
	var ids []string
	var sync []bool
	level := make([][]int, s.Levels)
	for id, a := range sorted.All(s.Agents) {
		level[a.Level] = append(level[a.Level], len(ids))
		ids, sync = append(ids, id), append(sync, a.Sync)
	}
	index := func(id string) int { return slices.Index(ids, id) }
	passes := 0
	if s.Speed != nil {
		passes = *s.Speed
	}
	e := negotiation.New(sync, negotiation.Options{Rounds: s.Rounds, Passes: passes})
	total := 0
	for _, d := range s.Days_ {
		e.Begin(d.Day)
		e.Open(level, boxes(t, s, d.Day, d.Prices), false)
		p := &player{t: t, e: e, ids: ids, events: d.Events, day: d.Day, index: index}
		for p.next() {
		}
		if p.at != len(d.Events) {
			t.Fatalf("day %d: %d events, expected %d", d.Day, p.at, len(d.Events))
		}
		total += p.at
		var left []string
		for _, m := range e.Leftovers() {
			left = append(left, fmt.Sprintf(`[%d,["%s","%s"]]`, m.Round, ids[m.Agents[0]], ids[m.Agents[1]]))
		}
		var want []string
		for _, l := range d.Left {
			want = append(want, string(l))
		}
		if !slices.Equal(left, want) {
			t.Errorf("day %d: left behind %v, expected %v", d.Day, left, want)
		}
	}
	return total
}

// boxes returns the box of each product, whose prices are recorded by seller and buyer.
func boxes(t *testing.T, s *scenario, day int, prices map[string][2]int) []negotiation.Box {
	list := make([]negotiation.Box, s.Levels+1)
	for pair, p := range sorted.All(prices) {
		seller, _, _ := strings.Cut(pair, "|")
		product := s.Agents[seller].Level + 1
		box := negotiation.Box{Low: negotiation.Offer{Quantity: 1, Time: day, Price: p[0]}, High: negotiation.Offer{Quantity: 30, Time: min(day+10, s.Days-1), Price: p[1]}}
		if list[product].High.Quantity > 0 && list[product] != box {
			t.Fatalf("day %d: the boxes of product %d differ", day, product)
		}
		list[product] = box
	}
	return list
}

// player compares the engine's questions with the recorded ones and answers as was answered.
type player struct {
	t      *testing.T
	e      *negotiation.Engine
	ids    []string
	events [][]json.RawMessage
	at     int
	day    int
	index  func(id string) int
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func triple(o negotiation.Offer) [3]int { return [3]int{o.Quantity, o.Time, o.Price} }

// expect compares the beginning of the next event.
func (p *player) expect(parts ...any) []json.RawMessage {
	p.t.Helper()
	var got []string
	for _, v := range parts {
		got = append(got, text(v))
	}
	if p.at == len(p.events) {
		p.t.Fatalf("day %d: event %d is %s, expected none", p.day, p.at, got)
	}
	event := p.events[p.at]
	for i := range got {
		if i >= len(event) || got[i] != string(event[i]) {
			p.t.Fatalf("day %d, event %d: %s, expected %s", p.day, p.at, strings.Join(got, " "), event)
		}
	}
	p.at++
	return event[len(parts):]
}

func (p *player) decode(raw json.RawMessage, v any) {
	p.t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		p.t.Fatalf("%s: %v", raw, err)
	}
}

// inOrder expects the keys of an object in the order of partners, some of which it lacks.
func (p *player) inOrder(object json.RawMessage, partners []string) {
	p.t.Helper()
	dec := json.NewDecoder(bytes.NewReader(object))
	depth := 0
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		switch v := token.(type) {
		case json.Delim:
			if depth++; v == ']' || v == '}' {
				depth -= 2
			}
		case string:
			if depth > 1 {
				continue
			}
			i := slices.Index(partners, v)
			if i < 0 {
				p.t.Fatalf("day %d, event %d: offers in the order %v, answers %s", p.day, p.at, partners, object)
			}
			partners = partners[i+1:]
		}
	}
}

var answers = map[string]negotiation.Response{"ACC": negotiation.Accept, "REJ": negotiation.Reject, "END": negotiation.End}

// reply makes a reply of an offer, which may be null.
func reply(r negotiation.Response, o *[3]int) negotiation.Reply {
	a := negotiation.Answer(r)
	if o != nil {
		a.Offer, a.Offered = negotiation.Offer{Quantity: o[0], Time: o[1], Price: o[2]}, true
	}
	return a
}

func (p *player) next() bool {
	a := p.e.Next()
	replies := p.e.Replies()
	id := ""
	if a.Event != negotiation.Ended && a.Event != negotiation.DayOver {
		id = p.ids[a.Agent]
	}
	slots := func(f func(k int, partner string)) {
		for k := range p.e.Slots(a.Agent) {
			f(k, p.ids[p.e.Partner(a.Agent, k)])
		}
	}
	switch a.Event {
	case negotiation.AskFirst:
		rest := p.expect("FIRST", id)
		var offers map[string]*[3]int
		p.decode(rest[0], &offers)
		slots(func(k int, partner string) {
			if o, ok := offers[partner]; ok {
				replies[k] = reply(negotiation.Reject, o)
			}
		})
	case negotiation.AskCounters:
		heard := [][3]any{}
		var partners []string
		for _, k := range a.Heard {
			partners = append(partners, p.ids[p.e.Partner(a.Agent, k)])
			heard = append(heard, [3]any{p.ids[p.e.Partner(a.Agent, k)], triple(p.e.Heard(a.Agent, k)), p.e.Negotiation(a.Agent, k).Round})
		}
		// Offers are recorded by partner; their own order is that of the answers.
		slices.SortFunc(heard, func(a, b [3]any) int { return strings.Compare(a[0].(string), b[0].(string)) })
		rest := p.expect("COUNTER", id, heard)
		p.inOrder(rest[0], partners)
		var given map[string][2]json.RawMessage
		p.decode(rest[0], &given)
		slots(func(k int, partner string) {
			if g, ok := given[partner]; ok {
				var how string
				var o *[3]int
				p.decode(g[0], &how)
				p.decode(g[1], &o)
				replies[k] = reply(answers[how], o)
			}
		})
	case negotiation.AskResponse, negotiation.AskProposal:
		partner := p.ids[p.e.Partner(a.Agent, a.Slot)]
		if a.Event == negotiation.AskProposal {
			var o *[3]int
			p.decode(p.expect("P", id, partner, a.Mechanism.Round)[0], &o)
			replies[0] = reply(negotiation.Reject, o)
			return true
		}
		var how string
		p.decode(p.expect("R", id, partner, a.Mechanism.Round, triple(a.Mechanism.Current))[0], &how)
		replies[0] = negotiation.Answer(answers[how])
	case negotiation.Ended:
		m := a.Mechanism
		var agreed any
		if m.Status == negotiation.Agreed {
			agreed = triple(m.Current)
		}
		p.expect("DONE", [2]string{p.ids[m.Agents[0]], p.ids[m.Agents[1]]}, m.Status.String(), m.Round, agreed)
	case negotiation.DayOver:
		return false
	}
	return true
}
