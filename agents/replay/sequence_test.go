package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestSampleSequences compares sequences with a plain list of what happened: each transition of one
// is what followed the one before it in its environment, episodes' ends and resets included.
func TestSampleSequences(t *testing.T) {
	cases, sequences, several := 0, 0, []int{3, 1}[:longtest.Cases(t, 2, 1)]
	for _, envs := range several {
		for _, length := range []int{1, 4, 8} {
			v, _ := toys(t, envs)
			l := layoutOfToy(v)
			u, err := NewUniform(l, Config{Capacity: 90, Envs: envs, Gamma: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, u)
			w := newWorld(v, u)
			const n = 32
			b, s := batchOf(l, n), rng.New(1).Stream()
			for k := range 250 {
				if k == 60 || k == 61 || k == 150 {
					if err := v.Reset(rng.New(uint64(k))); err != nil {
						t.Fatal(err)
					}
				}
				if k < length {
					if err := u.SampleSequences(s, b, length); !errors.Is(err, ErrEmpty) {
						t.Fatalf("a sequence of %d out of %d transitions: %v", length, k, err)
					}
				}
				w.round(t)
				if k+1 < length {
					continue
				}
				if err := u.SampleSequences(s, b, length); err != nil {
					t.Fatal(err)
				}
				w.check(t, b, 1, 0.9, map[string]int{})
				at := map[string][2]int{}
				for e, list := range w.diary {
					for k, s := range list {
						at[s.obs] = [2]int{e, k}
					}
				}
				for i := range n {
					here := at[sampled(b.Obs, i)]
					if want := w.diary[here[0]][here[1]].last; want != b.Ended[i] {
						t.Fatalf("transition %v ended an episode: %v, marked %v", here, want, b.Ended[i])
					}
					if next := i + n/length; next < n {
						if there := at[sampled(b.Obs, next)]; there != [2]int{here[0], here[1] + 1} {
							t.Fatalf("%v is followed by %v", here, there)
						}
					} else {
						sequences++
					}
				}
			}
			if a := testing.AllocsPerRun(50, func() {
				if err := u.SampleSequences(s, b, length); err != nil {
					t.Fatal(err)
				}
			}); a != 0 {
				t.Errorf("%v allocations", a)
			}
			for what, c := range sorted.All(map[string]struct {
				length int
				ended  []bool
			}{"in a batch of 32": {5, b.Ended}, "columns of 32 and of 31": {4, b.Ended[1:]}}) {
				d := *b
				d.Ended = c.ended
				if err := u.SampleSequences(s, &d, c.length); err == nil || !strings.Contains(err.Error(), what) {
					t.Errorf("%s: %v", what, err)
				}
			}
			cases++
		}
	}
	if cases != 3*len(several) || sequences != len(several)*(250*32+247*8+243*4) {
		t.Errorf("%d cases, %d sequences", cases, sequences)
	}
}
