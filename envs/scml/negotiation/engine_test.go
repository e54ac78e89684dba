package negotiation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

var box = negotiation.Box{Low: negotiation.Offer{Quantity: 1, Time: 0, Price: 18}, High: negotiation.Offer{Quantity: 30, Time: 10, Price: 22}}

func offer(quantity, time, price int) negotiation.Reply {
	return negotiation.Propose(negotiation.Offer{Quantity: quantity, Time: time, Price: price})
}

var (
	none   = negotiation.Reply{}
	reject = negotiation.Answer(negotiation.Reject)
	accept = negotiation.Answer(negotiation.Accept)
	end    = negotiation.Answer(negotiation.End)
	pass   = negotiation.Answer(negotiation.NoResponse)
)

// pair plays one negotiation of S (agent 0) and B (agent 1), which calls: calls are R or P with the
// agent. What is not in answers, by call and agent, is to reject and to offer 5 units today at 20.
func pair(answers map[string][]negotiation.Reply) (calls string, m negotiation.Mechanism) {
	e := negotiation.New([]bool{false, false}, negotiation.Options{Rounds: 20})
	e.Begin(0)
	e.Open([][]int{{0}, {1}}, []negotiation.Box{box, box, box}, false)
	for {
		a := e.Next()
		name := map[negotiation.Event]string{negotiation.AskProposal: "P", negotiation.AskResponse: "R"}[a.Event]
		if name == "" {
			if a.Event == negotiation.DayOver {
				return strings.TrimSpace(calls), m
			}
			m = *a.Mechanism
			continue
		}
		name += string("SB"[a.Agent])
		calls += name + " "
		reply := reject
		if a.Event == negotiation.AskProposal {
			reply = offer(5, 0, 20)
		}
		if list := answers[name]; len(list) > 0 {
			reply, answers[name] = list[0], list[1:]
		}
		e.Replies()[0] = reply
	}
}

// TestProtocol has the cases of one pair, as the official engine was seen to play them.
func TestProtocol(t *testing.T) {
	cases := []struct {
		name    string
		answers map[string][]negotiation.Reply
		calls   string
		status  negotiation.Status
		round   int
		agreed  negotiation.Offer
	}{
		{"a price too high", map[string][]negotiation.Reply{"PB": {offer(5, 0, 23)}}, "PB", negotiation.Broken, 1, negotiation.Offer{}},
		{"a quantity too large", map[string][]negotiation.Reply{"PB": {offer(31, 0, 20)}}, "PB", negotiation.Broken, 1, negotiation.Offer{}},
		{"a delivery yesterday", map[string][]negotiation.Reply{"PB": {offer(5, -1, 20)}}, "PB", negotiation.Broken, 1, negotiation.Offer{}},
		{"accepted at once", map[string][]negotiation.Reply{"PB": {negotiation.Propose(negotiation.Truncate(5, 0, 20.6))}, "RS": {accept}}, "PB RS", negotiation.Agreed, 1, negotiation.Offer{Quantity: 5, Time: 0, Price: 20}},
		{"ended at once", map[string][]negotiation.Reply{"RS": {end}}, "PB RS", negotiation.Broken, 1, negotiation.Offer{}},
		{"no such response", map[string][]negotiation.Reply{"RS": {negotiation.Answer(9)}}, "PB RS", negotiation.Broken, 1, negotiation.Offer{}},
		{"no offer in round 2", map[string][]negotiation.Reply{"PB": {offer(5, 0, 20), offer(5, 0, 20), none}}, "PB RS PS RB PB RS PS RB PB", negotiation.Broken, 3, negotiation.Offer{}},
		{"accepted a counter offer", map[string][]negotiation.Reply{"PB": {offer(5, 7, 20)}, "PS": {offer(4, 10, 22)}, "RB": {accept}}, "PB RS PS RB", negotiation.Agreed, 2, negotiation.Offer{Quantity: 4, Time: 10, Price: 22}},
	}
	for _, c := range cases {
		calls, m := pair(c.answers)
		if calls != c.calls || m.Status != c.status || m.Round != c.round || m.Status == negotiation.Agreed && m.Current != c.agreed {
			t.Errorf("%s: %s, %s in round %d with %v; expected %s, %s in %d with %v", c.name, calls, m.Status, m.Round, m.Current, c.calls, c.status, c.round, c.agreed)
		}
	}
	if len(cases) != 8 {
		t.Errorf("%d cases", len(cases))
	}
	// All is rejected: twenty rounds, forty offers; what was rejected is offered again.
	calls, m := pair(nil)
	if strings.Count(calls, "P") != 40 || m.Status != negotiation.TimedOut || m.Round != 20 {
		t.Errorf("%s: %s in round %d", calls, m.Status, m.Round)
	}
	// Without a response the partner is asked about its own offer.
	calls, m = pair(map[string][]negotiation.Reply{"RB": slices.Repeat([]negotiation.Reply{pass}, 30)})
	if !strings.HasPrefix(calls, "PB RS PS RB RS PS RB RS PS") || m.Status != negotiation.TimedOut || m.Round != 20 {
		t.Errorf("%s: %s in round %d", calls, m.Status, m.Round)
	}
}

// market is synchronous agents of two levels that reject everything.
type market struct {
	*negotiation.Engine
	names []string
	// calls lists FIRST and COUNTER, and the ends of negotiations.
	calls []string
}

// newMarket has n agents S0, S1 … of level 0, and as many B of level 1.
func newMarket(n int, sync func(i int) bool, passes int, finish bool) *market {
	m := &market{}
	list := make([]bool, 2*n)
	for i := range 2 * n {
		list[i] = sync(i)
		m.names = append(m.names, fmt.Sprint("SB"[i/n:i/n+1], i%n))
	}
	m.Engine = negotiation.New(list, negotiation.Options{Rounds: 20, Passes: passes, Finish: finish})
	return m
}

func (m *market) day(day int) {
	n := len(m.names) / 2
	levels := make([][]int, 2)
	for i := range 2 * n {
		levels[i/n] = append(levels[i/n], i)
	}
	m.Begin(day)
	m.Open(levels, []negotiation.Box{box, box, box}, false)
	for {
		a := m.Next()
		switch a.Event {
		case negotiation.AskFirst, negotiation.AskCounters:
			what := "FIRST "
			if a.Event == negotiation.AskCounters {
				what = "COUNTER "
			}
			m.calls = append(m.calls, what+m.names[a.Agent])
			for k := range m.Replies() {
				m.Replies()[k] = offer(5, 0, 20)
			}
		case negotiation.AskProposal:
			m.Replies()[0] = offer(5, 0, 20)
		case negotiation.Ended:
			x := a.Mechanism
			m.calls = append(m.calls, fmt.Sprintf("%s-%s %s %d of day %d", m.names[x.Agents[0]], m.names[x.Agents[1]], x.Status, x.Round, x.Day))
		case negotiation.DayOver:
			return
		}
	}
}

func (m *market) count(prefix string) int {
	n := 0
	for _, c := range m.calls {
		if strings.HasPrefix(c, prefix) {
			n++
		}
	}
	return n
}

func (m *market) rounds() []int {
	var list []int
	for _, x := range m.Leftovers() {
		list = append(list, x.Round)
	}
	return list
}

func always(int) bool { return true }

// TestSynchronousMarket is the market of two and two, whose order of calls was recorded.
func TestSynchronousMarket(t *testing.T) {
	m := newMarket(2, always, 21, false)
	m.day(0)
	var counters []string
	for _, c := range m.calls {
		if s, ok := strings.CutPrefix(c, "COUNTER "); ok {
			counters = append(counters, s)
		}
	}
	if got := strings.Join(counters[:12], " "); got != "S0 S1 B1 B0 S1 S0 B0 B1 S0 S1 B1 B0" {
		t.Errorf("order %s", got)
	}
	if f, c := m.count("FIRST"), m.count("COUNTER"); f != 4 || c != 42 {
		t.Errorf("%d first proposals, %d counters, expected 4 and 42", f, c)
	}
	if got := m.rounds(); !slices.Equal(got, []int{10, 10, 11, 11}) {
		t.Errorf("rounds %v", got)
	}
	// On the next day they end, before anything is asked.
	m.calls = nil
	m.day(1)
	want := []string{"B0-S0 broken 11 of day 0", "B0-S1 broken 11 of day 0", "B1-S0 broken 12 of day 0", "B1-S1 broken 12 of day 0", "FIRST B0"}
	if !slices.Equal(m.calls[:5], want) {
		t.Errorf("%q", m.calls[:5])
	}
	// Without a limit all have their twenty rounds.
	m = newMarket(2, always, 0, false)
	m.day(0)
	if f, c := m.count("FIRST"), m.count("COUNTER"); f != 4 || c != 78 {
		t.Errorf("%d first proposals, %d counters, expected 4 and 78", f, c)
	}
	want = []string{"B0-S1 timeout 20 of day 0", "B1-S1 timeout 20 of day 0", "B0-S0 timeout 20 of day 0", "B1-S0 timeout 20 of day 0"}
	if got := m.calls[len(m.calls)-4:]; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// And so they have where the limit ends what it cuts off.
	m = newMarket(2, always, 21, true)
	m.day(0)
	if n := m.count("B"); n != 4 || len(m.Leftovers()) != 0 {
		t.Errorf("%d ended, %d left", n, len(m.Leftovers()))
	}
}

// TestMarketSizes: how many rounds are complete after 21 passes.
func TestMarketSizes(t *testing.T) {
	m := newMarket(1, always, 21, false)
	m.day(0)
	if f, c := m.count("FIRST"), m.count("COUNTER"); f != 2 || c != 39 || m.count("B0-S0 timeout 20") != 1 {
		t.Errorf("1 and 1: %d first proposals, %d counters, %q", f, c, m.calls[len(m.calls)-1])
	}
	cases := []struct {
		n    int
		sync func(i int) bool
		want map[int]int
	}{
		{4, always, map[int]int{8: 12, 9: 4}},
		{6, always, map[int]int{8: 36}},
		{4, func(i int) bool { return i < 4 }, map[int]int{12: 16}},
		{4, func(i int) bool { return i >= 4 }, map[int]int{12: 16}},
		{4, func(int) bool { return false }, map[int]int{}},
	}
	for i, c := range cases {
		m := newMarket(c.n, c.sync, 21, false)
		m.day(0)
		got := map[int]int{}
		for _, r := range m.rounds() {
			got[r]++
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("case %d: %v, expected %v", i, got, c.want)
		}
	}
}

// TestCallers: in chains of three levels the last one calls first, then the first one; in chains of
// four, level 2 has slots that never begin, for as many partners as level 1 has suppliers.
func TestCallers(t *testing.T) {
	cases := []struct {
		levels [][]int
		middle bool
		want   string
		stuck  string
	}{
		{[][]int{{0}, {1}}, false, "1>0:1", ""},
		{[][]int{{0}, {1}, {2}}, false, "2>1:2 0>1:1", ""},
		{[][]int{{0, 1}, {2}, {3, 4, 5}, {6}}, false, "6>3:3 6>4:3 6>5:3 2>0:1 2>1:1", "3:2 4:2"},
		{[][]int{{0, 1}, {2}, {3, 4, 5}, {6}}, true, "6>3:3 6>4:3 6>5:3 2>0:1 2>1:1 2>3:2 2>4:2 2>5:2", ""},
		{[][]int{{0}, {}, {1}}, false, "", ""},
	}
	for i, c := range cases {
		agents := 0
		for _, l := range c.levels {
			agents += len(l)
		}
		e := negotiation.New(make([]bool, agents), negotiation.Options{Rounds: 20, Passes: 21})
		e.Begin(0)
		e.Open(c.levels, make([]negotiation.Box, 5), c.middle)
		var made, stuck []string
		for {
			a := e.Next()
			if a.Event == negotiation.DayOver {
				break
			}
			if a.Event == negotiation.AskProposal {
				made = append(made, fmt.Sprintf("%d>%d:%d", a.Mechanism.Agents[0], a.Mechanism.Agents[1], a.Mechanism.Tag))
			}
		}
		for agent := range agents {
			for k := range e.Slots(agent) {
				if e.Negotiation(agent, k) == nil {
					stuck = append(stuck, fmt.Sprintf("%d:%d", agent, e.Partner(agent, k)))
				}
			}
		}
		if got := strings.Join(made, " "); got != c.want || strings.Join(stuck, " ") != c.stuck {
			t.Errorf("case %d: %s, stuck %v; expected %s, stuck %s", i, got, stuck, c.want, c.stuck)
		}
	}
}

// rounds is how many rounds a day of the market below has.
const rounds = 36 * 8

// playDay plays a day of six synchronous agents on each side, who reject everything.
func playDay(m *market, day int) {
	m.Begin(day)
	m.Open([][]int{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}, []negotiation.Box{box, box, box}, false)
	for {
		a := m.Next()
		if a.Event == negotiation.DayOver {
			return
		}
		if a.Event == negotiation.AskFirst || a.Event == negotiation.AskCounters {
			for k := range m.Replies() {
				m.Replies()[k] = offer(5, 0, 20)
			}
		}
	}
}

func BenchmarkRound(b *testing.B) {
	m := newMarket(6, always, 21, false)
	playDay(m, 0)
	b.ReportAllocs()
	b.ResetTimer()
	for day := 1; day*rounds < b.N; day++ {
		playDay(m, day)
	}
}

// TestRoundsAllocateNothing: once a day has been played.
func TestRoundsAllocateNothing(t *testing.T) {
	m, day := newMarket(6, always, 21, false), 0
	if n := testing.AllocsPerRun(20, func() { playDay(m, day); day++ }); n > 3 {
		t.Errorf("%v allocations in a day of %d rounds", n, rounds)
	}
}
