package a2c

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// refuse requires that no agent is made, and that the error has all of the words.
func refuse(t *testing.T, c Config, spec envs.Spec, words ...string) {
	t.Helper()
	m, err := NewMaker(c)
	agenttest.Refuse(t, m, err, spec, words...)
}

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"gama: 0.9": {"gama"},
		"gamma: 1.5\nn_steps: 0\nlearning_rate: -1":                                {"agent.gamma", "agent.n_steps", "agent.learning_rate"},
		"ent_coef: -0.1\nvf_coef: -1\nmax_grad_norm: -1\ncritic_learning_rate: -1": {"ent_coef", "vf_coef", "max_grad_norm", "critic_learning_rate"},
		"gae_lambda: 2\nreduction: median\nencoders: both":                         {"gae_lambda", "reduction", "encoders"},
		"share_windows: perhaps\nactivation: loud\nhidden: [0]":                    {"share_windows", "activation", "hidden"},
		"optimizer: {kind: adam, lr: 0.1}":                                         {"optimizer.lr", "learning_rate"},
		"optimizer: {kind: adamant}":                                               {"optimizer", "adamant"},
		"learning_rate_schedule: {kind: liner}":                                    {"learning_rate_schedule", "liner"},
		"correction: some\nvtrace: {clip_rho: 0, clip_c: -1, clip_pg_rho: 0}":      {"correction", "vtrace.clip_rho", "vtrace.clip_c", "vtrace.clip_pg_rho"},
		"hidden_gain: -1\nlog_std_init: 99\nsde_sample_freq: 0":                    {"hidden_gain", "log_std_init", "sde_sample_freq"},
		"learning_rate_schedule: {initial: 3}":                                     {"learning_rate_schedule.initial"},
		"hidden_gain: 2\northo_init: false":                                        {"hidden_gain", "ortho_init"},
		"cross_asset: {mix: blender}":                                              {"cross_asset.mix"},
		"n_steps: 2.5":                                                             {"n_steps"},
	})
	if m, err := agents.Parse([]agents.Kind{Kind}, configs.Kinded{Kind: "a2c"}); err != nil || m.Config().(Config).LearningRate != 7e-4 {
		t.Errorf("the defaults: %v, %v", m, err)
	}
}

// TestMisfits makes agents for environments that they do not fit to.
func TestMisfits(t *testing.T) {
	m := market(70, 3, 4, false)
	good := func() envs.Spec {
		return markets(t, m, 1, func(c *trading.Config) { c.Window = 6 }).Spec()
	}
	change := func(f func(s *envs.Spec)) envs.Spec {
		s := good()
		s.Observation = append(envs.Dict(nil), s.Observation...)
		f(&s)
		return s
	}
	c := small(t, nil)
	refuse(t, c, change(func(s *envs.Spec) { s.Action = envs.MultiDiscrete{N: []int{3, 3}} }), "[6 3 4]", "multi-discrete[3 3]")
	refuse(t, c, change(func(s *envs.Spec) { s.Action = envs.MultiDiscrete{N: []int{3, 3, 2}} }), "[6 3 4]", "multi-discrete[3 3 2]")
	refuse(t, c, change(func(s *envs.Spec) { s.Action = envs.Unbounded(2); s.Masked = false }), "[6 3 4]", "box float32[2]", "one component for each")
	refuse(t, c, change(func(s *envs.Spec) { s.Observation[1].Space = envs.Unbounded(4) }), `"position" [4]`, "[6 3 4]", "position [3]")
	refuse(t, c, change(func(s *envs.Spec) {
		s.Observation = append(s.Observation, envs.Field{Name: "other", Space: envs.Unbounded(5, 5)})
	}), `"window" [6 3 4]`, `"other" [5 5]`)
	refuse(t, c, change(func(s *envs.Spec) { s.Observation[1].Space = envs.Discrete{N: 3} }), `"position" []`, "position [3]")
	long := small(t, func(c *encoder.TimeCNNConfig) { c.NLayers = 3 })
	refuse(t, long, good(), "sees 7 steps", "window of 6", "[6 3 4]")
	heads := small(t, nil)
	heads.CrossAsset.NHeads = 3
	refuse(t, heads, good(), "3 heads", "8")
	none := small(t, nil)
	none.Freeze = []string{"*"}
	refuse(t, none, good(), "no parameter")
	unknown := small(t, nil)
	unknown.Train = []string{"decoder.*"}
	refuse(t, unknown, good(), "decoder.*", "encoder.conv0.weight")
	dropout := small(t, func(c *encoder.TimeCNNConfig) { c.Dropout = 0.1 })
	dropout.LoRA = &lora.Config{Rank: 2}
	refuse(t, dropout, good(), "dropout of 0.1", "adapters")
	strange := small(t, nil)
	strange.Optimizer.NoDecay = []string{"*.gamma"}
	refuse(t, strange, good(), "*.gamma")
	flat := quick()
	flat.Encoder, _ = configs.NewKinded("timecnn", encoder.TimeCNNDefaults())
	refuse(t, flat, corridors(t, 1).Spec(), "corridor", "rank")
}

// TestFileDoesNotFit names the shapes of an encoder's file and of the windows.
func TestFileDoesNotFit(t *testing.T) {
	g := layer.New("other", rng.New(1), layer.Options{})
	g.Output("z", g.Linear("fc", g.PoolTime(g.Observation("x", 8, 5), layer.Average), 8, layer.Xavier(1)))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	c := small(t, nil)
	c.Encoder = agenttest.Own(t, m)
	refuse(t, c, windowToy(t), "own.onnx", "float32[batch,8,5]", "[8 3 4]", "8,4]")
	// One that fits is used, and trained.
	s := windowToy(t)
	s.Observation[0] = envs.Field{Name: "window", Space: envs.Unbounded(8, 3, 5), Window: agenttest.Window(t, 60, 3, 5)}
	before := learn(t, c, agenttest.Toys(t, 2, s), testengines.Fastest(t), 1, 1)
	after := learn(t, c, agenttest.Toys(t, 2, s), testengines.Fastest(t), 1, 2)
	if d := apart(before.params, after.params); d < 1e-4 {
		t.Errorf("the parameters moved by %g", d)
	}
}
