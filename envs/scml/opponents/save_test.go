package opponents_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// hashes are agents without memory.
var hashes = []string{"hash", "hashsync", "hashsync"}

// TestSaveAnywhere saves tables after calls of Next, and plays on in another one: the same comes of
// it, for every kind of agent.
func TestSaveAnywhere(t *testing.T) {
	for _, levels := range []int{2, 4}[:longtest.Cases(t, 2, 1)] {
		make := func() *world.Table { return table(t, 3, 8, levels, 7, allNames...) }
		w, want := make(), fingerprint(make())
		s := rng.New(1).Stream()
		saves, calls := 0, 0
		for {
			q := w.Step()
			if calls++; q.Event == world.Over {
				break
			}
			if s.IntN(60) != 0 {
				continue
			}
			state, err := w.SaveState()
			if err != nil {
				t.Fatal(err)
			}
			other := make()
			if err := other.LoadState(state); err != nil {
				t.Fatal(err)
			}
			if got := fingerprint(other); got != want {
				t.Fatalf("%d levels: after call %d (%d) another world comes of it", levels, calls, q.Event)
			}
			saves++
		}
		if saves < 20 {
			t.Errorf("%d levels: %d saves in %d calls", levels, saves, calls)
		}
	}
}

// TestVacantSeats: a caller who answers as an agent would makes the same world as the agent.
func TestVacantSeats(t *testing.T) {
	for _, name := range []string{"hash", "hashsync"} {
		want := fingerprint(table(t, 3, 6, 3, 3, name, "hash", "hashsync"))
		_, agents := seated(t, 3, 6, 3, 3, func(*world.Generator) {}, name, "hash", "hashsync")
		c := table(t, 3, 6, 3, 3, name, "hash", "hashsync").Config()
		mine := agents[0]
		agents[0] = world.Vacant{Sync: name == "hashsync"}
		w, err := world.Sit(c, agents)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[world.Event]int{}
		for {
			q := w.Ask()
			asked[q.Event]++
			switch q.Event {
			case world.Starts:
				mine.Starts(w.View(0))
			case world.AskFirst:
				mine.(world.Synchronous).FirstProposals(q.Replies)
			case world.AskCounters:
				mine.(world.Synchronous).CounterAll(q.Heard, q.Replies)
			case world.AskResponse:
				q.Replies[0].Response = mine.(world.Independent).Respond(q.Slot, q.Offer)
			case world.AskProposal:
				q.Replies[0].Offer, q.Replies[0].Offered = mine.(world.Independent).Propose(q.Slot)
			}
			if q.Event == world.Over {
				break
			}
		}
		if got := fingerprint(w); got != want {
			t.Errorf("%s: another world comes of a vacant seat", name)
		}
		if asked[world.DayBegins] != 6 || asked[world.DayEnds] != 6 || asked[world.Settled] != 6 || asked[world.AskFirst]+asked[world.AskProposal] < 6 {
			t.Errorf("%s: %v", name, asked)
		}
	}
}

// TestBadStates are refused, and named.
func TestBadStates(t *testing.T) {
	w := table(t, 3, 6, 2, 3, hashes...)
	for range 300 {
		w.Step()
	}
	text, err := w.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	cases := []struct{ from, to, says string }{
		{`"agents":6`, `"agents":7`, "the state is of another one: 7 agents"},
		{`"live":[`, `"live":[99,`, "live is out of range"},
		{`"event":`, `"event":1`, "none that it could stop for"},
		{`"pending":true`, `"pending":true,"pendant":1`, "pendant"},
		{`null]`, `{}]`, "had another agent"},
		{`"sync":true`, `"sync":false`, "is synchronous in one of them"},
		{`"turn":0`, `"turn":5`, "the progress of mechanism"},
		{`"partner":3`, `"partner":33`, "a slot of agent"},
		{`"due":[`, `"due":[[],`, "7 days"},
		{`{`, `[`, "load a table"},
		{`"agents":[`, `"agents":[1,`, "7 agents, expected 6"},
	}
	for _, c := range cases {
		at := strings.LastIndex(good, c.from)
		if at < 0 {
			t.Fatalf("the state has no %s", c.from)
		}
		other := table(t, 3, 6, 2, 3, hashes...)
		if err := other.LoadState([]byte(good[:at] + c.to + good[at+len(c.from):])); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.to, err, c.says)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
}
