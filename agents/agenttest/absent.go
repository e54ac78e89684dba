package agenttest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Shifts steps so many worlds with three workers each, which have been reset. With litter they
// leave garbage where agents are absent.
func Shifts(t testing.TB, worlds int, dials, litter bool) *vector.Multi {
	t.Helper()
	list := make([]envs.Multi, worlds)
	for i := range list {
		if list[i] = (&envtest.Shifts{Workers: 3, Dials: dials}); litter {
			list[i] = envtest.Littering{Multi: list[i]}
		}
	}
	v, err := vector.NewMulti(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, v)
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

// Absent trains agents in worlds whose agents come and go, [envtest.Shifts] with dials or without,
// for so many rounds. What a world leaves in the place of absent agents changes nothing, bit for
// bit, and neither does saving and resuming while an agent is absent.
func Absent(t *testing.T, makers map[string]agents.Maker, dials bool, rounds int) {
	t.Helper()
	makers = longtest.Few(t, makers, 1)
	e := testengines.Fastest(t)
	n := 0
	for what, m := range sorted.All(makers) {
		training := func(litter bool) (*Training, *vector.Multi) {
			v := Shifts(t, 2, dials, litter)
			return NewTraining(t, Agent(t, m, v, e, 1, func(s *agents.Setup) { s.TotalEnvSteps = 600 }), v), v
		}
		clean, v := training(false)
		absent, stop := 0, 0
		for i := range rounds {
			clean.Run(t, 1)
			for r, here := range v.Batch().Present {
				if !here {
					absent++
					if i > rounds/2 && stop == 0 && r%3 > 0 {
						stop = i + 1
					}
				}
			}
		}
		if absent < rounds/2 || stop == 0 {
			t.Fatalf("%s: %d rows were absent, the first after half of the rounds in round %d", what, absent, stop)
		}
		if clean.Last["train/n_updates"] < 3 {
			t.Errorf("%s: %g updates", what, clean.Last["train/n_updates"])
		}
		whole, _ := training(false)
		whole.Run(t, stop)
		last := maps.Clone(whole.Last)
		want := whole.traced(t, rounds-stop)
		litter, worlds := training(true)
		litter.Run(t, stop)
		path := Save(t, litter.Agent)
		state, err := worlds.SaveState()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(litter.traced(t, rounds-stop), want) {
			t.Errorf("%s: garbage in absent rows changes something", what)
		}
		resumed, worlds := training(true)
		if err := worlds.LoadState(state); err != nil {
			t.Fatal(err)
		}
		if err := Load(t, path, resumed.Agent); err != nil {
			t.Fatal(err)
		}
		if a := testing.AllocsPerRun(20, func() { whole.Run(t, 1) }); a > testengines.Allocations(e) {
			t.Errorf("%s: %v allocations", what, a)
		}
		if slices.Index(worlds.Batch().Present, false) < 0 {
			t.Errorf("%s: it was not resumed in an absence", what)
		}
		resumed.Done, resumed.Last = stop, last
		if !slices.Equal(resumed.traced(t, rounds-stop), want) {
			t.Errorf("%s: a run that was resumed in an absence differs from one that never stopped", what)
		}
		n++
	}
	if n == 0 || n != len(makers) {
		t.Errorf("%d of %d makers", n, len(makers))
	}
}

// haunted is a world with one more agent, which never comes.
type haunted struct{ envs.Multi }

// Agents implements envs.Multi.
func (w haunted) Agents() []string { return append(w.Multi.Agents(), "ghost") }

// Reset implements envs.Multi.
func (w haunted) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	n := len(steps) - 1
	present[n] = false
	return w.Multi.Reset(key, steps[:n], present[:n])
}

// Step implements envs.Multi.
func (w haunted) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	n := len(steps) - 1
	present[n] = false
	return w.Multi.Step(actions[:n], steps[:n], present[:n])
}

// Haunted trains on-policy agents in a world with and without an agent that never comes: its row is
// in no loss, mean or deviation, so that all metrics and parameters are the same but for rounding.
func Haunted(t *testing.T, makers map[string]agents.Maker, updates int) {
	t.Helper()
	makers = longtest.Few(t, makers, 2)
	e := testengines.Fastest(t)
	compared := 0
	for what, m := range sorted.All(makers) {
		train := func(w envs.Multi) *Training {
			v, err := vector.NewMulti([]envs.Multi{w}, vector.Options{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			Closing(t, v)
			if err := v.Reset(rng.New(11)); err != nil {
				t.Fatal(err)
			}
			r := NewTraining(t, Agent(t, m, v, e, 1), v)
			for range updates {
				r.Update(t)
			}
			return r
		}
		a, b := train(&envtest.Shifts{Workers: 2}), train(haunted{&envtest.Shifts{Workers: 2}})
		near := func(name string, x, y float64) {
			if compared++; math.Abs(x-y) > 2e-4*(1+math.Abs(x)) {
				t.Errorf("%s: %s is %g with an agent that never comes, and %g without", what, name, y, x)
			}
		}
		for tag, x := range sorted.All(a.Last) {
			near(tag, x, b.Last[tag])
		}
		_, p := a.Agent.Learner().Policy()
		_, q := b.Agent.Learner().Policy()
		for i, s := range p.Segments() {
			for k, x := range s.Floats() {
				near(fmt.Sprintf("parameter %d of segment %d", k, i), float64(x), float64(q.Segments()[i].Floats()[k]))
			}
		}
	}
	if compared < 50*len(makers) || len(makers) == 0 {
		t.Errorf("%d comparisons of %d makers", compared, len(makers))
	}
}

// LearnsShifts trains in worlds of [envtest.Shifts], at most so many rounds, and requires greedy
// returns of at least 95 % of the greatest possible ones, over 60 episodes or more.
func LearnsShifts(t *testing.T, m agents.Maker, dials bool, rounds int) {
	t.Helper()
	v := Shifts(t, 4, dials, false)
	r := NewTraining(t, Agent(t, m, v, testengines.Fastest(t), 1), v)
	r.Run(t, rounds)
	if err := v.Reset(rng.New(99)); err != nil {
		t.Fatal(err)
	}
	x, earned, steps, n := Actor(t, r.Agent, agents.Greedy, v.Len()), 0.0, 0, 0
	for round := range 60 {
		if err := agents.Collect(t.Context(), v, x, nil, rng.New(8), round, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.Batch().Ended {
			earned, steps, n = earned+e.Return, steps+e.Length, n+1
		}
	}
	share := earned / float64(steps)
	t.Logf("%.3f of the greatest return in %d episodes of %d steps", share, n, steps)
	if share < 0.95 || n < 60 {
		t.Errorf("%.3f of the greatest return in %d episodes, expected 0.95 in at least 60", share, n)
	}
}
