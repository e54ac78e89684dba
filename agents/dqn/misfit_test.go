package dqn

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"gama: 0.9": {"gama"},
		"gamma: 1.5\nlearning_rate: 0\ntau: 0\ntrain_freq: 0\ngradient_steps: -2": {"agent.gamma", "agent.learning_rate", "agent.tau", "agent.train_freq", "agent.gradient_steps"},
		"buffer_size: 20": {"agent.batch_size", "is 32, more than the buffer_size of 20"},
		"batch_size: 0\nlearning_starts: -1\ntarget_update_interval: 0\nn_steps: 0\nmax_grad_norm: -1": {"batch_size", "learning_starts", "target_update_interval", "n_steps", "max_grad_norm"},
		"exploration_fraction: 2\nexploration_initial_eps: -1\nexploration_final_eps: 7":               {"exploration_fraction", "exploration_initial_eps", "exploration_final_eps"},
		"prioritised: {enabled: true, alpha: -1, eps: 0, beta: 2, beta_final: -1}":                     {"prioritised.alpha", "prioritised.eps", "prioritised.beta", "prioritised.beta_final"},
		"optimizer: {kind: adam, lr: 0.1}":                                                             {"optimizer.lr"},
		"learning_rate_schedule: {kind: linear, initial: 0.1}":                                         {"learning_rate_schedule.initial"},
		"hidden: [0]\nactivation: loud":                                                                {"hidden", "activation"},
	})
	if m, err := agents.Parse([]agents.Kind{Kind}, configs.Kinded{Kind: "dqn"}); err != nil || m.Config().(Config).BufferSize != 1_000_000 {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := agenttest.Parse(t, Kind, "prioritised: {enabled: true}"); err != nil || m.Config().(Config).Prioritised != (valuebased.Prioritised{Enabled: true, Alpha: 0.6, Eps: 1e-6, Beta: 0.4, BetaFinal: 1}) {
		t.Errorf("%v, %v", m, err)
	}
}

// TestMisfits makes agents whose configuration does not fit the environment.
func TestMisfits(t *testing.T) {
	n := 0
	for what, c := range sorted.All(map[string]struct {
		change func(c *Config, s *envs.Spec)
		words  []string
	}{
		"heads":     {func(_ *Config, s *envs.Spec) { s.Action = envs.MultiDiscrete{N: []int{2, 2}} }, []string{"toy", "Discrete"}},
		"patterns":  {func(c *Config, _ *envs.Spec) { c.Train = []string{"nothing.*"} }, []string{"nothing.*"}},
		"frozen":    {func(c *Config, _ *envs.Spec) { c.Freeze = []string{"*"} }, []string{"no parameter to train"}},
		"overrides": {func(c *Config, _ *envs.Spec) { c.Optimizer.NoDecay = []string{"nope"} }, []string{"optimizer", "nope"}},
		"windows": {func(_ *Config, s *envs.Spec) {
			s.Observation = append(envs.Dict{{Name: "other", Space: envs.Unbounded(4, 2)}}, s.Observation...)
		}, []string{"other", "window"}},
		"dropout": {func(c *Config, _ *envs.Spec) {
			c.Encoder = agenttest.TinyEncoder(t, 0.5)
		}, []string{"dropout of 0.5"}},
	}) {
		conf, spec := small(), windows(t)
		conf.Encoder = agenttest.TinyEncoder(t, 0)
		c.change(&conf, &spec)
		m, err := NewMaker(conf)
		agenttest.Refuse(t, m, err, spec, c.words...)
		if n++; len(c.words) == 0 {
			t.Errorf("%s: nothing is expected", what)
		}
	}
	if n != 6 {
		t.Errorf("%d cases", n)
	}
	m, err := NewMaker(small())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.New(t.Context(), agents.Setup{}); err == nil {
		t.Error("an agent without an environment")
	}
	calls := 0
	a := agenttest.Agent(t, m, agenttest.Toys(t, 1, agenttest.Choice()), testengines.Fastest(t), 1, func(s *agents.Setup) {
		s.Init = func(values map[string]*tensor.Tensor) error {
			calls++
			for _, v := range sorted.All(values) {
				for i := range v.Float32s() {
					v.Float32s()[i] = 0.5
				}
			}
			return nil
		}
	})
	l := a.Learner().(*valuebased.Learner)
	for _, s := range append(l.Params.Segments(), l.Target.Segments()...) {
		for i := range s.Specs() {
			for _, x := range s.View(i).Float32s() {
				if x != 0.5 {
					t.Fatalf("a first parameter is %g", x)
				}
			}
		}
	}
	if calls != 1 {
		t.Errorf("Init was called %d times", calls)
	}
}

func TestMisuse(t *testing.T) { agenttest.Misuse(t, "dqn", variants(t)["plain"]) }
