package dqn

import (
	"strings"
	"testing"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/models/encoder/kinds"
	"onnxrl/models/encoder/timecnn"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// parse reads the parameters of an agent.
func parse(t *testing.T, text string) (agents.Maker, error) {
	t.Helper()
	d, err := configs.Parse("run.yaml", []byte("agent:\n  kind: dqn\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Agent configs.Kinded `yaml:"agent"`
	}
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return agents.Parse([]agents.Kind{Kind}, doc.Agent)
}

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	n := 0
	for _, c := range []struct {
		text  string
		words []string
	}{
		{"gama: 0.9", []string{"gama"}},
		{"gamma: 1.5\nlearning_rate: 0\ntau: 0\ntrain_freq: 0\ngradient_steps: -2", []string{"agent.gamma", "agent.learning_rate", "agent.tau", "agent.train_freq", "agent.gradient_steps"}},
		{"buffer_size: 20", []string{"agent.buffer_size", "is 20, less than the 32 transitions of a batch"}},
		{"batch_size: 0\nlearning_starts: -1\ntarget_update_interval: 0\nn_steps: 0\ngrad_clip: -1", []string{"batch_size", "learning_starts", "target_update_interval", "n_steps", "grad_clip"}},
		{"exploration_fraction: 2\nexploration_initial_eps: -1\nexploration_final_eps: 7", []string{"exploration_fraction", "exploration_initial_eps", "exploration_final_eps"}},
		{"prioritised: {enabled: true, alpha: -1, eps: 0, beta: 2, beta_final: -1}", []string{"prioritised.alpha", "prioritised.eps", "prioritised.beta", "prioritised.beta_final"}},
		{"optimizer: {kind: adam, lr: 0.1}", []string{"optimizer.lr"}},
		{"schedule: {kind: linear, initial: 0.1}", []string{"schedule.initial"}},
		{"hidden: [0]\nactivation: loud", []string{"hidden", "activation"}},
	} {
		_, err := parse(t, c.text)
		if err == nil {
			t.Errorf("%q is accepted", c.text)
			continue
		}
		for _, w := range append(c.words, "run.yaml:") {
			if n++; !strings.Contains(err.Error(), w) {
				t.Errorf("%q: the error does not have %q: %v", c.text, w, err)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d words", n)
	}
	if m, err := agents.Parse([]agents.Kind{Kind}, configs.Kinded{Kind: "dqn"}); err != nil || m.Config().(Config).BufferSize != 1_000_000 {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := parse(t, "prioritised: {enabled: true}"); err != nil || m.Config().(Config).Prioritised != (Prioritised{true, 0.6, 1e-6, 0.4, 1}) {
		t.Errorf("%v, %v", m, err)
	}
}

// TestMisfits makes agents whose configuration does not fit the environment.
func TestMisfits(t *testing.T) {
	n := 0
	for what, c := range map[string]struct {
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
			e := timecnn.Defaults()
			e.DModel, e.NLayers, e.Dropout = 4, 1, 0.5
			c.Encoder, _ = configs.NewKinded("timecnn", e)
		}, []string{"dropout of 0.5"}},
	} {
		conf, spec := small(t), toySpec(t)
		c.change(&conf, &spec)
		m, err := NewMaker(conf)
		if err == nil {
			var a agents.Agent
			if a, err = m.New(t.Context(), agents.Setup{Spec: spec, Envs: 2, Engine: testengines.All(t)[0], Encoders: kinds.All(), Key: rng.New(1)}); err == nil {
				closing(t, a)
				t.Errorf("%s: an agent was made", what)
				continue
			}
		}
		for _, w := range c.words {
			if n++; !strings.Contains(err.Error(), w) {
				t.Errorf("%s: the error does not have %q: %v", what, w, err)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d words", n)
	}
	m, err := NewMaker(small(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.New(t.Context(), agents.Setup{}); err == nil {
		t.Error("an agent without an environment")
	}
	calls := 0
	a, err := m.New(t.Context(), agents.Setup{Spec: toySpec(t), Envs: 1, Engine: testengines.Fastest(t), Encoders: kinds.All(), Key: rng.New(1), Init: func(values map[string]*tensor.Tensor) error {
		calls++
		for _, v := range values {
			for i := range v.Float32s() {
				v.Float32s()[i] = 0.5
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, a)
	for _, s := range append(a.(*Agent).params.Segments(), a.(*Agent).target.Segments()...) {
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
