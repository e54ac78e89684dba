package ope

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestCoverageOnCartPole measures how often intervals of 95 % have the value of a policy that its
// own episodes show, on data sets of random actions in CartPole, of 20 steps at most: by as much as
// a hundred data sets can tell.
func TestCoverageOnCartPole(t *testing.T) {
	longtest.Slow(t)
	const sets, episodes, limit = 100, 60, 20
	doc, err := configs.Parse("run.yaml", []byte("env: {kind: cartpole}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(t.Context(), classic.Kinds(), c.Env)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, f)
	spec, err := offline.SpecOf(f, envs.Train, limit)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ppo.NewMaker(ppo.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.Open(f, envs.Train, 1, vector.Options{Workers: 1, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, v)
	a := agenttest.Agent(t, m, v, testengines.Fastest(t), 1, func(s *agents.Setup) {
		// A policy that prefers actions, unlike one that nothing has taught.
		s.Init = func(values map[string]*tensor.Tensor) error {
			for name, x := range sorted.All(values) {
				if strings.Contains(name, "logits") {
					for i := range x.Float32s() {
						x.Float32s()[i] *= 200
					}
				}
			}
			return nil
		}
	})
	record := func(n int64, b offline.Behaviour) *Data {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "data")
		m := offline.Describe(spec)
		m.Behaviours = []offline.Behaviour{b}
		w, err := offline.Create(dir, m)
		if err != nil {
			t.Fatal(err)
		}
		err = offline.Record(t.Context(), offline.Recording{
			Factory: f, Split: envs.Train, Behaviour: b, Episodes: n, Envs: 64, Limit: limit,
			NewActor: func(n int) (agents.Actor, error) { return a.NewActor(agents.Explore, n) },
		}, w)
		if err := errors.Join(err, w.Finish()); err != nil {
			t.Fatal(err)
		}
		d, err := offline.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Read(t.Context(), d, spec)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	value, err := Of(t.Context(), Behaviour, record(3000, offline.Behaviour{Algorithm: "ppo", Stochastic: true, Seed: 1}).trajectories(gamma), Bootstrap{Samples: 200, Level: 0.95, Key: rng.New(1)})
	if err != nil {
		t.Fatal(err)
	}
	d := record(sets*episodes, offline.Behaviour{Algorithm: "random", RandomEpisodes: 1, Seed: 2})
	p, err := Ask(t.Context(), a, testengines.Fastest(t), d, true)
	if err != nil {
		t.Fatal(err)
	}
	list := d.trajectories(gamma)
	p.ratios(d, list)
	// The policy is another one than the behaviour, and not so different that nothing can be known.
	if n := EffectiveSampleSize(list) / float64(len(list)); n < 0.1 || n > 0.97 {
		t.Fatalf("the weights leave %.2f of the episodes", n)
	}
	slack, cases := 3.29*math.Sqrt(0.95*0.05/sets), 0
	for _, name := range []string{PDIS, WPDIS} {
		within := 0
		for k := range sets {
			e, err := Of(t.Context(), name, list[k*episodes:(k+1)*episodes], Bootstrap{Samples: 200, Level: 0.95, Key: rng.New(3).Split("set", k)})
			if err != nil {
				t.Fatal(err)
			}
			if e.Low <= value.Value && value.Value <= e.High {
				within++
			}
		}
		c := float64(within) / sets
		t.Logf("%s: %.3f", name, c)
		if math.Abs(c-0.95) > slack {
			t.Errorf("%s: %.3f of %d intervals have the value, expected 0.95 ± %.3f", name, c, sets, slack)
		}
		cases++
	}
	if cases != 2 {
		t.Errorf("%d estimators", cases)
	}
}
