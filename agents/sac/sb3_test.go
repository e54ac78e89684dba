package sac

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
		EntCoef string `json:"ent_coef"`
		UseSDE  bool   `json:"use_sde"`
		Hidden  []int  `json:"hidden"`
		Actions int    `json:"actions"`
		Masked  bool   `json:"masked"`
	} `json:"options"`
	Initial map[string]array `json:"initial"`
	Updates []struct {
		Obs      array              `json:"obs"`
		Next     array              `json:"next"`
		Action   array              `json:"action"`
		Reward   array              `json:"reward"`
		Discount array              `json:"discount"`
		Mask     array              `json:"mask"`
		NextMask array              `json:"next_mask"`
		Noise    []array            `json:"noise"`
		Metrics  map[string]float64 `json:"metrics"`
	} `json:"updates"`
	Final      map[string]array `json:"final"`
	LogEntCoef float64          `json:"log_ent_coef"`
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

// fill copies numbers into a tensor of any type.
func fill(t testing.TB, dst *tensor.Tensor, a array) {
	t.Helper()
	for i, x := range a.Data {
		switch dst.DType() {
		case tensor.Float32:
			dst.Float32s()[i] = float32(x)
		case tensor.Int64:
			dst.Int64s()[i] = int64(x)
		case tensor.Bool:
			dst.Bools()[i] = x != 0
		default:
			t.Fatalf("numbers into %v", dst)
		}
	}
}

// spec is that of the fixture's environment.
func (f *fixture) spec() envs.Spec {
	s := envs.Spec{Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}}, Action: envs.NewBox(-1, 1, 2), Reward: envs.Range{Low: -9, High: 9}}
	if n := f.Options.Actions; n > 0 {
		s.Action, s.Masked = envs.Discrete{N: n}, f.Options.Masked
	}
	return s
}

// load makes an agent with the fixture's parameters.
func (f *fixture) load(t testing.TB, e engine.Compiler, threads int) *Agent {
	t.Helper()
	c := Defaults()
	c.LearningRate, c.Gamma, c.Tau, c.BatchSize, c.Hidden, c.UseSDE = 1e-2, 0.9, 0.1, len(f.Updates[0].Reward.Data), f.Options.Hidden, f.Options.UseSDE
	if f.Options.EntCoef != "" {
		if err := c.EntCoef.UnmarshalText([]byte(f.Options.EntCoef)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.New(t.Context(), agents.Setup{Spec: f.spec(), Envs: 1, Engine: e, Threads: threads, Key: rng.New(5), Init: func(values map[string]*tensor.Tensor) error {
		n := 0
		for name, v := range f.Initial {
			if strings.HasPrefix(name, targetScope+".") {
				continue
			}
			if values[name] == nil {
				t.Fatalf("the agent has no parameter %q", name)
			}
			fill(t, values[name], v)
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

// TestUpdatesOfStableBaselines3 gives the learner batches and noise and compares all parameters, target networks and the temperature after each update's losses with those of another implementation.
func TestUpdatesOfStableBaselines3(t *testing.T) {
	splitSmall(t)
	updates, numbers := 0, 0
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
					fill(t, l.batch.Obs[0], u.Obs)
					fill(t, l.batch.NextObs[0], u.Next)
					fill(t, l.batch.Action, u.Action)
					fill(t, tensor.Of(l.batch.Reward, len(l.batch.Reward)), u.Reward)
					fill(t, tensor.Of(l.batch.Discount, len(l.batch.Discount)), u.Discount)
					if l.batch.Mask != nil {
						fill(t, l.batch.Mask, u.Mask)
						fill(t, l.batch.NextMask, u.NextMask)
					}
					for i, x := range u.Noise {
						fill(t, tensor.Of(l.noises[i], len(l.noises[i])), x)
					}
					var sum losses
					if err := l.learn(1, &sum, agents.Lap{}); err != nil {
						t.Fatal(err)
					}
					near("critic loss", sum.critic, u.Metrics["train/critic_loss"])
					near("actor loss", sum.actor, u.Metrics["train/actor_loss"])
					near("temperature", sum.alpha, u.Metrics["train/ent_coef"])
					near("temperature's loss", sum.temperature, u.Metrics["train/ent_coef_loss"])
					updates++
				}
				near("log α", float64(l.temperature.log[0]), f.LogEntCoef)
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
	if updates < 2*5*4 || numbers < 1000 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}

// splitSmall lets tests split small work over cores.
func splitSmall(t testing.TB) {
	old := shardFLOPs
	shardFLOPs = 0
	t.Cleanup(func() { shardFLOPs = old })
}
