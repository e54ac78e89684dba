package replay

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// loaded restores a checkpoint into a new store.
func loaded(t *testing.T, path string, l Layout, c SharedConfig) *Shared {
	t.Helper()
	s, err := NewShared(l, c)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	saved, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, saved)
	if err := saved.Load(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWritersByName: writers of a restored store are those of their names, in any order; one more
// begins, one fewer is missing until it is opened or dropped, also in the next checkpoint.
func TestWritersByName(t *testing.T) {
	config := SharedConfig{Capacity: 250, ChunkRows: 16}
	s, worlds, l := sharedWorlds(t, config, 3, 2)
	for range 41 {
		for _, w := range worlds {
			w.round(t)
		}
	}
	path := checkpointed(t, "shared", s)
	at := func(w *Writer) []place { return slices.Clone(w.at) }
	cases := 0

	r := loaded(t, path, l, config)
	if got := r.Missing(); !slices.Equal(got, []string{"policy 0", "policy 1", "policy 2"}) {
		t.Errorf("missing are %v", got)
	}
	for _, i := range []int{2, 0} {
		if w := writerOf(t, r, int32(i), worlds[i]); !slices.Equal(at(w), at(worlds[i].rec.(*Writer))) {
			t.Errorf("writer %d goes on at %v, expected %v", i, w.at, worlds[i].rec.(*Writer).at)
		}
		cases++
	}
	if w, err := r.Writer("another", 1, 2, nil); err != nil || w.at[0].chunk >= 0 || w.at[1].chunk >= 0 {
		t.Errorf("a writer that the checkpoint does not have: %+v, %v", w, err)
	}
	if got := r.Missing(); !slices.Equal(got, []string{"policy 1"}) {
		t.Errorf("missing are %v", got)
	}
	if err := r.Drop("policy 1", "policy 0"); err == nil || !strings.Contains(err.Error(), `no writer "policy 0"`) || len(r.Missing()) != 1 {
		t.Errorf("a writer that is open was dropped: %v", err)
	}
	again := loaded(t, checkpointed(t, "shared", r), l, config)
	if got := again.Missing(); !slices.Equal(got, []string{"another", "policy 0", "policy 1", "policy 2"}) {
		t.Errorf("missing in the next checkpoint are %v", got)
	}
	if w := writerOf(t, again, 1, worlds[1]); !slices.Equal(at(w), at(worlds[1].rec.(*Writer))) {
		t.Errorf("writer 1 goes on at %v, expected %v", w.at, worlds[1].rec.(*Writer).at)
	}
	before, open := r.Stats(), len(r.queue)
	if err := r.Drop("policy 1"); err != nil || len(r.Missing()) != 0 || len(r.queue) != open+2 || r.Stats().Transitions != before.Transitions {
		t.Errorf("a missing writer was not dropped: %v, %v, %+v", err, r.Missing(), r.Stats())
	}
	if w := writerOf(t, r, 1, worlds[1]); w.at[0].chunk >= 0 {
		t.Errorf("a writer that was dropped goes on at %v", w.at)
	}
	if cases++; cases != 3 {
		t.Errorf("%d cases", cases)
	}
}

// TestWritersWithoutNames restores testdata/shared_v1, which the program wrote when writers had no
// names: their policies distinguish them. The store has every byte of one that has just recorded
// the same.
func TestWritersWithoutNames(t *testing.T) {
	config := SharedConfig{Capacity: 40, ChunkRows: 8}
	v, _ := toysFrom(t, 1, 0)
	l := layoutOfToy(v)
	l.Skill, l.Costs = nil, 0
	fresh, err := NewShared(l, config)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, fresh)
	old := loaded(t, "testdata/shared_v1", l, config)
	if got := old.Missing(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("missing are %q", got)
	}
	var worlds []*world
	for i := range 2 {
		v, _ := toysFrom(t, 1, i)
		w := newWorld(v, nil)
		w.stream.Seed(rng.New(uint64(i)))
		w.rec = writerOf(t, fresh, int32(i), w)
		worlds = append(worlds, w)
	}
	for k := range 18 {
		for i, w := range worlds {
			if k < 17 || i == 1 {
				w.round(t)
			}
		}
	}
	compare := func() {
		t.Helper()
		if !bytes.Equal(old.data, fresh.data) || old.clock.Load() != fresh.clock.Load() || !slices.Equal(old.queue, fresh.queue) || !slices.Equal(old.free, fresh.free) {
			t.Errorf("the store is not what was recorded: %+v, expected %+v", old.Stats(), fresh.Stats())
		}
	}
	compare()
	for i, w := range slices.Backward(worlds) {
		w.rec = both{w.rec, writerOf(t, old, int32(i), w)}
	}
	n := 0
	for range 30 {
		for _, w := range worlds {
			w.round(t)
			n++
		}
	}
	compare()
	if n != 60 || len(old.Missing()) != 0 {
		t.Errorf("%d rounds, missing are %q", n, old.Missing())
	}
}
