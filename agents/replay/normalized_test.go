package replay

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestNormalized: learners whose environments are normalised, each by statistics of its own, record
// what the environments gave, and draw it as their statistics have it when they draw.
func TestNormalized(t *testing.T) {
	const lanes, rounds, batch = 2, 60, 32
	gamma := 0.9
	c := wrap.Normalize{Obs: true, Fields: []string{"x"}, Reward: true, Gamma: &gamma, ClipObs: 2, ClipReward: 0.7, Epsilon: 1e-8}
	var s *Shared
	var own []*vector.Normalized
	var buffers []Buffer
	var worlds []*world
	for i := range 2 {
		v, _ := toysFrom(t, lanes, 10*(i+1))
		if s == nil {
			var err error
			if s, err = NewShared(layoutOfToy(v), SharedConfig{Capacity: 600, ChunkRows: 16, Name: "store"}); err != nil {
				t.Fatal(err)
			}
			closing(t, s)
		}
		e, err := vector.Normalize(v, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Reset(rng.New(uint64(i))); err != nil {
			t.Fatal(err)
		}
		given := Normalized(s.Member(string(rune('a'+i)), int32(i), SamplerConfig{}), func() Normalizer { return e })
		b, err := Open(given, s.l, Config{Envs: lanes, NSteps: 1, Gamma: 0.9})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := b.(Sharer); !ok {
			t.Error("whose transitions are drawn is not told any more")
		}
		if _, ok := b.(Updater); ok {
			t.Error("a store without priorities has some")
		}
		if err := b.SetReturns(3, 0.9); err == nil || !strings.Contains(err.Error(), "n_steps: is 3") {
			t.Errorf("sums of limited rewards: %v", err)
		}
		if _, err := Open(given, s.l, Config{Envs: lanes, NSteps: 2, Gamma: 0.9}); err == nil || !strings.Contains(err.Error(), "n_steps: is 2") {
			t.Errorf("sums of limited rewards: %v", err)
		}
		w := newWorld(e, b)
		w.stream.Seed(rng.New(uint64(i)))
		own, buffers, worlds = append(own, e), append(buffers, b), append(worlds, w)
	}
	for range rounds {
		for _, w := range worlds {
			w.round(t)
		}
	}
	// The same draws as they lie in the store.
	raw, err := s.Member("reader", 9, SamplerConfig{}).Open(s.l, Config{Envs: lanes, NSteps: 1, Gamma: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	limited, scaled := 0, 0
	for i, b := range buffers {
		for _, length := range []int{0, 4} {
			have, want := sharedBatch(s, batch), sharedBatch(s, batch)
			draw := func(b Buffer, to *Batch) error {
				stream := rng.New(5).Stream()
				if length > 0 {
					return b.SampleSequences(stream, to, length)
				}
				return b.Sample(stream, to)
			}
			if err := draw(b, have); err != nil {
				t.Fatal(err)
			}
			if err := draw(raw, want); err != nil {
				t.Fatal(err)
			}
			st, n := own[i].State(), own[i].Normalizers()[0]
			std := math.Sqrt(st.Return.Var[0] + c.Epsilon)
			for k, r := range want.Reward {
				x := math.Min(math.Max(float64(r)/std, -c.ClipReward), c.ClipReward)
				if scaled++; math.Abs(x) == c.ClipReward {
					limited++
				}
				if float32(x) != have.Reward[k] {
					t.Errorf("learner %d: a reward of %g is %g, expected %g", i, r, have.Reward[k], x)
				}
				if id := want.Obs[0].Float32s()[5*k]; id != 10 && id != 11 && id != 20 && id != 21 {
					t.Errorf("the store has an observation of environment %g", id)
				}
			}
			for _, pair := range [2][2][]float32{{have.Obs[0].Float32s(), want.Obs[0].Float32s()}, {have.NextObs[0].Float32s(), want.NextObs[0].Float32s()}} {
				z := slices.Clone(pair[1])
				if n.Apply(z, z); !slices.Equal(z, pair[0]) {
					t.Errorf("learner %d: observations are not those of its statistics", i)
				}
			}
			if !slices.Equal(have.Obs[2].Int64s(), want.Obs[2].Int64s()) || !slices.Equal(have.Obs[1].Float32s(), want.Obs[1].Float32s()) {
				t.Errorf("learner %d: fields that are not normalised have changed", i)
			}
		}
	}
	if limited == 0 || limited == scaled {
		t.Errorf("%d of %d rewards are limited", limited, scaled)
	}
}
