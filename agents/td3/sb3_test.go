package td3

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// array is a tensor of a fixture.
type array struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// fixture is what another implementation's updates did; cmd/peers/sac_td3_vectors.py writes it.
type fixture struct {
	Name    string `json:"name"`
	Options struct {
		PolicyDelay int   `json:"policy_delay"`
		Critics     int   `json:"n_critics"`
		Hidden      []int `json:"hidden"`
	} `json:"options"`
	Initial map[string]array `json:"initial"`
	Updates []struct {
		Obs      array              `json:"obs"`
		Next     array              `json:"next"`
		Action   array              `json:"action"`
		Reward   array              `json:"reward"`
		Discount array              `json:"discount"`
		Noise    []array            `json:"noise"`
		Metrics  map[string]float64 `json:"metrics"`
	} `json:"updates"`
	Final map[string]array `json:"final"`
}

func fixtures(t testing.TB) []fixture {
	t.Helper()
	data, err := os.ReadFile("testdata/updates.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []fixture
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// fill copies numbers.
func fill(dst []float32, a array) {
	for i, x := range a.Data {
		dst[i] = float32(x)
	}
}

// load makes an agent with the fixture's parameters.
func (f *fixture) load(t testing.TB, e engine.Compiler, threads int) *Agent {
	t.Helper()
	c := Defaults()
	if f.Name == "ddpg" {
		c = DDPGDefaults()
	}
	if c.PolicyDelay != f.Options.PolicyDelay || c.Critics != f.Options.Critics {
		t.Fatalf("%s: a delay of %d and %d critics, expected %d and %d", f.Name, c.PolicyDelay, c.Critics, f.Options.PolicyDelay, f.Options.Critics)
	}
	c.LearningRate, c.Gamma, c.Tau, c.BatchSize, c.Hidden = 1e-2, 0.9, 0.1, len(f.Updates[0].Reward.Data), f.Options.Hidden
	spec := envs.Spec{Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}}, Action: envs.NewBox(-1, 1, 2), Reward: envs.Range{Low: -9, High: 9}}
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.New(t.Context(), agents.Setup{Spec: spec, Envs: 1, Engine: e, Threads: threads, Key: rng.New(5), Init: func(values map[string]*tensor.Tensor) error {
		n := 0
		for name, v := range f.Initial {
			if strings.HasPrefix(name, targetScope+".") {
				continue
			}
			if values[name] == nil {
				t.Fatalf("the agent has no parameter %q", name)
			}
			fill(values[name].Float32s(), v)
			n++
		}
		if n != len(values) {
			t.Errorf("%d parameters in the fixture, %d in the agent", n, len(values))
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, a)
	return a.(*Agent)
}

// TestUpdatesOfStableBaselines3 gives the learner batches and noise and compares all parameters, target networks after each update's losses with those of another implementation.
func TestUpdatesOfStableBaselines3(t *testing.T) {
	splitSmall(t)
	updates, actors, numbers := 0, 0, 0
	for _, e := range testengines.All(t) {
		for _, threads := range []int{1, 2} {
			for _, f := range fixtures(t) {
				l := &f.load(t, e, threads).learner
				near := func(what string, got, want float64) {
					t.Helper()
					if numbers++; !(math.Abs(got-want) <= 2e-5*(1+math.Abs(want))) {
						t.Errorf("%s, %d threads, %s: %s is %v, expected %v", e.Name(), threads, f.Name, what, got, want)
					}
				}
				for _, u := range f.Updates {
					fill(l.batch.Obs[0].Float32s(), u.Obs)
					fill(l.batch.NextObs[0].Float32s(), u.Next)
					fill(l.batch.Action.Float32s(), u.Action)
					fill(l.batch.Reward, u.Reward)
					fill(l.batch.Discount, u.Discount)
					// DDPG does not smooth, whatever noise there was.
					if l.noise != nil {
						fill(l.noise, u.Noise[0])
					}
					var sum losses
					if err := l.learn(1, &sum, agents.Lap{}); err != nil {
						t.Fatal(err)
					}
					near("critic loss", sum.critic, u.Metrics["train/critic_loss"])
					if sum.actors > 0 {
						near("actor loss", sum.actor, u.Metrics["train/actor_loss"])
						actors++
					}
					updates++
				}
				if len(f.Final) != len(l.g.specs) {
					t.Errorf("%s: %d parameters in the fixture, %d in the agent", f.Name, len(f.Final), len(l.g.specs))
				}
				for name, want := range f.Final {
					got := l.params.View(name)
					if got == nil {
						t.Fatalf("the agent has no parameter %q", name)
					}
					for i, x := range want.Data {
						near(name, float64(got.Float32s()[i]), x)
					}
				}
			}
		}
	}
	if updates < 2*2*4 || actors != updates*3/4 || numbers < 1000 {
		t.Errorf("%d updates, %d of the actor, %d numbers", updates, actors, numbers)
	}
}

// splitSmall lets tests split small work over cores.
func splitSmall(t testing.TB) {
	old := shardFLOPs
	shardFLOPs = 0
	t.Cleanup(func() { shardFLOPs = old })
}
