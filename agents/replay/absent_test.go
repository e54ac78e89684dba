package replay

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// team is a world of toys, each of which pauses for some steps after its episodes, and leaves
// garbage there. The last of them never comes.
type team struct {
	toys   []*toy
	pause  []int
	random rng.Stream
	length int
}

func (w *team) Spec() envs.Spec { return w.toys[0].spec }
func (w *team) Close() error    { return nil }

func (w *team) Agents() []string {
	list := []string{}
	for i := range w.pause {
		list = append(list, string(rune('a'+i)))
	}
	return list
}

func (w *team) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	w.random.Seed(key)
	w.length = 20 + w.random.IntN(20)
	for i, e := range w.toys {
		w.pause[i] = w.random.IntN(2) * i
		if present[i] = w.pause[i] == 0; present[i] {
			if err := e.Reset(key.Split("toy", i), steps[i]); err != nil {
				return err
			}
		}
	}
	return w.absent(steps, present)
}

func (w *team) absent(steps []*envs.TimeStep, present []bool) error {
	present[len(w.toys)] = false
	for i, here := range present {
		if !here {
			w.random.FillNormal32(steps[i].Obs[0].Float32s(), 0, 1)
			steps[i].Obs[2].Int64s()[0] = -1
			clear(steps[i].Mask.Bools())
		}
	}
	return nil
}

func (w *team) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	w.length--
	for i, e := range w.toys {
		present[i] = true
		if w.pause[i] > 0 {
			if w.pause[i]--; w.pause[i] > 0 {
				present[i] = false
			} else if err := e.Reset(rng.New(w.random.Uint64()), steps[i]); err != nil {
				return err
			}
			continue
		}
		if err := e.Step(actions[i], steps[i]); err != nil {
			return err
		}
		if steps[i].Type == envs.Mid && w.length <= 0 {
			steps[i].Type = envs.Last
		}
		if steps[i].Type == envs.Last {
			w.pause[i] = 1 + w.random.IntN(4)
		}
	}
	return w.absent(steps, present)
}

// uniform is what a Prioritised is, too.
func (u *Uniform) uniform() *Uniform { return u }

// teams steps two worlds of three agents.
func teams(t testing.TB) vector.Env {
	t.Helper()
	spec := toySpec(t)
	list := make([]envs.Multi, 2)
	for i := range list {
		list[i] = &team{toys: []*toy{{spec: spec, id: 2 * i}, {spec: spec, id: 2*i + 1}}, pause: make([]int, 3)}
	}
	v, err := vector.NewMulti(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, v)
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAbsentRows compares what is sampled with what happened in worlds whose agents come and go,
// are reset in the middle of episodes, and are absent when the replay is saved and restored: no
// sample reaches over an absence, and each transition is there once.
func TestAbsentRows(t *testing.T) {
	shared := func(t *testing.T, l Layout, capacity int) *Shared {
		s, err := NewShared(l, SharedConfig{Capacity: capacity, ChunkRows: 16, Name: "store"})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, s)
		return s
	}
	cases, samples, resumed := 0, 0, 0
	for what, open := range sorted.All(map[string]func(t *testing.T, l Layout, c Config) (Buffer, checkpoint.Stater){
		"uniform": func(t *testing.T, l Layout, c Config) (Buffer, checkpoint.Stater) {
			u, err := NewUniform(l, c)
			if err != nil {
				t.Fatal(err)
			}
			return u, u
		},
		"prioritised": func(t *testing.T, l Layout, c Config) (Buffer, checkpoint.Stater) {
			u, err := NewPrioritised(l, c, Priorities{Alpha: 0.6, Eps: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			return u, u
		},
		"lent": func(t *testing.T, l Layout, c Config) (Buffer, checkpoint.Stater) {
			u, err := NewUniform(l, c)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, u)
			b, err := u.Lend("mine").Open(l, c)
			if err != nil {
				t.Fatal(err)
			}
			return b, u
		},
		"member": func(t *testing.T, l Layout, c Config) (Buffer, checkpoint.Stater) {
			s := shared(t, l, c.Capacity)
			b, err := s.Member("one", 0, SamplerConfig{}).Open(l, c)
			if err != nil {
				t.Fatal(err)
			}
			return b, s
		},
	}) {
		for _, c := range []Config{{Capacity: 200, Envs: 6, NSteps: 1, Gamma: 0.9}, {Capacity: 200, Envs: 6, NSteps: 3, Gamma: 0.9}, {Capacity: 4000, Envs: 6, NSteps: 1, Gamma: 0.9}} {
			v := teams(t)
			l := layoutOfToy(v)
			rec, state := open(t, l, c)
			closing(t, rec)
			w := newWorld(v, rec)
			b, s, absent := batchOf(l, 24), rng.New(1).Stream(), 0
			check := func() {
				t.Helper()
				samples += len(b.Reward)
				if _, chunked := state.(*Shared); !chunked {
					w.check(t, b, c.NSteps, 0.9, map[string]int{})
					return
				}
				b.Policy = make([]int32, len(b.Reward))
				checkShared(t, nil, []*world{w}, b, c.NSteps, 0.9)
			}
			for k := range 300 {
				if k == 100 || k == 101 || k == 200 {
					if err := v.Reset(rng.New(uint64(k))); err != nil {
						t.Fatal(err)
					}
				}
				w.round(t)
				for _, here := range v.Batch().Present {
					if !here {
						absent++
					}
				}
				if k%4 > 0 {
					continue
				}
				if err := rec.Sample(s, b); err != nil {
					t.Fatal(err)
				}
				check()
				if c.NSteps == 1 && k > 60 {
					if err := rec.SampleSequences(s, b, 3); err != nil {
						t.Fatal(err)
					}
					check()
				}
			}
			if absent < 2*300+300 {
				t.Errorf("%s: %d rows were absent", what, absent)
			}
			total, ends, interrupted := 0, 0, 0
			for e, list := range w.diary {
				for _, x := range list {
					if x.last {
						ends++
					}
					if x.interrupted {
						interrupted++
					}
				}
				if total += len(list); e%3 == 2 && len(list) > 0 {
					t.Errorf("%s: row %d has %d transitions", what, e, len(list))
				}
			}
			if c.Capacity > 2000 {
				drawn, times := map[string]bool{}, map[int64]bool{}
				// The lists of samplers are renewed where a store is saved.
				checkpointed(t, "replay", state)
				finals := 0
				switch x := state.(type) {
				case *Shared:
					b.Time = make([]int64, len(b.Reward))
					for row := range x.rows.n {
						if x.isFinal(row) {
							finals++
						}
					}
					if st := x.Stats(); st.Recorded != int64(total) || finals > ends || finals < ends-interrupted {
						t.Errorf("%s: %+v and %d final observations, expected %d transitions and %d", what, st, finals, total, ends)
					}
				case interface{ uniform() *Uniform }:
					for row := range x.uniform().rows.n {
						if x.uniform().finals.has(row) {
							finals++
						}
					}
					if finals != ends {
						t.Errorf("%s: %d final observations, expected %d", what, finals, ends)
					}
				}
				for len(drawn) < total {
					if err := rec.Sample(s, b); err != nil {
						t.Fatal(err)
					}
					for i := range b.Reward {
						drawn[sampled(b.Obs, i)] = true
						if b.Time != nil {
							times[b.Time[i]] = true
						}
					}
					if samples += len(b.Reward); samples > 1e6 {
						t.Fatalf("%s: %d of %d transitions are there", what, len(drawn), total)
					}
				}
				if len(times) > 0 && len(times) != total {
					t.Errorf("%s: %d times of %d transitions", what, len(times), total)
				}
				b.Time = nil
				if rec.Len() != total {
					t.Errorf("%s: %d transitions, expected %d", what, rec.Len(), total)
				}
			}
			// The store is saved and restored where a row is absent that has been there.
			for !slices.Contains([]bool{v.Batch().Present[0], v.Batch().Present[1]}, false) {
				w.round(t)
			}
			again, into := open(t, l, c)
			saved, err := checkpoint.Open(checkpointed(t, "replay", state))
			if err != nil {
				t.Fatal(err)
			}
			closing(t, saved)
			closing(t, again)
			if err := saved.Load(into); err != nil {
				t.Fatal(err)
			}
			w.rec = both{rec, again}
			d, one, two := batchOf(l, 24), rng.New(9).Stream(), rng.New(9).Stream()
			for range 40 {
				w.round(t)
				if err := rec.Sample(one, b); err != nil {
					t.Fatal(err)
				}
				if err := again.Sample(two, d); err != nil {
					t.Fatal(err)
				}
				check()
				if !slices.Equal(b.Index, d.Index) || !slices.Equal(b.Reward, d.Reward) || !slices.Equal(b.NextObs[0].Float32s(), d.NextObs[0].Float32s()) {
					t.Fatalf("%s: the restored replay samples differently", what)
				}
				resumed++
			}
			cases++
		}
	}
	if cases != 12 || resumed != 12*40 || samples < 12*75*24 {
		t.Errorf("%d cases, %d samples, resumed for %d rounds", cases, samples, resumed)
	}
}
