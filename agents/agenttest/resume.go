package agenttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Variant is a configuration of an algorithm in an environment.
type Variant struct {
	Maker agents.Maker
	Spec  envs.Spec
}

// training begins a run of a variant in two environments, by two threads, whose length is known.
// What its encoder makes of windows is kept where it can be.
func (x Variant) training(t testing.TB, e engine.Compiler) (*Training, *vector.Local) {
	v := Toys(t, 2, x.Spec)
	return NewTraining(t, Agent(t, x.Maker, v, e, 2, func(s *agents.Setup) { s.TotalEnvSteps, s.Prefixes = 300, Prefixes(t) }), v), v
}

// Prefixes are closed at the end of a test, after the agents that are made later.
func Prefixes(t testing.TB) *prefix.Caches {
	c := &prefix.Caches{}
	Closing(t, c)
	return c
}

// traced takes rounds and writes down what can be seen of each, and everything that is saved in the
// end.
func (r *Training) traced(t testing.TB, rounds int) (trace []string) {
	t.Helper()
	for range rounds {
		r.Run(t, 1)
		d, err := r.Actor.Act(t.Context(), rng.New(3), r.Env.Batch())
		if err != nil {
			t.Fatal(err)
		}
		trace = append(trace, fmt.Sprint(r.Last, d.Actions.Bytes(), d.LogProb, d.Version))
	}
	return append(trace, manifest(t, r))
}

// manifest is that of a run that is saved now: it has the sections and the sum of the arrays.
func manifest(t testing.TB, r *Training) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Save(t, r.Agent), "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Save saves an agent's learner and returns the path of the checkpoint.
func Save(t testing.TB, a agents.Agent) string {
	t.Helper()
	path, err := trySave(t, a)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// trySave saves an agent's learner, or says why that cannot be now.
func trySave(t testing.TB, a agents.Agent) (path string, err error) {
	t.Helper()
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, store)
	return store.Save(checkpoint.Meta{Kind: "test", Step: 3}, a.Learner())
}

// Load makes an agent's learner what was saved.
func Load(t testing.TB, path string, a agents.Agent) error {
	t.Helper()
	saved, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, saved)
	return saved.Load(a.Learner())
}

// Resume trains twice, and a third time with a checkpoint and a fresh agent after some of the
// rounds: metrics, actions and everything that is saved have the same bits. Other actors in
// between, greedy or exploring, change nothing. Then it stops wherever a run can, see [Stops]. The
// number of updates in all must be at least so many. The fastest engine runs all variants, others
// the first one without windows, where there is one: what is saved does not depend on them.
func Resume(t *testing.T, variants map[string]Variant, stop, rounds, updates int) {
	t.Helper()
	resume(t, variants, 1, stop, rounds, updates)
}

// ResumeEverywhere is Resume of all variants without windows on every engine; it takes long where
// there are many.
func ResumeEverywhere(t *testing.T, variants map[string]Variant, stop, rounds, updates int) {
	t.Helper()
	resume(t, variants, len(variants), stop, rounds, updates)
}

// resume has at most so many variants on engines other than the fastest.
func resume(t *testing.T, variants map[string]Variant, most, stop, rounds, updates int) {
	t.Helper()
	n, want, within := 0, 0, 0
	engines := testengines.All(t)
	for i, e := range engines {
		other := i < len(engines)-1
		tried := 0
		for what, x := range sorted.All(variants) {
			// The portable engine takes its time over windows, which the other one runs.
			if other && (tried == most || Windowed(x.Spec)) {
				continue
			}
			tried++
			want++
			whole, _ := x.training(t, e)
			whole.Run(t, stop)
			bits := whole.traced(t, rounds-stop)
			part, v := x.training(t, e)
			part.Run(t, stop)
			fresh := x.resumed(t, e, part, v)
			if !slices.Equal(part.traced(t, rounds-stop), bits) {
				t.Errorf("%s, %s: two runs of one seed differ", e.Name(), what)
			}
			if !slices.Equal(fresh.traced(t, rounds-stop), bits) {
				t.Errorf("%s, %s: a resumed run differs from one that never stopped", e.Name(), what)
			}
			if got := whole.Last["train/n_updates"]; got < float64(updates) {
				t.Errorf("%s, %s: %g updates, expected %d", e.Name(), what, got, updates)
			}
			within += Stops(t, e.Name()+", "+what, func() *Training { r, _ := x.training(t, e); return r }, stop+8)
			n++
		}
	}
	if within < 3 {
		t.Errorf("%d runs went on between two gradient steps", within)
	}
	least := len(variants)
	if slices.ContainsFunc(slices.Collect(maps.Values(variants)), func(x Variant) bool { return !Windowed(x.Spec) }) {
		least += len(engines) - 1
	}
	if n != want || n < least {
		t.Errorf("%d comparisons of %d variants", n, len(variants))
	}
}

// resumed saves a run and returns it in a fresh agent with fresh environments.
func (x Variant) resumed(t testing.TB, e engine.Compiler, r *Training, v *vector.Local) *Training {
	t.Helper()
	path := Save(t, r.Agent)
	world, err := v.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []agents.Mode{agents.Greedy, agents.Explore} {
		if err := agents.Collect(t.Context(), Toys(t, 3, x.Spec), Actor(t, r.Agent, m, 3), nil, rng.New(1), 0, 5, nil); err != nil {
			t.Fatal(err)
		}
	}
	fresh, v2 := x.training(t, e)
	if err := v2.LoadState(world); err != nil {
		t.Fatal(err)
	}
	_, params := fresh.Agent.Learner().Policy()
	for _, s := range params.Segments() {
		clear(s.Floats())
	}
	if err := Load(t, path, fresh.Agent); err != nil {
		t.Fatal(err)
	}
	fresh.Done, fresh.Last = r.Done, maps.Clone(r.Last)
	return fresh
}

// NoAllocations counts allocations of whole rounds with their updates, after some rounds.
func NoAllocations(t *testing.T, variants map[string]Variant, rounds int) {
	t.Helper()
	e := testengines.Fastest(t)
	for what, x := range longtest.Few(t, variants, 2) {
		r, _ := x.training(t, e)
		r.Run(t, rounds)
		before := r.Last["train/n_updates"]
		if a := testing.AllocsPerRun(50, func() { r.Run(t, 1) }); a > testengines.Allocations(e) {
			t.Errorf("%s: %v allocations", what, a)
		}
		if r.Last["train/n_updates"] == before {
			t.Errorf("%s: no update", what)
		}
	}
	if len(variants) == 0 {
		t.Error("no variant")
	}
}
