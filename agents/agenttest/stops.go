package agenttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/onnxrl/onnxrl/envs/vector"
)

// After is a context that ends after its error was asked for so many times.
type After struct {
	context.Context
	Left int
}

// Err implements context.Context.
func (c *After) Err() error {
	if c.Left--; c.Left < 0 {
		return context.Canceled
	}
	return nil
}

// Stops trains for a number of rounds, and again with stops: between rounds, before an update and
// after more and more gradient steps of one. Wherever it stops, the run is saved and goes on in a
// fresh one. Decisions, metrics and everything that is saved in the end have the same bits. start
// begins equal runs in environments that can be saved. It returns how often a run went on between
// two gradient steps.
func Stops(t testing.TB, what string, start func() *Training, rounds int) (within int) {
	t.Helper()
	whole, r := start(), start()
	var want, got []string
	steps := 0
	for round := range rounds {
		if whole.Round(t); whole.Agent.Learner().Ready() {
			whole.Learn(t)
		}
		want = append(want, seen(t, whole))

		if r.Round(t); round%7 == 2 {
			r = r.goOn(t, start)
		}
		for checks := steps; r.Agent.Learner().Ready(); checks *= 2 {
			ctx := &After{t.Context(), checks}
			if checks > 2*steps || steps > 6 {
				ctx.Left = 1 << 30
			}
			m, err := r.Agent.Learner().Step(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err != nil {
				if checks > 0 {
					within++
				}
				checks++
				r = r.goOn(t, start)
				continue
			}
			steps++
			r.Last = m
			if err := r.Actor.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, seen(t, r))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: a run that was stopped differs in round %d:\n%s\nexpected\n%s", what, i, got[i], want[i])
		}
	}
	if a, b := manifest(t, whole), manifest(t, r); a != b {
		t.Errorf("%s: a run that was stopped ends in another state:\n%s\nexpected\n%s", what, b, a)
	}
	if steps == 0 {
		t.Errorf("%s: no update", what)
	}
	return within
}

// seen describes what the newest round led to.
func seen(t testing.TB, r *Training) string {
	text := fmt.Sprint(r.Last)
	for i, x := range r.Env.Batch().Obs {
		if x != nil {
			text += fmt.Sprint(x.Bytes())
		} else {
			text += fmt.Sprint(r.Env.Batch().Rows[i])
		}
	}
	_, params := r.Agent.Learner().Policy()
	for _, s := range params.Segments() {
		sum := 0.0
		for i, x := range s.Floats() {
			sum += float64(x) * float64(i%101+1)
		}
		text += fmt.Sprintf(" %v", sum)
	}
	return text
}

// goOn saves a run and returns it in a fresh one.
func (r *Training) goOn(t testing.TB, start func() *Training) *Training {
	t.Helper()
	path := Save(t, r.Agent)
	world, err := vector.SaveState(r.Env)
	if err != nil {
		t.Fatal(err)
	}
	fresh := start()
	if err := vector.LoadState(fresh.Env, world); err != nil {
		t.Fatal(err)
	}
	if err := Load(t, path, fresh.Agent); err != nil {
		t.Fatal(err)
	}
	fresh.Done, fresh.Last = r.Done, maps.Clone(r.Last)
	return fresh
}
