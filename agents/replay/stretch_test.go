package replay

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// shows describes observation i of a stretch, as shown does.
func (x *Stretch) shows(spec envs.Spec, i int) string {
	out := ""
	for f, field := range spec.Observation {
		if w := field.Window; w != nil {
			out += fmt.Sprintf("%x|", w.At(int(x.Rows[f][i])).Bytes())
			continue
		}
		n := len(x.Obs[f]) / (len(x.Reward) + 1)
		out += fmt.Sprintf("%x|", x.Obs[f][i*n:(i+1)*n])
	}
	return out
}

// snapshotOf is a replay as its checkpoint has it.
func snapshotOf(t *testing.T, s checkpoint.Stater, spec envs.Spec) *Snapshot {
	t.Helper()
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := store.Save(checkpoint.Meta{Kind: "test", Step: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, store)
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c)
	p, err := OpenSnapshot(c.Reader(), spec)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, p)
	return p
}

// compare finds the transitions of a snapshot in what the worlds of its policies wrote down, and
// returns how many there are.
func (p *Snapshot) compare(t *testing.T, worlds []*world) (transitions int) {
	t.Helper()
	spec := worlds[0].v.Spec()
	n := envs.MaskLen(spec.Action)
	for _, policy := range p.Policies() {
		w := worlds[policy]
		for x := range p.Stretches(policy) {
			first, ok := w.index[x.shows(spec, 0)]
			if !ok {
				t.Fatalf("policy %d has a stretch of no world's", policy)
			}
			for i, r := range x.Reward {
				s := w.diary[first[0]][first[1]+i]
				mask := ""
				for _, b := range x.Mask[i*n : (i+1)*n] {
					mask += fmt.Sprint(b == 1, " ")
				}
				if s.obs != x.shows(spec, i) || s.next != x.shows(spec, i+1) || s.mask != "["+strings.TrimSpace(mask)+"]" || s.action != int64(binary.LittleEndian.Uint64(x.Action[8*i:])) {
					t.Fatalf("policy %d: transition %d of a stretch is another one", policy, i)
				}
				if math.Abs(float64(r)-s.reward) > 1e-5 || float64(x.Discount[i]) != s.discount || x.LogProb[i] != float32(s.logProb) || !costly(x.Cost[2*i:], []step{s}, 0, 1, 1) {
					t.Fatalf("policy %d: %v %v %v, recorded %+v", policy, r, x.Discount[i], x.LogProb[i], s)
				}
				if ends := i == len(x.Reward)-1 && x.Ended; ends != s.last {
					t.Fatalf("policy %d: a stretch ends with %t, recorded %+v", policy, ends, s)
				}
				transitions++
			}
		}
	}
	return transitions
}

// TestStretches: a snapshot has all transitions that can be drawn, once each, also after the ring
// has gone around, of absent rows and after resets in the middle of episodes.
func TestStretches(t *testing.T) {
	cases := 0
	for _, envs := range []int{1, 3} {
		for _, rounds := range []int{7, 60, 400} {
			v, _ := toys(t, envs)
			u, err := NewUniform(layoutOfToy(v), Config{Capacity: 120, Envs: envs, Gamma: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, u)
			w := newWorld(v, u)
			for k := range rounds {
				if k == 20 {
					if err := v.Reset(rng.New(uint64(k))); err != nil {
						t.Fatal(err)
					}
				}
				w.round(t)
			}
			if got := snapshotOf(t, u, v.Spec()).compare(t, []*world{w}); got != u.Len() || got == 0 {
				t.Errorf("%d environments, %d rounds: %d transitions of %d", envs, rounds, got, u.Len())
			}
			cases++
		}
	}
	for _, rounds := range []int{7, 60, 200} {
		s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 250, ChunkRows: 16}, 2, 2)
		for range rounds {
			for _, w := range worlds {
				w.round(t)
			}
		}
		want := s.Stats().Transitions
		if got := snapshotOf(t, s, worlds[0].v.Spec()).compare(t, worlds); got != want || got == 0 {
			t.Errorf("shared, %d rounds: %d transitions of %d", rounds, got, want)
		}
		cases++
	}
	if cases != 9 {
		t.Errorf("%d cases", cases)
	}
}
