package sac

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
	d, err := configs.Parse("run.yaml", []byte("agent:\n  kind: sac\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n"))
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
		"learning_rate: 0\ngamma: 1.5\ntau: -1\nbatch_size: 0":        {"agent.learning_rate", "agent.gamma", "agent.tau", "agent.batch_size"},
		"buffer_size: 100\nbatch_size: 256":                           {"batch_size", "buffer_size of 100"},
		"train_freq: 0\ngradient_steps: 0\ntarget_update_interval: 0": {"train_freq", "gradient_steps", "target_update_interval"},
		"ent_coef: aut":       {"ent_coef", `"aut"`},
		"ent_coef: auto_-1":   {"ent_coef", "above 0"},
		"ent_coef: -0.5":      {"ent_coef", "not negative"},
		"target_entropy: low": {"target_entropy", `"low"`},
		"vtrace: {length: 5}": {"vtrace.length", "256"},
		"vtrace: {length: 4, lambda: 2, clip_rho: 0, clip_c: 0}\nn_steps: 3":                               {"vtrace.lambda", "vtrace.clip_rho", "vtrace.clip_c", "n_steps"},
		"log_std: {bound: none, low: 3, high: 2}":                                                          {"log_std.bound", "log_std"},
		"use_sde_at_warmup: true\nclip_mean: -1\nsde_sample_freq: 0":                                       {"use_sde_at_warmup", "clip_mean", "sde_sample_freq"},
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
	if n < 50 {
		t.Errorf("%d checks", n)
	}
}

// TestConfigsAreWrittenAsTheyAreRead writes configurations and reads them again.
func TestConfigsAreWrittenAsTheyAreRead(t *testing.T) {
	n := 0
	for text, want := range map[string]struct {
		coef   EntCoef
		target TargetEntropy
	}{
		"gamma: 0.99":    {EntCoef{true, 1}, TargetEntropy{Auto: true}},
		"ent_coef: auto": {EntCoef{true, 1}, TargetEntropy{Auto: true}},
		"ent_coef: auto_0.1\ntarget_entropy: -1.5": {EntCoef{true, 0.1}, TargetEntropy{Value: -1.5}},
		"ent_coef: 0.25\ntarget_entropy: auto":     {EntCoef{false, 0.25}, TargetEntropy{Auto: true}},
		"ent_coef: 0":                              {EntCoef{}, TargetEntropy{Auto: true}},
	} {
		m, err := parse(t, text)
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config().(Config)
		if c.EntCoef != want.coef || c.TargetEntropy != want.target {
			t.Errorf("%q is read as %+v, %+v", text, c.EntCoef, c.TargetEntropy)
		}
		written, err := configs.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(t, strings.TrimSpace(string(written)))
		if err != nil {
			t.Fatalf("%q is written as\n%s\n%v", text, written, err)
		}
		if d := again.Config().(Config); d.EntCoef != c.EntCoef || d.TargetEntropy != c.TargetEntropy || d.LearningRate != c.LearningRate {
			t.Errorf("%q is written as\n%s", text, written)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d documents", n)
	}
}

// TestMisfits makes agents for environments that they do not fit to.
func TestMisfits(t *testing.T) {
	with := func(a envs.Space) envs.Spec {
		s := boxToy()
		s.Action = a
		return s
	}
	refuse(t, small(), with(envs.MultiDiscrete{N: []int{3, 3}}), "toy", "multi-discrete[3 3]", "box, or Discrete")
	refuse(t, small(), with(envs.MultiBinary{N: 2}), "toy", "multi-binary")
	refuse(t, small(), with(envs.Unbounded(2)), "toy", "finite bounds")
	refuse(t, small(), with(envs.NewBox(0, math.Inf(1), 2)), "toy", "finite bounds")
	refuse(t, small(), with(envs.Box{Of: tensor.Uint8, Dims: []int{1}, Low: []float64{0}, High: []float64{3}}), "toy", "float32 or float64")
	sde := small()
	sde.UseSDE = true
	refuse(t, sde, choiceToy(), "use_sde", "discrete(4)")
	own := sde
	own.Policy = configs.Kinded{Kind: "file"}
	refuse(t, own, boxToy(), "use_sde", "policy of one's own")
	frozen := small()
	frozen.Freeze = []string{"actor.*"}
	refuse(t, frozen, boxToy(), "no parameter of the actor")
	unknown := small()
	unknown.Train = []string{"decoder.*"}
	refuse(t, unknown, boxToy(), "decoder.*", "critic.q1.fc0.weight")
	strange := small()
	strange.Optimizer.NoDecay = []string{"*.gamma"}
	refuse(t, strange, boxToy(), "*.gamma")
	short := small()
	short.VTrace.Length = 8
	short.BufferSize = 20
	refuse(t, short, boxToy(), "buffer_size", "2 environments", "vtrace.length 8")
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
	has(err, "sac: learn", "0 of 1 rounds")
	_, err = a.NewActor(agents.Greedy, 0)
	has(err, "sac: an actor for 0 environments")
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
