package learning

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"onnxrl/agents"
	"onnxrl/agents/train"
	"onnxrl/cmd/internal/experiment"
	"onnxrl/models/encoder/kinds"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// somebodys writes a policy as somebody's ONNX file: two layers from in numbers to out.
func somebodys(t *testing.T, in, out int) string {
	t.Helper()
	b, s := onnx.NewBuilder("somebodys", onnx.DefaultOpset), rng.New(4).Stream()
	random := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(w.Float32s(), 0, 0.5)
		return b.Initializer(name, w)
	}
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(in)}})
	h := b.Op("Tanh", []onnx.Value{b.Op("Gemm", []onnx.Value{x, random("body.weight", in, 6), random("body.bias", 6)})})
	y := b.Rename(b.Op("Gemm", []onnx.Value{h, random("last.weight", 6, out), random("last.bias", out)}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(out)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), fmt.Sprintf("policy%d.onnx", out))
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// whole opens a training of a shipped experiment whose policy is a file's.
func whole(t *testing.T, e engine.Compiler, name, path string, sets ...string) (*train.Trainer, error) {
	t.Helper()
	cfg, err := Load(name, Options{Threads: 1, Sets: append([]string{"agent.policy={kind: file, path: " + path + "}", "train.validation.every_steps=0", "train.num_envs=1"}, sets...)})
	if err != nil {
		t.Fatal(err)
	}
	cfg, factory, maker, err := experiment.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Close(); err != nil {
			t.Error(err)
		}
	})
	return train.New(t.Context(), factory, maker, agents.Setup{Engine: e, Encoders: kinds.All(), Key: rng.New(1)}, cfg.Train, train.Hooks{})
}

// TestWholePolicies: a policy that is one ONNX file is trained by every algorithm. It begins as the file has it, all of its parameters learn, and it has no layers beside them.
func TestWholePolicies(t *testing.T) {
	e, tried := fastest(t), 0
	for _, c := range []struct {
		name    string
		in, out int
		sets    []string
		scope   string
		more    int
	}{
		{"cartpole_ppo", 4, 2, []string{"train.total_env_steps=64"}, "actor.policy.", 0},
		{"cartpole_ppo", 4, 2, []string{"agent.encoders=shared", "train.total_env_steps=64"}, "actor.policy.", 0},
		{"cartpole_maskable_ppo", 4, 8, []string{"train.total_env_steps=64"}, "actor.policy.", 0},
		{"pendulum_ppo", 3, 1, []string{"agent.use_sde=false", "wrappers={}", "train.total_env_steps=2048"}, "actor.policy.", 1},
		{"cartpole_a2c", 4, 2, []string{"train.total_env_steps=20"}, "actor.policy.", 0},
		{"cartpole_dqn", 4, 2, []string{"agent.learning_starts=64", "agent.train_freq=4", "agent.gradient_steps=1", "train.total_env_steps=80"}, "policy.", 0},
		{"identity_box_sac", 1, 1, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 1},
		{"identity_box_sac", 1, 2, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0},
		{"identity_box_sac", 3, 3, []string{"env={kind: identity, space: discrete, dims: [3]}", "agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0},
		{"pendulum_td3", 3, 1, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0},
	} {
		path := somebodys(t, c.in, c.out)
		tr, err := whole(t, e, c.name, path, c.sets...)
		if err != nil {
			t.Errorf("%s, %d numbers: %v", c.name, c.out, err)
			continue
		}
		m, err := onnx.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		network, params := tr.Agent().Learner().Policy()
		found := 0
		before := map[string][]byte{}
		for _, init := range m.Graph.Initializer {
			want, err := onnx.TensorOf(init)
			if err != nil {
				t.Fatal(err)
			}
			name := c.scope + init.Name
			if p := params.View(name); p == nil || !bytes.Equal(p.Bytes(), want.Bytes()) {
				t.Errorf("%s: %s does not begin as in the file", c.name, name)
			} else {
				before[name] = bytes.Clone(p.Bytes())
			}
		}
		for _, s := range network.Specs {
			if strings.HasPrefix(s.Name, "actor.") || strings.HasPrefix(s.Name, c.scope) {
				found++
			}
		}
		if found != 4+c.more {
			t.Errorf("%s, %d numbers: the policy has %d parameters, expected %d", c.name, c.out, found, 4+c.more)
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for name, b := range before {
			if bytes.Equal(params.View(name).Bytes(), b) {
				t.Errorf("%s, %d numbers: %s has not learnt", c.name, c.out, name)
			}
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		tried++
	}
	if tried != 10 {
		t.Errorf("%d policies were trained", tried)
	}
}

// TestWholePolicyMisfits names what does not fit.
func TestWholePolicyMisfits(t *testing.T) {
	e, tried := fastest(t), 0
	for _, c := range []struct {
		name    string
		in, out int
		sets    []string
		want    string
	}{
		{"cartpole_ppo", 4, 5, nil, "gives 5 numbers, and the actions of cartpole are discrete(2); expected 2, one for each choice"},
		{"cartpole_ppo", 3, 2, nil, "float32[n,3]"},
		{"pendulum_td3", 3, 2, nil, "expected 1, one for each component"},
		{"pendulum_sac", 3, 3, nil, "expected 1 means, or these and as many log standard deviations"},
		{"cartpole_ppo", 4, 2, []string{"agent.recurrent.kind=lstm"}, "no memory"},
		{"pendulum_ppo", 3, 1, nil, "use_sde needs the features"},
		{"pendulum_sac", 3, 1, []string{"agent.use_sde=true"}, "use_sde needs the features"},
		{"synthetic_leading", 4, 3, nil, "name an encoder instead"},
	} {
		tr, err := whole(t, e, c.name, somebodys(t, c.in, c.out), c.sets...)
		if err == nil {
			err = tr.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d to %d: %v does not say %q", c.name, c.in, c.out, err, c.want)
		}
		tried++
	}
	if tried != 8 {
		t.Errorf("%d misfits", tried)
	}
}
