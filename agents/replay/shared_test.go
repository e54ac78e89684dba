package replay

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sharedWorlds are worlds that write into one store, policy i by world i.
func sharedWorlds(t testing.TB, c SharedConfig, policies, n int) (*Shared, []*world, Layout) {
	t.Helper()
	var list []*world
	var s *Shared
	var l Layout
	for i := range policies {
		v, _ := toysFrom(t, n, i*n)
		if s == nil {
			l = layoutOfToy(v)
			var err error
			if s, err = NewShared(l, c); err != nil {
				t.Fatal(err)
			}
			closing(t, s)
		}
		w := newWorld(v, nil)
		w.stream.Seed(rng.New(uint64(i)))
		w.rec = writerOf(t, s, int32(i), w)
		list = append(list, w)
	}
	return s, list, l
}

// writerOf returns a writer of a world, named after its policy. Logits and skills, where they are
// kept, are functions of the action.
func writerOf(t testing.TB, s *Shared, policy int32, w *world) *Writer {
	t.Helper()
	x, err := s.Writer(fmt.Sprintf("policy %d", policy), policy, w.v.Len(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func sharedBatch(s *Shared, n int) *Batch {
	b := batchOf(s.l, n)
	b.Policy, b.Time = make([]int32, n), make([]int64, n)
	return b
}

func sampler(t testing.TB, s *Shared, c SamplerConfig) *Sampler {
	t.Helper()
	p, err := s.NewSampler(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// spot is where a transition was written down.
type spot struct{ world, env, k int }

// find returns where an observation was written down.
func find(worlds []*world, obs string) (at spot, ok bool) {
	for i, w := range worlds {
		if p, ok := w.index[obs]; ok {
			return spot{i, p[0], p[1]}, true
		}
	}
	return spot{}, false
}

// checkShared compares a batch with what was written down. Samples of several steps may be shorter,
// at the end of a chunk.
func checkShared(t testing.TB, s *Shared, worlds []*world, b *Batch, n int, gamma float64) {
	t.Helper()
	for i := range b.Reward {
		at, ok := find(worlds, sampled(b.Obs, i))
		if !ok {
			t.Fatalf("sample %d is of no transition", i)
		}
		list := worlds[at.world].diary[at.env]
		x := list[at.k]
		if x.action != b.Action.Int64s()[i] || float32(x.logProb) != b.LogProb[i] || x.mask != maskOf(b.Mask, i) || b.Policy[i] != int32(at.world) {
			t.Fatalf("sample %d: action %d, log-probability %g, mask %s, policy %d; recorded %+v by %d", i, b.Action.Int64s()[i], b.LogProb[i], maskOf(b.Mask, i), b.Policy[i], x, at.world)
		}
		found, ended := false, false
		for j := 1; j <= n && !found; j++ {
			reward, discount, next, nextMask := nstep(list, at.k, j, gamma)
			found = math.Abs(reward-float64(b.Reward[i])) < 1e-5 && math.Abs(discount-float64(b.Discount[i])) < 1e-6 && costly(b.Cost.Float32s()[2*i:], list, at.k, j, gamma) && next == sampled(b.NextObs, i) && nextMask == maskOf(b.NextMask, i)
			for k := at.k; k < min(at.k+j, len(list)) && !ended; k++ {
				ended = list[k].last
			}
		}
		if !found {
			t.Fatalf("sample %d: reward %g, discount %g and what follows are not those of up to %d steps", i, b.Reward[i], b.Discount[i], n)
		}
		// That an episode was interrupted is not seen at the end of a chunk.
		if n == 1 && ended != b.Ended[i] && !x.interrupted {
			t.Fatalf("sample %d: ended %t, expected %t", i, b.Ended[i], ended)
		}
		checkDecided(t, b, i)
	}
}

// TestShared compares samples of two policies with what happened, while chunks fill and are
// replaced, for all kinds of samplers.
func TestShared(t *testing.T) {
	cases, samples := 0, 0
	for _, rows := range []int{8, 64} {
		s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 1000, ChunkRows: rows}, 2, 3)
		draws := rng.New(7).Stream()
		b := sharedBatch(s, 24)
		if err := sampler(t, s, SamplerConfig{Gamma: 1}).Sample(draws, b); !errors.Is(err, ErrEmpty) {
			t.Errorf("sample of nothing: %v", err)
		}
		configs := []SamplerConfig{
			{Gamma: 0.9}, {Gamma: 0.9, NSteps: 3}, {Gamma: 0.9, HalfLife: 100, Beta: 0.5}, {Gamma: 0.9, Mix: map[int32]float64{0: 1, 1: 3}, NSteps: 2}, {Gamma: 0.9, Mix: map[int32]float64{1: 1}, HalfLife: 50},
		}
		var list []*Sampler
		for _, c := range configs {
			list = append(list, sampler(t, s, c))
		}
		for k := range 400 {
			for _, w := range worlds {
				if k == 150 || k == 151 {
					if err := w.v.Reset(rng.New(uint64(k))); err != nil {
						t.Fatal(err)
					}
				}
				w.round(t)
			}
			for i, p := range list {
				if k%4 != 0 {
					continue
				}
				if err := p.Sample(draws, b); err != nil {
					t.Fatal(err)
				}
				checkShared(t, s, worlds, b, max(1, configs[i].NSteps), 0.9)
				samples += len(b.Reward)
			}
		}
		st := s.Stats()
		if st.Recorded != 400*6 || st.Transitions != s.Len() || st.Transitions > 1000 || st.Transitions < 600 || st.Policies[0]+st.Policies[1] != st.Transitions || st.Free > 1 || !slices.Equal(s.Policies(), []int32{0, 1}) {
			t.Errorf("%+v, %d transitions", st, s.Len())
		}
		cases++
	}
	if cases != 2 || samples != 2*100*5*24 {
		t.Errorf("%d cases, %d samples", cases, samples)
	}
}

// TestSharedSequences compares sequences with what happened.
func TestSharedSequences(t *testing.T) {
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 400, ChunkRows: 32}, 2, 2)
	p, b, draws := sampler(t, s, SamplerConfig{Gamma: 0.9}), sharedBatch(s, 5*6), rng.New(3).Stream()
	n := 0
	for k := range 200 {
		for _, w := range worlds {
			w.round(t)
		}
		if k < 10 {
			continue
		}
		if err := p.SampleSequences(draws, b, 5); err != nil {
			t.Fatal(err)
		}
		checkShared(t, s, worlds, b, 1, 0.9)
		for i := range 6 {
			first, _ := find(worlds, sampled(b.Obs, i))
			for step := range 5 {
				if at, ok := find(worlds, sampled(b.Obs, step*6+i)); !ok || at != (spot{first.world, first.env, first.k + step}) {
					t.Fatalf("step %d of a sequence is %+v, the first %+v", step, at, first)
				}
				n++
			}
		}
	}
	if n != 190*30 {
		t.Errorf("%d steps", n)
	}
	if err := p.SampleSequences(draws, sharedBatch(s, 40), 40); !errors.Is(err, ErrEmpty) {
		t.Errorf("sequences beyond a chunk: %v", err)
	}
	if err := p.SampleSequences(draws, b, 7); err == nil {
		t.Error("a batch that is no multiple of the length")
	}
}

// TestSharedPreferences holds frequencies against chance: uniform, by a mix, and by age; importance
// weights make them uniform again.
func TestSharedPreferences(t *testing.T) {
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 1200, ChunkRows: 16}, 3, 1)
	for k := range 250 {
		for i, w := range worlds {
			// Policy 2 records half as often.
			if i < 2 || k%2 == 0 {
				w.round(t)
			}
		}
	}
	const batch, rounds = 50, 3000
	b, draws, cases := sharedBatch(s, batch), rng.New(5).Stream(), 0
	for what, c := range sorted.All(map[string]SamplerConfig{
		"uniform": {Gamma: 1}, "mix": {Gamma: 1, Mix: map[int32]float64{0: 3, 1: 1, 7: 5}, Beta: 1}, "age": {Gamma: 1, HalfLife: 200, Beta: 1}, "both": {Gamma: 1, Mix: map[int32]float64{0: 1, 1: 1, 2: 1}, HalfLife: 300, Beta: 1},
	}) {
		p := sampler(t, s, c)
		policies, counts, corrected, young := map[int32]float64{}, map[int64]float64{}, map[int64]float64{}, 0.0
		times := map[int64]int64{}
		for range rounds {
			if err := p.Sample(draws, b); err != nil {
				t.Fatal(err)
			}
			for i, row := range b.Index {
				policies[b.Policy[i]]++
				counts[row]++
				times[row] = b.Time[i]
				corrected[row] += p.weight[int(row)>>s.shift]
				if b.Time[i] >= s.clock.Load()-200 {
					young++
				}
			}
		}
		share := func(policy int32) float64 { return policies[policy] / (batch * rounds) }
		st := s.Stats()
		switch what {
		case "uniform":
			want, chi := batch*rounds/float64(st.Transitions), 0.0
			for _, x := range sorted.All(counts) {
				chi += (x - want) * (x - want) / want
			}
			if k := float64(st.Transitions - 1); len(counts) != st.Transitions || chi > k+6*math.Sqrt(2*k) {
				t.Errorf("%d of %d transitions, χ² %g", len(counts), st.Transitions, chi)
			}
		case "mix":
			if math.Abs(share(0)-0.75) > 0.01 || math.Abs(share(1)-0.25) > 0.01 || share(2) != 0 {
				t.Errorf("shares %g, %g and %g, expected 0.75, 0.25 and 0", share(0), share(1), share(2))
			}
		case "age":
			// With ages x from 0 to N the share of the youngest 200 is (1 − ½)/(1 − 2^(−N/200)).
			if want := 0.5 / (1 - math.Exp2(-float64(st.Recorded)/200)); math.Abs(young/(batch*rounds)-want) > 0.05 {
				t.Errorf("%g of the samples are among the youngest, expected %g", young/(batch*rounds), want)
			}
		case "both":
			for policy := range int32(3) {
				if math.Abs(share(policy)-1.0/3) > 0.01 {
					t.Errorf("the share of policy %d is %g", policy, share(policy))
				}
			}
		}
		if what != "uniform" && what != "mix" {
			// Weighted counts of old and young transitions are alike.
			var sum, n [2]float64
			for row, x := range sorted.All(corrected) {
				i := 0
				if times[row] > st.Recorded/2 {
					i = 1
				}
				sum[i] += x
				n[i]++
			}
			if ratio := sum[0] / n[0] / (sum[1] / n[1]); math.Abs(ratio-1) > 0.1 {
				t.Errorf("%s: weighted samples of old transitions are %g times those of young ones", what, ratio)
			}
		}
		cases++
	}
	if cases != 4 {
		t.Errorf("%d cases", cases)
	}
	if err := sampler(t, s, SamplerConfig{Mix: map[int32]float64{9: 1}}).Sample(draws, b); !errors.Is(err, errNotDrawn) {
		t.Errorf("a mix of policies without transitions: %v", err)
	}
}

// TestSharedConcurrently lets writers and samplers of all kinds go on at once; the race detector is
// what looks at it. Rows say what they belong to, so that a torn one would be seen.
func TestSharedConcurrently(t *testing.T) {
	const writers, readers, rounds = 4, 4, 400
	spec := envs.Spec{Name: "stamp", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(17)}}, Action: envs.Discrete{N: 2}, Reward: envs.Range{Low: -1e9, High: 1e9}}
	l := LayoutOf(spec, Column{"action", tensor.Int64, nil})
	s, err := NewShared(l, SharedConfig{Capacity: 3000, ChunkRows: 64, Dir: t.TempDir(), Format: RowFiles, FileChunks: 4})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	var wait sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	for k := range writers {
		f, err := vector.NewFrame(spec, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		w, err := s.Writer(fmt.Sprint(k), int32(k), 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			defer func() { fail(w.Close()); fail(f.Close()) }()
			b, d := f.Batch(), &vector.Decision{Actions: tensor.New(tensor.Int64, 2)}
			stamp := func(x float32) {
				for i := range b.Obs[0].Float32s() {
					b.Obs[0].Float32s()[i] = x
				}
			}
			stamp(0)
			for i := range rounds {
				fail(w.Begin(b, d))
				for e := range 2 {
					b.Type[e], b.Reward[e], b.Discount[e] = envs.Mid, float64(i), 1
					if i%7 == 6 {
						b.Type[e] = envs.Last
						for j := range 17 {
							b.Final[0].Float32s()[17*e+j] = float32(i + 1)
						}
					}
				}
				stamp(float32(i + 1))
				fail(w.End(b))
			}
		})
	}
	for k := range readers {
		c := SamplerConfig{Gamma: 1}
		if k%2 > 0 {
			c.HalfLife, c.Beta = 500, 1
		}
		p := sampler(t, s, c)
		wait.Go(func() {
			b, draws := sharedBatch(s, 32), rng.New(uint64(k)).Stream()
			for n := 0; n < 300; n++ {
				if err := p.Sample(draws, b); errors.Is(err, ErrEmpty) {
					n--
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				for i, r := range b.Reward {
					x, y := b.Obs[0].Float32s()[17*i:17*i+17], b.NextObs[0].Float32s()[17*i:17*i+17]
					if slices.Min(x) != r || slices.Max(x) != r || slices.Min(y) != r+1 || slices.Max(y) != r+1 {
						t.Errorf("reward %g, observations %v and %v", r, x, y)
						return
					}
				}
				s.Stats()
			}
		})
	}
	wait.Wait()
	if st := s.Stats(); st.Recorded != writers*rounds*2 || st.Spilled.Transitions+st.Transitions != writers*rounds*2 {
		t.Errorf("%+v, %d transitions recorded", st, writers*rounds*2)
	}
}

func TestSharedAllocatesNothing(t *testing.T) {
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 600, ChunkRows: 16}, 1, 2)
	w := worlds[0]
	for range 500 {
		w.round(t)
	}
	b, v := sharedBatch(s, 32), w.v.Batch()
	draws, cases := rng.New(1).Stream(), 0
	for _, c := range []SamplerConfig{{Gamma: 1}, {Gamma: 1, NSteps: 3}, {Gamma: 1, HalfLife: 10, Mix: map[int32]float64{0: 1}, Beta: 1}} {
		p := sampler(t, s, c)
		if n := testing.AllocsPerRun(50, func() {
			if err := w.rec.Begin(v, &w.d); err != nil {
				t.Fatal(err)
			}
			if err := w.rec.End(v); err != nil {
				t.Fatal(err)
			}
			if err := p.Sample(draws, b); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%+v: %v allocations", c, n)
		}
		cases++
	}
	if cases != 3 {
		t.Errorf("%d cases", cases)
	}
}

func TestSharedRefuses(t *testing.T) {
	n := 0
	for _, c := range []SharedConfig{{}, {Capacity: 10, ChunkRows: 12}, {Capacity: 10, ChunkRows: 2}, {Capacity: 10, FileChunks: -1}, {Capacity: 100, Dir: t.TempDir()}} {
		if s, err := NewShared(layoutOfToyStatic, c); err == nil || s != nil {
			t.Errorf("%+v is accepted", c)
		}
		n++
	}
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 300, ChunkRows: 16}, 1, 2)
	worlds[0].round(t)
	for _, c := range []SamplerConfig{{Gamma: 2}, {Mix: map[int32]float64{0: -1}}, {Mix: map[int32]float64{0: 0}}, {HalfLife: -1}, {Beta: math.NaN()}, {NSteps: -1}} {
		if p, err := s.NewSampler(c); err == nil || p != nil {
			t.Errorf("%+v is accepted", c)
		}
		n++
	}
	for want, f := range sorted.All(map[string]func() error{
		"needs two": func() error {
			_, err := s.Writer("big", 1, 20, nil)
			return err
		},
		"0 environments":      func() error { _, err := s.Writer("none", 1, 0, nil); return err },
		"is open already":     func() error { _, err := s.Writer("policy 0", 1, 1, nil); return err },
		"without a beginning": func() error { return worlds[0].rec.End(worlds[0].v.Batch()) },
		"int64[3], expected": func() error {
			return worlds[0].rec.Begin(worlds[0].v.Batch(), &vector.Decision{Actions: tensor.New(tensor.Int64, 3)})
		},
		"logits <nil>, expected float32[2 [2]]": func() error {
			return worlds[0].rec.Begin(worlds[0].v.Batch(), &vector.Decision{Actions: worlds[0].d.Actions})
		},
		"0 log-probabilities": func() error {
			d := worlds[0].d
			d.LogProb = nil
			return worlds[0].rec.Begin(worlds[0].v.Batch(), &d)
		},
		"the store has no folder": func() error { return s.Flush() },
		"columns of 4 and of 2": func() error {
			b := sharedBatch(s, 4)
			b.Time = b.Time[:2]
			return sampler(t, s, SamplerConfig{}).Sample(rng.New(1).Stream(), b)
		},
		`"logits" into float32[4 3]`: func() error {
			b := sharedBatch(s, 4)
			b.Logits = tensor.New(tensor.Float32, 4, 3)
			return sampler(t, s, SamplerConfig{}).Sample(rng.New(1).Stream(), b)
		},
	}) {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q: %v", want, err)
		}
		n++
	}
	if n != 21 {
		t.Errorf("%d cases", n)
	}
}
