package a2c

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/envs/market/trading"
	"onnxrl/models/encoder/kinds"
	"onnxrl/models/encoder/timecnn"
	"onnxrl/models/layer"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/onnx"
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

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	n := 0
	for _, c := range []struct {
		text  string
		words []string
	}{
		{"gama: 0.9", []string{"gama"}},
		{"gamma: 1.5\nrollout_steps: 0\nlr_actor: -1", []string{"agent.gamma", "agent.rollout_steps", "agent.lr_actor"}},
		{"entropy_coef: -0.1\nvalue_coef: -1\ngrad_clip: -1\nlr_critic: 0", []string{"entropy_coef", "value_coef", "grad_clip", "lr_critic"}},
		{"gae_lambda: 2\nreduction: median\nencoders: both", []string{"gae_lambda", "reduction", "encoders"}},
		{"share_windows: perhaps\nactivation: loud\nhidden: [0]", []string{"share_windows", "activation", "hidden"}},
		{"optimizer: {kind: adam, lr: 0.1}", []string{"optimizer.lr", "lr_actor"}},
		{"optimizer: {kind: adamant}", []string{"optimizer", "adamant"}},
		{"schedule: {kind: liner}", []string{"schedule", "liner"}},
		{"correction: some\nvtrace: {clip_rho: 0, clip_c: -1, clip_pg_rho: 0}", []string{"correction", "vtrace.clip_rho", "vtrace.clip_c", "vtrace.clip_pg_rho"}},
		{"hidden_gain: -1\nlog_std_init: 99\nsde_sample_freq: 0", []string{"hidden_gain", "log_std_init", "sde_sample_freq"}},
		{"schedule: {initial: 3}", []string{"schedule.initial"}},
		{"hidden_gain: 2\northo_init: false", []string{"hidden_gain", "ortho_init"}},
		{"cross_asset: {mix: blender}", []string{"cross_asset.mix"}},
		{"rollout_steps: 2.5", []string{"rollout_steps"}},
	} {
		d, err := configs.Parse("run.yaml", []byte("agent:\n  kind: a2c\n  "+strings.ReplaceAll(c.text, "\n", "\n  ")+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Agent configs.Kinded `yaml:"agent"`
		}
		if err := d.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		_, err = agents.Parse([]agents.Kind{Kind}, doc.Agent)
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
	if n < 40 {
		t.Errorf("%d checks", n)
	}
	if m, err := agents.Parse([]agents.Kind{Kind}, configs.Kinded{Kind: "a2c"}); err != nil || m.Config().(Config).Gamma != 0.96 {
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
	long := small(t, func(c *timecnn.Config) { c.NLayers = 3 })
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
	dropout := small(t, func(c *timecnn.Config) { c.Dropout = 0.1 })
	refuse(t, dropout, good(), "dropout")
	strange := small(t, nil)
	strange.Optimizer.NoDecay = []string{"*.gamma"}
	refuse(t, strange, good(), "*.gamma")
	flat := quick()
	flat.Encoder, _ = configs.NewKinded("timecnn", timecnn.Defaults())
	refuse(t, flat, corridors(t, 1).Spec(), "corridor", "rank")
}

// TestFileDoesNotFit names the shapes of an encoder's file and of the windows.
func TestFileDoesNotFit(t *testing.T) {
	g := layer.New("other", rng.New(1), layer.Options{})
	g.Output("z", g.Linear("fc", g.PoolTime(g.Observation("x", 6, 5), layer.Average), 8, layer.Xavier(1)))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "other.onnx")
	data, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	c := small(t, nil)
	if c.Encoder, err = configs.NewKinded("file", map[string]any{"path": path}); err != nil {
		t.Fatal(err)
	}
	refuse(t, c, windowToy(t), "other.onnx", "float32[batch,6,5]", "[6 3 4]", "6,4]")
	// One that fits is used, and trained.
	s := windowToy(t)
	table := tensor.New(tensor.Float32, 60, 3, 5)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 6)
	if err != nil {
		t.Fatal(err)
	}
	s.Observation[0] = envs.Field{Name: "window", Space: envs.Unbounded(6, 3, 5), Window: w}
	before := learn(t, c, toys(t, 2, s), testengines.Fastest(t), 1, 1)
	after := learn(t, c, toys(t, 2, s), testengines.Fastest(t), 1, 2)
	if d := apart(before.params, after.params); d < 1e-4 {
		t.Errorf("the parameters moved by %g", d)
	}
}
