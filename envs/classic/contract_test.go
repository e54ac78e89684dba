package classic_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// open makes a factory from a document as a run would.
func open(t testing.TB, yaml string) (envs.Factory, error) {
	t.Helper()
	d, err := configs.Parse("run.yaml", []byte("env: "+yaml))
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := d.Decode(&run); err != nil {
		t.Fatal(err)
	}
	return envs.Open(context.Background(), classic.Kinds(), run.Env)
}

// documents has an environment of every kind, and of every space of the toys.
var documents = []string{
	"{kind: cartpole}",
	"{kind: cartpole, sutton_barto_reward: true, max_steps: 20}",
	"{kind: cartpole, decoys: 3}",
	"{kind: pendulum}",
	"{kind: pendulum, gravity: 9.81, max_steps: 50}",
	"{kind: mountaincar}",
	"{kind: mountaincar_continuous}",
	"{kind: acrobot}",
	"{kind: identity}",
	"{kind: identity, space: multi_discrete, dims: [4, 4]}",
	"{kind: identity, space: multi_binary, dims: [4]}",
	"{kind: identity, space: box, dims: [1], eps: 0.5}",
	"{kind: identity, space: box, dims: [3], low: -2, high: 0.5}",
	"{kind: invalid_action}",
	"{kind: invalid_action, dims: [20], invalid: 19}",
	"{kind: invalid_action, space: multi_discrete, dims: [2, 3], invalid: 3}",
	"{kind: invalid_action, space: multi_binary, dims: [10], invalid: 10}",
}

func TestContract(t *testing.T) {
	kinds := map[string]bool{}
	for _, doc := range documents {
		t.Run(doc, func(t *testing.T) {
			f, err := open(t, doc)
			if err != nil {
				t.Fatal(err)
			}
			e, err := f.New(envs.Train, 0)
			if err != nil {
				t.Fatal(err)
			}
			kinds[e.Spec().Name] = true
			r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Steps: 2500})
			if r.Episodes < 2 || r.Saved < 5 {
				t.Errorf("too little was checked: %+v", r)
			}
		})
	}
	if want := len(classic.Kinds()); len(kinds) != want {
		t.Errorf("%d kinds were checked, expected %d", len(kinds), want)
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	cases := []struct{ yaml, want string }{
		{"{kind: cartpole, max_steps: -1}", "run.yaml:1:34: env.max_steps: must not be negative"},
		{"{kind: cartpole, decoys: -1}", "env.decoys: must not be negative"},
		{"{kind: cartpole, gravity: 3}", "env.gravity"},
		{"{kind: pendulum, gravity: -1}", "env.gravity"},
		{"{kind: mountaincar, goal_velocity: 1}", "env.goal_velocity"},
		{"{kind: mountaincar_continuous, goal_velocity: -1}", "env.goal_velocity"},
		{"{kind: acrobot, max_steps: -3}", "env.max_steps"},
		{"{kind: identity, space: boxes}", "env.space"},
		{"{kind: identity, dims: [2, 3]}", "env.dims: has 2 numbers, but discrete takes one"},
		{"{kind: identity, dims: [0]}", "env.dims[0]"},
		{"{kind: identity, space: multi_discrete, dims: []}", "env.dims: must not be empty"},
		{"{kind: identity, low: 2}", "env.low"},
		{"{kind: identity, eps: -0.1}", "env.eps"},
		{"{kind: invalid_action, space: box}", "env.space"},
		{"{kind: invalid_action, dims: [4], invalid: 4}", "env.invalid: must be between 0 and 3"},
		{"{kind: invalid_action, space: multi_discrete, dims: [2, 3], invalid: 4}", "env.invalid: must be between 0 and 3"},
		{"{kind: invalid_action, space: multi_binary, dims: [5], invalid: 6}", "env.invalid: must be between 0 and 5"},
	}
	for _, c := range cases {
		if _, err := open(t, c.yaml); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q is not said: %v", c.yaml, c.want, err)
		}
	}
}

func TestConfigurationsMadeInCodeAreChecked(t *testing.T) {
	for name, make := range sorted.All(map[string]func() (*classic.Env, error){
		"cartpole":    func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleConfig{MaxSteps: -1}) },
		"pendulum":    func() (*classic.Env, error) { return classic.NewPendulum(classic.PendulumConfig{Gravity: -1}) },
		"mountaincar": func() (*classic.Env, error) { return classic.NewMountainCar(classic.MountainCarConfig{MaxSteps: -1}) },
		"mountaincar_continuous": func() (*classic.Env, error) {
			return classic.NewMountainCarContinuous(classic.MountainCarConfig{MaxSteps: -1})
		},
		"acrobot":        func() (*classic.Env, error) { return classic.NewAcrobot(classic.AcrobotConfig{MaxSteps: -1}) },
		"identity":       func() (*classic.Env, error) { return classic.NewIdentity(classic.IdentityConfig{}) },
		"invalid_action": func() (*classic.Env, error) { return classic.NewInvalidAction(classic.InvalidActionConfig{}) },
	}) {
		if _, err := make(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpecs compares spaces and limits with Gymnasium's registration and spaces, printed by it.
func TestSpecs(t *testing.T) {
	cases := []struct {
		yaml, action, observation string
		maxSteps                  int
	}{
		{"{kind: cartpole}", "discrete(2)", "box float32[4] in [[-4.8 -Inf -0.4188790204786391 -Inf], [4.8 +Inf 0.4188790204786391 +Inf]]", 500},
		{"{kind: pendulum}", "box float32[1] in [-2, 2]", "box float32[3] in [[-1 -1 -8], [1 1 8]]", 200},
		{"{kind: mountaincar}", "discrete(3)", "box float32[2] in [[-1.2 -0.07], [0.6 0.07]]", 200},
		{"{kind: mountaincar_continuous}", "box float32[1] in [-1, 1]", "box float32[2] in [[-1.2 -0.07], [0.6 0.07]]", 999},
		{"{kind: acrobot}", "discrete(3)", "box float32[6] in [[-1 -1 -1 -1 -12.566370614359172 -28.274333882308138], [1 1 1 1 12.566370614359172 28.274333882308138]]", 500},
		{"{kind: identity}", "discrete(4)", "discrete(4)", 100},
		{"{kind: invalid_action}", "discrete(70)", "discrete(70)", 100},
	}
	for _, c := range cases {
		f, err := open(t, c.yaml)
		if err != nil {
			t.Fatal(err)
		}
		e, err := f.New(envs.Test, 3)
		if err != nil {
			t.Fatal(err)
		}
		s := e.Spec()
		if len(s.Observation) != 1 || s.Observation[0].Name != classic.ObservationField {
			t.Fatalf("%s: observations %v", c.yaml, s.Observation)
		}
		if s.Action.String() != c.action || s.Observation[0].Space.String() != c.observation || s.MaxSteps != c.maxSteps {
			t.Errorf("%s: actions %v, observations %v, limit %d", c.yaml, s.Action, s.Observation[0].Space, s.MaxSteps)
		}
	}
}

func TestStatesThatCannotBeAreRefused(t *testing.T) {
	cases := []struct{ yaml, from, to string }{
		{"{kind: cartpole}", `"state":[`, `"state":[9`},
		{"{kind: cartpole}", `"name":"cartpole"`, `"name":"pendulum"`},
		{"{kind: cartpole}", `"steps":0`, `"steps":500`},
		{"{kind: cartpole}", `"state":[`, `"state":[0,`},
		{"{kind: cartpole}", `"random":"`, `"random":null,"x":"`},
		{"{kind: pendulum}", `],"random"`, `e9],"random"`},
		{"{kind: mountaincar}", `"state":[-`, `"state":[-9`},
		{"{kind: mountaincar_continuous}", `"state":[-`, `"state":[-9`},
		{"{kind: acrobot}", `"state":[`, `"state":[9`},
		{"{kind: identity}", `"state":[`, `"state":[9`},
		{"{kind: identity, space: box}", `"state":[`, `"state":[9`},
		{"{kind: invalid_action}", `"state":[`, `"state":[9`},
		{"{kind: invalid_action}", `,0,`, `,1,`},
	}
	for _, c := range cases {
		f, err := open(t, c.yaml)
		if err != nil {
			t.Fatal(err)
		}
		e, err := f.New(envs.Train, 0)
		if err != nil {
			t.Fatal(err)
		}
		ts := envs.NewTimeStep(e.Spec())
		// Of this key, states are such that a digit in front makes them wrong.
		if err := e.Reset(rng.New(5), ts); err != nil {
			t.Fatal(err)
		}
		data, err := envs.SaveState(e)
		if err != nil {
			t.Fatal(err)
		}
		damaged := strings.Replace(string(data), c.from, c.to, 1)
		if damaged == string(data) {
			t.Fatalf("%s: %s is not in %s", c.yaml, c.from, data)
		}
		if err := envs.LoadState(e, []byte(damaged), ts); err == nil {
			t.Errorf("%s: %s is loaded", c.yaml, damaged)
		}
		if err := envs.LoadState(e, data, ts); err != nil {
			t.Errorf("%s: %v", c.yaml, err)
		}
	}
}

func TestFactoriesTellTheirConfiguration(t *testing.T) {
	f, err := open(t, "{kind: identity, space: box, dims: [2]}")
	if err != nil {
		t.Fatal(err)
	}
	want := classic.IdentityConfig{MaxSteps: 100, Space: "box", Dims: []int{2}, Low: -1, High: 1, Eps: 0.05}
	if got := f.Config(); !reflect.DeepEqual(got, want) {
		t.Errorf("the configuration is %+v", got)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
