package agents_test

import (
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestProfile measures by a clock that goes on by a second whenever it is read.
func TestProfile(t *testing.T) {
	var read int64
	p := agents.NewProfile(func() time.Time { read++; return time.Unix(read, 0) })
	before := p.Total()
	whole := p.Start()                                           // 1
	inner := p.Start().Lap(agents.Sampling).Lap(agents.Gradient) // 2, 3, 4
	inner.Lap(agents.Gradient)                                   // 5
	whole.LapRest(agents.Learning, before).Lap(agents.Syncing)   // 6, 7
	want := map[string]time.Duration{"sample": time.Second, "gradient": 2 * time.Second, "learner rest": 2 * time.Second, "sync": time.Second}
	got := p.ByName()
	for name, d := range sorted.All(want) {
		if got[name] != d {
			t.Errorf("%s took %v, expected %v", name, got[name], d)
		}
	}
	if d, n := p.Spent(agents.Gradient); len(got) != len(want) || d != 2*time.Second || n != 2 || p.Total() != 6*time.Second {
		t.Errorf("%v: gradient %v in %d", got, d, n)
	}
	seen := map[string]bool{}
	for _, phase := range agents.Phases() {
		seen[phase.String()] = true
	}
	if len(seen) != 9 {
		t.Errorf("names %v", seen)
	}
	var off *agents.Profile
	if n := testing.AllocsPerRun(100, func() {
		off.Start().Lap(agents.Gradient).LapRest(agents.Learning, off.Total())
		p.Start().Lap(agents.Gradient)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if d, n := off.Spent(agents.Acting); d != 0 || n != 0 || len(off.ByName()) != 0 {
		t.Errorf("a profile that is off measured %v in %d", d, n)
	}
}
