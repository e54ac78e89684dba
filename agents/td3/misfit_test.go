package td3

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"gama: 0.9": {"gama"},
		"learning_rate: 0\ngamma: 1.5\ntau: -1\nbatch_size: 0":                                                               {"agent.learning_rate", "agent.gamma", "agent.tau", "agent.batch_size"},
		"buffer_size: 100\nbatch_size: 256":                                                                                  {"batch_size", "buffer_size of 100"},
		"train_freq: 0\ngradient_steps: 0":                                                                                   {"train_freq", "gradient_steps"},
		"policy_delay: 0\ntarget_policy_noise: -1\ntarget_noise_clip: -1":                                                    {"policy_delay", "target_policy_noise", "target_noise_clip"},
		"action_noise: {kind: pink, sigma: -1, theta: -1, dt: 0}":                                                            {"action_noise.kind", "action_noise.sigma", "action_noise.theta", "action_noise.dt"},
		"n_critics: 0\ncritic_hidden: [0]\nhidden: [0]\nactivation: loud":                                                    {"n_critics", "critic_hidden", "hidden", "activation"},
		"optimizer: {kind: adam, lr: 0.1}":                                                                                   {"optimizer.lr", "learning_rate"},
		"learning_rate_schedule: {initial: 3}\nmax_grad_norm: -1\ncritic_learning_rate: -1\nlearning_starts: -1\nn_steps: 0": {"learning_rate_schedule.initial", "max_grad_norm", "critic_learning_rate", "learning_starts", "n_steps"},
	})
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
		if d := agenttest.Reread(t, k, m).(Config); d.PolicyDelay != c.PolicyDelay || d.ActionNoise != c.ActionNoise || d.Critics != c.Critics {
			t.Errorf("%s is read again as %+v", k.Name, d)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d kinds", n)
	}
}

// TestMisfits makes agents for environments that they do not fit to.
func TestMisfits(t *testing.T) {
	suite.Misfits(t)
	for name, a := range sorted.All(map[string]envs.Space{"multi-discrete[3 3]": envs.MultiDiscrete{N: []int{3, 3}}, "discrete(2)": envs.Discrete{N: 2}}) {
		s := agenttest.Box()
		s.Action = a
		suite.Refuse(t, s, nil, "toy", name, "finite bounds")
	}
}

// TestMisuse: errors for callers that do not keep to the order, and for rewards that are no
// numbers.
func TestMisuse(t *testing.T) {
	agenttest.Misuse(t, "td3", variants(t)["box"])
	r, l := training(t, 2, agenttest.Box(), nil)
	r.Run(t, 20)
	agenttest.NoNumbers(t, &l.Learner, func() error { return l.learn(1, &losses{}, agents.Stopwatch{}) })
}
