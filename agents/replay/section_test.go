package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestSections: members of a divided store read what there was before and what they have recorded
// themselves, whoever records meanwhile: in any order they draw the same, and the united store is
// the same. One that records more than its section has room for writes over its own oldest rows.
func TestSections(t *testing.T) {
	const members, lanes, stretches, rounds = 3, 2, 4, 40
	outcomes := map[string]bool{}
	for _, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}[:longtest.Cases(t, 3, 2)] {
		var s *Shared
		var all []*world
		outcome := ""
		for i := range members {
			v, _ := toysFrom(t, lanes, i*lanes)
			if s == nil {
				var err error
				if s, err = NewShared(layoutOfToy(v), SharedConfig{Capacity: 1200, ChunkRows: 8, Name: "store"}); err != nil {
					t.Fatal(err)
				}
				closing(t, s)
			}
			w := newWorld(v, nil)
			w.stream.Seed(rng.New(uint64(i)))
			all = append(all, w)
		}
		for g := range stretches {
			sections, err := s.Divide(members, lanes, rounds)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SaveState(nil); err == nil {
				t.Error("a divided store is saved")
			}
			draws := make([]string, members)
			for _, i := range order {
				b, err := sections[i].Member(fmt.Sprint("member ", i), int32(i), SamplerConfig{}).Open(s.l, Config{Envs: lanes, Gamma: 0.9})
				if err != nil {
					t.Fatal(err)
				}
				m, before := b.(*member), b.Len()
				all[i].rec = m
				n := rounds
				if g == 2 && i == 1 {
					n *= 5
				}
				stream := rng.New(uint64(10*g + i)).Stream()
				batch := sharedBatch(s, 16)
				for range n {
					all[i].round(t)
					if err := m.Sample(stream, batch); err != nil {
						t.Fatal(err)
					}
					checkShared(t, s, all, batch, 1, 0.9)
					for k, policy := range batch.Policy {
						if g == 0 && policy != int32(i) {
							t.Fatalf("member %d draws what %d does", i, policy)
						}
						draws[i] += fmt.Sprint(policy, batch.Time[k], batch.Reward[k], " ")
					}
				}
				if grown := b.Len() - before; n == rounds && grown != rounds*lanes || n > rounds && grown >= n*lanes {
					t.Errorf("stretch %d: member %d has recorded %d transitions of %d", g, i, grown, n*lanes)
				}
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s.Unite()
			outcome += strings.Join(draws, "\n")
		}
		outcome += fmt.Sprint(s.queue, s.free, s.clock.Load())
		if want := int64(members*stretches*rounds+4*rounds) * lanes; s.clock.Load() != want {
			t.Errorf("%d transitions were recorded, expected %d", s.clock.Load(), want)
		}
		if left := append(slices.Clone(s.queue), s.free...); len(left) != len(s.chunks) {
			t.Errorf("%d of %d chunks are left", len(left), len(s.chunks))
		}
		outcomes[outcome] = true
		if _, err := s.Divide(members, 40*lanes, rounds); err == nil || !strings.Contains(err.Error(), "expected at least") {
			t.Error(err)
		}
	}
	if len(outcomes) != 1 {
		t.Errorf("%d outcomes, depending on the order of members", len(outcomes))
	}
}
