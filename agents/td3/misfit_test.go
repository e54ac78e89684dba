package td3

import (
	"math"
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

// refuse requires that no agent is made, and that the error has all of the words.
func refuse(t *testing.T, c Config, spec envs.Spec, words ...string) {
	t.Helper()
	m, err := NewMaker(c)
	if err == nil {
		var a agents.Agent
		if a, err = m.New(t.Context(), agents.Setup{Spec: spec, Envs: 2, Engine: testengines.All(t)[0], Encoders: kinds.All(), Key: rng.New(1)}); err == nil {
			a.Close()
			t.Fatalf("an agent was made, expected an error with %q", words)
		}
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not have %q: %v", w, err)
		}
	}
}

// parse reads the agent's part of a document.
func parse(t testing.TB, text string) (agents.Maker, error) {
	t.Helper()
	d, err := configs.Parse("run.yaml", []byte("agent:\n  kind: td3\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n"))
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
	for text, words := range map[string][]string{
		"gama: 0.9": {"gama"},
		"learning_rate: 0\ngamma: 1.5\ntau: -1\nbatch_size: 0":                                             {"agent.learning_rate", "agent.gamma", "agent.tau", "agent.batch_size"},
		"buffer_size: 100\nbatch_size: 256":                                                                {"batch_size", "buffer_size of 100"},
		"train_freq: 0\ngradient_steps: 0":                                                                 {"train_freq", "gradient_steps"},
		"policy_delay: 0\ntarget_policy_noise: -1\ntarget_noise_clip: -1":                                  {"policy_delay", "target_policy_noise", "target_noise_clip"},
		"action_noise: {kind: pink, sigma: -1, theta: -1, dt: 0}":                                          {"action_noise.kind", "action_noise.sigma", "action_noise.theta", "action_noise.dt"},
		"n_critics: 0\ncritic_hidden: [0]\nhidden: [0]\nactivation: loud":                                  {"n_critics", "critic_hidden", "hidden", "activation"},
		"optimizer: {kind: adam, lr: 0.1}":                                                                 {"optimizer.lr", "learning_rate"},
		"schedule: {initial: 3}\ngrad_clip: -1\ncritic_learning_rate: -1\nlearning_starts: -1\nn_steps: 0": {"schedule.initial", "grad_clip", "critic_learning_rate", "learning_starts", "n_steps"},
	} {
		_, err := parse(t, text)
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		for _, w := range append(words, "run.yaml:") {
			if n++; !strings.Contains(err.Error(), w) {
				t.Errorf("%q: the error does not have %q: %v", text, w, err)
			}
		}
	}
	if n < 35 {
		t.Errorf("%d checks", n)
	}
}

// TestKinds: the two kinds differ in their defaults, which are written as they are read.
func TestKinds(t *testing.T) {
	n := 0
	for _, k := range []agents.Kind{Kind, DDPGKind} {
		m, err := agents.Parse([]agents.Kind{k}, configs.Kinded{Kind: k.Name})
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config().(Config)
		if one := k.Name == "ddpg"; one != (c.PolicyDelay == 1 && c.Critics == 1 && c.TargetPolicyNoise == 0) {
			t.Errorf("%s: %+v", k.Name, c)
		}
		written, err := configs.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(t, strings.TrimSpace(string(written)))
		if err != nil {
			t.Fatalf("%s is written as\n%s\n%v", k.Name, written, err)
		}
		if d := again.Config().(Config); d.PolicyDelay != c.PolicyDelay || d.ActionNoise != c.ActionNoise || d.Critics != c.Critics {
			t.Errorf("%s is written as\n%s", k.Name, written)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d kinds", n)
	}
}

// TestMisfits makes agents for environments that they do not fit to.
func TestMisfits(t *testing.T) {
	with := func(a envs.Space) envs.Spec {
		s := boxToy()
		s.Action = a
		return s
	}
	refuse(t, small(), with(envs.MultiDiscrete{N: []int{3, 3}}), "toy", "multi-discrete[3 3]", "finite bounds")
	refuse(t, small(), with(envs.Discrete{N: 2}), "toy", "discrete(2)")
	refuse(t, small(), with(envs.Unbounded(2)), "toy", "finite bounds")
	refuse(t, small(), with(envs.NewBox(0, math.Inf(1), 2)), "toy", "finite bounds")
	refuse(t, small(), with(envs.Box{Of: tensor.Uint8, Dims: []int{1}, Low: []float64{0}, High: []float64{3}}), "toy", "float32 or float64")
	frozen := small()
	frozen.Freeze = []string{"actor.*"}
	refuse(t, frozen, boxToy(), "no parameter of the actor")
	unknown := small()
	unknown.Train = []string{"decoder.*"}
	refuse(t, unknown, boxToy(), "decoder.*", "critic.q1.fc0.weight")
	strange := small()
	strange.Optimizer.NoDecay = []string{"*.gamma"}
	refuse(t, strange, boxToy(), "*.gamma")
	dropout, conf := small(), timecnn.Defaults()
	conf.Dropout, conf.NLayers = 0.1, 1
	var err error
	if dropout.Encoder, err = configs.NewKinded("timecnn", conf); err != nil {
		t.Fatal(err)
	}
	refuse(t, dropout, seriesToy(t), "dropout of 0.1")
	assets := small()
	assets.CrossAsset.NHeads = 3
	refuse(t, assets, assetsToy(t), "3 heads")
}

// TestMisuse: errors for callers that do not keep to the order, and for rewards that are no numbers.
func TestMisuse(t *testing.T) {
	v := toys(t, 2, boxToy())
	a := agent(t, small(), v, testengines.Fastest(t), 1)
	has := func(err error, words ...string) {
		t.Helper()
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("the error does not have %q: %v", w, err)
			}
		}
	}
	_, err := a.Learner().Step(t.Context())
	has(err, "td3: learn", "0 of 1 rounds")
	_, err = a.NewActor(agents.Greedy, 0)
	has(err, "td3: an actor for 0 environments")
	for _, mode := range []agents.Mode{agents.Explore, agents.Greedy} {
		_, err = actorOf(t, a, mode, 3).Act(t.Context(), rng.New(1), v.Batch())
		has(err, "batch of 2 environments, expected 3")
	}
	r := newTraining(t, a, v)
	if err := r.run(t.Context(), 20, nil); err != nil {
		t.Fatal(err)
	}
	before := stateOf(t, r)[:len(a.params.Segments()[0].Floats())]
	for i := range a.batch.Reward {
		a.batch.Reward[i] = float32(math.NaN())
	}
	var sum losses
	has(a.learn(1, &sum, agents.Lap{}), "critics", "NaN", "learning rate")
	for i, x := range a.params.Segments()[0].Floats() {
		if x != before[i] {
			t.Fatal("a loss that is no number has changed the parameters")
		}
	}
}
