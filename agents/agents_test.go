package agents_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// walker goes left or right by the key's stream.
type walker struct {
	d      vector.Decision
	stream rng.Stream
	fail   error
}

func (w *walker) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	w.stream.Seed(key)
	for i := range w.d.Actions.Int64s() {
		w.d.Actions.Int64s()[i] = int64(w.stream.IntN(2))
	}
	return &w.d, w.fail
}

func (w *walker) Remembers() bool            { return false }
func (w *walker) Sync(context.Context) error { return nil }
func (w *walker) Close() error               { return nil }

// diary writes down the positions, actions and rewards.
type diary struct {
	positions, rewards []float64
	actions            []int64
	open               bool
}

func (r *diary) Begin(b *vector.Batch, d *vector.Decision) error {
	if r.open {
		return errors.New("begun twice")
	}
	r.open = true
	for _, x := range b.Obs[0].Float32s() {
		r.positions = append(r.positions, float64(x))
	}
	r.actions = append(r.actions, d.Actions.Int64s()...)
	return nil
}

func (r *diary) End(b *vector.Batch) error {
	if !r.open {
		return errors.New("ended without a beginning")
	}
	r.open = false
	r.rewards = append(r.rewards, b.Reward...)
	return nil
}

var (
	_ agents.Actor    = (*walker)(nil)
	_ agents.Recorder = (*diary)(nil)
)

const rows = 3

func world(t testing.TB) vector.Env {
	t.Helper()
	list := make([]envs.Env, rows)
	for i := range list {
		e, err := corridor.New(corridor.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		list[i] = e
	}
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := v.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	return v
}

func newWalker() *walker {
	return &walker{d: vector.Decision{Actions: tensor.New(tensor.Int64, rows)}}
}

// TestCollectInParts compares one collection with the same rounds in two.
func TestCollectInParts(t *testing.T) {
	whole, parts := &diary{}, &diary{}
	n := 0
	if err := agents.Collect(t.Context(), world(t), newWalker(), whole, rng.New(2), 0, 50, func(*vector.Batch) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	v := world(t)
	for _, p := range [][2]int{{0, 20}, {20, 30}} {
		if err := agents.Collect(t.Context(), v, newWalker(), parts, rng.New(2), p[0], p[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if n != 50 || len(whole.rewards) != 50*rows || len(whole.actions) != 50*rows || len(whole.positions) != 50*rows {
		t.Errorf("%d rounds, %d rewards, %d actions, %d positions", n, len(whole.rewards), len(whole.actions), len(whole.positions))
	}
	if !slices.Equal(whole.positions, parts.positions) || !slices.Equal(whole.actions, parts.actions) || !slices.Equal(whole.rewards, parts.rewards) {
		t.Error("rounds collected in two parts differ from the same in one")
	}
	if slices.Max(whole.rewards) != 1 {
		t.Error("nobody reached the end of the corridor")
	}
}

func TestCollectStops(t *testing.T) {
	fault := errors.New("no more")
	n := 0
	ctx, cancel := context.WithCancel(t.Context())
	for what, c := range sorted.All(map[string]struct {
		run  func() error
		want error
		text string
	}{
		"callback": {func() error {
			return agents.Collect(t.Context(), world(t), newWalker(), nil, rng.New(2), 0, 5, func(*vector.Batch) error { return fault })
		}, fault, "no more"},
		"actor": {func() error {
			w := newWalker()
			w.fail = fault
			return agents.Collect(t.Context(), world(t), w, nil, rng.New(2), 7, 5, nil)
		}, fault, "round 7: act: no more"},
		"context": {func() error {
			return agents.Collect(ctx, world(t), newWalker(), nil, rng.New(2), 0, 5, func(*vector.Batch) error { cancel(); return nil })
		}, context.Canceled, "canceled"},
	}) {
		if err := c.run(); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", what, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}

func TestCollectAllocatesNothing(t *testing.T) {
	v, w, first := world(t), newWalker(), 0
	if n := testing.AllocsPerRun(20, func() {
		if err := agents.Collect(t.Context(), v, w, nil, rng.New(2), first, 10, nil); err != nil {
			t.Fatal(err)
		}
		first += 10
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type maker struct{ agents.Maker }

func TestParseAndSetup(t *testing.T) {
	kinds := []agents.Kind{{Name: "walk", Parse: func(configs.Section) (agents.Maker, error) { return maker{}, nil }}}
	if m, err := agents.Parse(kinds, configs.Kinded{Kind: "walk"}); err != nil || m != (maker{}) {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := agents.Parse(kinds, configs.Kinded{Kind: "wlak"}); err == nil || !strings.Contains(err.Error(), `"walk"`) {
		t.Errorf("unknown kind: %v", err)
	}
	spec := world(t).Spec()
	good := agents.Setup{Spec: spec, Envs: 1, Engine: portable.New()}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if err := (&agents.Setup{Spec: spec}).Validate(); err == nil || !strings.Contains(err.Error(), "engine") || !strings.Contains(err.Error(), "environment") {
		t.Errorf("empty setup: %v", err)
	}
	if agents.Explore.String() != "explore" || agents.Greedy.String() != "greedy" {
		t.Error("names of modes")
	}
}
