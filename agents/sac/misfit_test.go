package sac

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"gama: 0.9": {"gama"},
		"learning_rate: 0\ngamma: 1.5\ntau: -1\nbatch_size: 0":        {"agent.learning_rate", "agent.gamma", "agent.tau", "agent.batch_size"},
		"buffer_size: 100\nbatch_size: 256":                           {"batch_size", "buffer_size of 100"},
		"train_freq: 0\ngradient_steps: 0\ntarget_update_interval: 0": {"train_freq", "gradient_steps", "target_update_interval"},
		"ent_coef: aut":       {"ent_coef", `"aut"`},
		"ent_coef: auto_-1":   {"ent_coef", "above 0"},
		"ent_coef: -0.5":      {"ent_coef", "not negative"},
		"target_entropy: low": {"target_entropy", `"low"`},
		"vtrace: {length: 5}": {"vtrace.length", "256"},
		"vtrace: {length: 4, lambda: 2, clip_rho: 0, clip_c: 0}\nn_steps: 3": {"vtrace.lambda", "vtrace.clip_rho", "vtrace.clip_c", "n_steps"},
		"sharing: {clip_rho: 0}": {"sharing.clip_rho"},
		"sharing: {}\nvtrace: {length: 4}\nn_steps: 2\naction_noise: {kind: ou}":                                             {"sharing", "n_steps", "action_noise.kind"},
		"log_std: {bound: none, low: 3, high: 2}":                                                                            {"log_std.bound", "log_std"},
		"use_sde_at_warmup: true\nclip_mean: -1\nsde_sample_freq: 0":                                                         {"use_sde_at_warmup", "clip_mean", "sde_sample_freq"},
		"n_critics: 0\ncritic_hidden: [0]\nhidden: [0]\nactivation: loud":                                                    {"n_critics", "critic_hidden", "hidden", "activation"},
		"optimizer: {kind: adam, lr: 0.1}":                                                                                   {"optimizer.lr", "learning_rate"},
		"learning_rate_schedule: {initial: 3}\nmax_grad_norm: -1\ncritic_learning_rate: -1\nlearning_starts: -1\nn_steps: 0": {"learning_rate_schedule.initial", "max_grad_norm", "critic_learning_rate", "learning_starts", "n_steps"},
	})
}

// TestConfigsAreWrittenAsTheyAreRead writes configurations and reads them again.
func TestConfigsAreWrittenAsTheyAreRead(t *testing.T) {
	n := 0
	for text, want := range sorted.All(map[string]struct {
		coef   EntCoef
		target TargetEntropy
	}{
		"gamma: 0.99":    {EntCoef{true, 1}, TargetEntropy{Auto: true}},
		"ent_coef: auto": {EntCoef{true, 1}, TargetEntropy{Auto: true}},
		"ent_coef: auto_0.1\ntarget_entropy: -1.5": {EntCoef{true, 0.1}, TargetEntropy{Value: -1.5}},
		"ent_coef: 0.25\ntarget_entropy: auto":     {EntCoef{false, 0.25}, TargetEntropy{Auto: true}},
		"ent_coef: 0":                              {EntCoef{}, TargetEntropy{Auto: true}},
	}) {
		m, err := agenttest.Parse(t, Kind, text)
		if err != nil {
			t.Fatal(err)
		}
		c := m.Config().(Config)
		if c.EntCoef != want.coef || c.TargetEntropy != want.target {
			t.Errorf("%q is read as %+v, %+v", text, c.EntCoef, c.TargetEntropy)
		}
		if d := agenttest.Reread(t, Kind, m).(Config); d.EntCoef != c.EntCoef || d.TargetEntropy != c.TargetEntropy || d.LearningRate != c.LearningRate {
			t.Errorf("%q is read again as %+v", text, d)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d documents", n)
	}
}

// TestMisfits makes agents for environments that they do not fit to.
func TestMisfits(t *testing.T) {
	suite.Misfits(t)
	with := func(a envs.Space) envs.Spec {
		s := agenttest.Box()
		s.Action = a
		return s
	}
	suite.Refuse(t, with(envs.MultiDiscrete{N: []int{3, 3}}), nil, "toy", "multi-discrete[3 3]", "box, or Discrete")
	suite.Refuse(t, with(envs.MultiBinary{N: 2}), nil, "toy", "multi-binary")
	suite.Refuse(t, agenttest.Choice(), func(c *Config) { c.UseSDE = true }, "use_sde", "discrete(4)")
	suite.Refuse(t, agenttest.Choice(), func(c *Config) { c.ActionNoise = &offpolicy.Noise{Kind: offpolicy.Normal, Sigma: 0.1, Dt: 1} }, "action_noise", "discrete(4)")
	suite.Refuse(t, agenttest.Box(), func(c *Config) { c.VTrace.Length, c.BufferSize = 8, 20 }, "buffer_size", "2 environments", "vtrace.length 8")
}

// TestMisuse: errors for callers that do not keep to the order, and for rewards that are no
// numbers.
func TestMisuse(t *testing.T) {
	agenttest.Misuse(t, "sac", variants(t)["box"])
	r, l := training(t, 2, agenttest.Box(), nil)
	r.Run(t, 20)
	agenttest.NoNumbers(t, &l.Learner, func() error { return l.learn(1, &losses{}, agents.Stopwatch{}) })
}
