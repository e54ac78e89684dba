package ope

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/iql"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestCoverageOnCartPole measures how often intervals of 95 % have the value of a policy that its
// own episodes show, on data sets of random actions in CartPole, of 30 steps at most: q was fitted
// to other episodes.
func TestCoverageOnCartPole(t *testing.T) {
	const sets, episodes, limit = 200, 100, 30
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
	m, err := iql.NewMaker(iql.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.Open(f, envs.Train, 1, vector.Options{Workers: 1, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, v)
	a := agenttest.Agent(t, m, v, testengines.Fastest(t), 1)
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
	value, err := Of(t.Context(), Behaviour, record(4000, offline.Behaviour{Algorithm: "iql", Stochastic: true, Seed: 1}).trajectories(gamma), Bootstrap{Samples: 200, Level: 0.95, Key: rng.New(1)})
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
	t.Logf("value %v, data %v, ess %v of %d", value, list[0].gain(), EffectiveSampleSize(list), len(list))
	for _, name := range []string{PDIS, WPDIS} {
		within, width := 0, 0.0
		for k := range sets {
			e, err := Of(t.Context(), name, list[k*episodes:(k+1)*episodes], Bootstrap{Samples: 200, Level: 0.95, Key: rng.New(3).Split("set", k)})
			if err != nil {
				t.Fatal(err)
			}
			width += (e.High - e.Low) / sets
			if e.Low <= value.Value && value.Value <= e.High {
				within++
			}
		}
		t.Log(name, float64(within)/sets, width)
	}
	_ = math.Abs
}
