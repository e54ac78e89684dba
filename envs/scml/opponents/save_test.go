package opponents_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/market"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// hashes are agents without memory, so that what they say after a world is loaded is what they
// would have said.
var hashes = []string{"hash", "hashsync", "hashsync"}

// TestSaveAnywhere saves worlds after every call of Next of some days, and plays on in another
// world: the same comes of it.
func TestSaveAnywhere(t *testing.T) {
	for _, levels := range []int{2, 4} {
		w := table(t, 3, 6, levels, 3, hashes...)
		want := fingerprint(table(t, 3, 6, levels, 3, hashes...))
		s := rng.New(1).Stream()
		saves, calls := 0, 0
		for {
			q := w.Step()
			if calls++; q.Event == world.Over {
				break
			}
			if s.IntN(40) != 0 {
				continue
			}
			state, err := w.SaveState()
			if err != nil {
				t.Fatal(err)
			}
			other, agents := seated(t, 3, 6, levels, 3, func(*market.Generator) {}, hashes...)
			// Agents learn whose view is theirs before the first day.
			for i, a := range agents {
				a.Starts(other.View(i))
			}
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
		{`"sync":true`, `"sync":false`, "is synchronous in one of them"},
		{`"turn":0`, `"turn":5`, "the progress of mechanism"},
		{`"partner":3`, `"partner":33`, "a slot of agent"},
		{`"due":[`, `"due":[[],`, "7 days"},
		{`{`, `[`, "load a world"},
		{`"agents":6`, `"agenda":6`, "agenda"},
	}
	for _, c := range cases {
		if !strings.Contains(good, c.from) {
			t.Fatalf("the state has no %s", c.from)
		}
		other := table(t, 3, 6, 2, 3, hashes...)
		if err := other.LoadState([]byte(strings.Replace(good, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.to, err, c.says)
		}
	}
	if len(cases) != 8 {
		t.Errorf("%d cases", len(cases))
	}
}
