package learning

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// somebodys writes a policy as somebody's ONNX file: two layers from in numbers to out.
func somebodys(t *testing.T, in, out int) string { return remembers(t, in, out, false, false) }

// remembers is somebodys with a memory, which is what the layer before the last was in the step
// before, or with the features of the last layer beside its numbers.
func remembers(t *testing.T, in, out int, memory, features bool) string {
	t.Helper()
	f := newFile(t, "somebodys")
	x := f.input("x", in)
	h := f.b.Op("Gemm", []onnx.Value{x, f.weight("body.weight", in, 6), f.weight("body.bias", 6)})
	if memory {
		h = f.b.Op("Add", []onnx.Value{h, f.b.Op("MatMul", []onnx.Value{f.input("state/h", 6), f.weight("body.again", 6, 6)})})
	}
	h = f.b.Op("Tanh", []onnx.Value{h})
	f.output("y", f.b.Op("Gemm", []onnx.Value{h, f.weight("last.weight", 6, out), f.weight("last.bias", out)}), out)
	if memory {
		f.output("next_state/h", f.b.Op("Identity", []onnx.Value{h}), 6)
	}
	if features {
		f.output("features", f.b.Op("Identity", []onnx.Value{h}), 6)
	}
	return f.save(fmt.Sprintf("policy%d.onnx", out))
}

// trades is somebody's policy for a market: three choices for each asset from all bars of its
// window and what is held of it, and from the cash.
func trades(t *testing.T, window, assets, features int) string {
	t.Helper()
	f := newFile(t, "trades")
	bars := f.b.Op("Transpose", []onnx.Value{f.input("window", window, assets, features)}, onnx.AttrInts("perm", 0, 2, 1, 3))
	h := f.b.Op("MatMul", []onnx.Value{f.b.Op("Reshape", []onnx.Value{bars, f.b.Ints(0, assets, window*features)}), f.weight("body.weight", window*features, 6)})
	held := f.b.Op("MatMul", []onnx.Value{f.b.Op("Unsqueeze", []onnx.Value{f.input("position", assets), f.b.Ints(2)}), f.weight("held.weight", 1, 6)})
	cash := f.b.Op("MatMul", []onnx.Value{f.b.Op("Unsqueeze", []onnx.Value{f.input("cash", 1), f.b.Ints(1)}), f.weight("cash.weight", 1, 6)})
	h = f.b.Op("Tanh", []onnx.Value{f.b.Op("Add", []onnx.Value{f.b.Op("Add", []onnx.Value{h, held}), cash})})
	f.output("logits", f.b.Op("MatMul", []onnx.Value{h, f.weight("last.weight", 6, 3)}), assets, 3)
	return f.save("trades.onnx")
}

// file is a model under construction.
type file struct {
	t *testing.T
	b *onnx.Builder
	s *rng.Stream
}

func newFile(t *testing.T, name string) *file {
	return &file{t, onnx.NewBuilder(name, onnx.DefaultOpset), rng.New(4).Stream()}
}

func (f *file) weight(name string, shape ...int) onnx.Value {
	w := tensor.New(tensor.Float32, shape...)
	f.s.FillNormal32(w.Float32s(), 0, 0.5)
	return f.b.Initializer(name, w)
}

func (f *file) form(shape []int) onnx.TensorType {
	t := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n")}}
	for _, d := range shape {
		t.Dims = append(t.Dims, onnx.Known(d))
	}
	return t
}

func (f *file) input(name string, shape ...int) onnx.Value { return f.b.Input(name, f.form(shape)) }

func (f *file) output(name string, v onnx.Value, shape ...int) {
	f.b.Output(f.b.Rename(v, name), f.form(shape))
}

func (f *file) save(name string) string {
	f.t.Helper()
	m, err := f.b.Model()
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.t.TempDir(), name)
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// withPolicy opens a training of a shipped experiment whose policy is a file's.
func withPolicy(t *testing.T, e engine.Compiler, name, path string, sets ...string) (*train.Trainer, error) {
	t.Helper()
	cfg, err := Load(name, Options{Threads: 1, Sets: append(slices.Clone(sets), "agent.policy={kind: file, path: "+path+"}", "train.validation.every_steps=0", "train.num_envs=1")})
	if err != nil {
		t.Fatal(err)
	}
	cfg, factory, maker, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Close(); err != nil {
			t.Error(err)
		}
	})
	return train.New(t.Context(), factory, maker, agents.Setup{Engine: e, Encoders: kinds.All().Encoders, Key: rng.New(1)}, cfg.Train, train.Hooks{})
}

// TestWholePolicies: a policy that is one ONNX file is trained by every algorithm. It begins as the
// file has it, all of its parameters learn, and it has no layers beside them.
func TestWholePolicies(t *testing.T) {
	e, tried := fastest(t), 0
	for _, c := range []struct {
		name    string
		in, out int
		sets    []string
		scope   string
		more    int
		// path, unless empty, is the file.
		path string
	}{
		{"cartpole_ppo", 4, 2, []string{"train.total_env_steps=64", "agent.batch_size=32"}, "actor.policy.", 0, ""},
		{"cartpole_ppo", 4, 2, []string{"agent.encoders=shared", "train.total_env_steps=64", "agent.batch_size=32"}, "actor.policy.", 0, ""},
		{"cartpole_maskable_ppo", 4, 8, []string{"train.total_env_steps=64", "agent.batch_size=32"}, "actor.policy.", 0, ""},
		{"pendulum_ppo", 3, 1, []string{"agent.use_sde=false", "wrappers={}", "train.total_env_steps=2048"}, "actor.policy.", 1, ""},
		{"cartpole_a2c", 4, 2, []string{"train.total_env_steps=20"}, "actor.policy.", 0, ""},
		{"cartpole_dqn", 4, 2, []string{"agent.learning_starts=64", "agent.train_freq=4", "agent.gradient_steps=1", "train.total_env_steps=80"}, "policy.", 0, ""},
		{"identity_box_sac", 1, 1, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 1, ""},
		{"identity_box_sac", 1, 2, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0, ""},
		{"identity_box_sac", 3, 3, []string{"env={kind: identity, space: discrete, dims: [3]}", "agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0, ""},
		{"pendulum_td3", 3, 1, []string{"agent.learning_starts=20", "train.total_env_steps=30"}, "actor.policy.", 0, ""},
		{"synthetic_leading", 0, 3, []string{"train.total_env_steps=40"}, "actor.policy.", 0, trades(t, 4, 1, 11)},
		{"synthetic_leading", 0, 3, []string{"agent={kind: ppo, n_steps: 16, batch_size: 8, encoder: {kind: timecnn, d_model: 4, n_layers: 1}, cross_asset: {n_heads: 2}}", "train.total_env_steps=32"}, "actor.policy.", 0, trades(t, 4, 1, 11)},
		{"cartpole_ppo", 4, 2, []string{"train.total_env_steps=64", "agent.batch_size=32"}, "actor.policy.", 1, remembers(t, 4, 2, true, false)},
		{"pendulum_ppo", 3, 1, []string{"wrappers={}", "train.total_env_steps=2048"}, "actor.policy.", 1, remembers(t, 3, 1, false, true)},
	}[:longtest.Cases(t, 14, 4)] {
		path := c.path
		if path == "" {
			path = somebodys(t, c.in, c.out)
		}
		tr, err := withPolicy(t, e, c.name, path, c.sets...)
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
			if want.DType() != tensor.Float32 {
				continue
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
		for name, b := range sorted.All(before) {
			if bytes.Equal(params.View(name).Bytes(), b) {
				t.Errorf("%s, %d numbers: %s has not learnt", c.name, c.out, name)
			}
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		tried++
	}
	if tried != longtest.Cases(t, 14, 4) {
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
		path    string
	}{
		{"cartpole_ppo", 4, 5, nil, "gives 5 numbers, and the actions of cartpole are discrete(2); expected 2, one for each choice", ""},
		{"cartpole_ppo", 3, 2, nil, "float32[n,3]", ""},
		{"pendulum_td3", 3, 2, nil, "expected 1, one for each component", ""},
		{"pendulum_sac", 3, 3, nil, "expected 1 means, or these and as many log standard deviations", ""},
		{"cartpole_ppo", 4, 2, []string{"agent.recurrent.kind=lstm"}, "recurrent.kind: lstm, but the user-supplied policy has no memory: no inputs state/", ""},
		{"pendulum_ppo", 3, 1, nil, "has no output features [batch, L]", ""},
		{"pendulum_sac", 3, 1, []string{"agent.use_sde=true"}, "use_sde needs the features", ""},
		{"synthetic_leading", 4, 3, nil, `policy3.onnx has an input "x", and the observations of trading are window [4 1 11], position [1], cash [1]; expected inputs that are called as the fields they read`, ""},
		{"synthetic_leading", 0, 3, nil, `its input "window" is float32[n,5,1,11], what it is given is float32[batch,4,1,11]`, trades(t, 5, 1, 11)},
		{"cartpole_a2c", 4, 2, nil, `policy2.onnx has a memory, "state/h" to "next_state/h", and this algorithm gives policies none; ppo does`, remembers(t, 4, 2, true, false)},
		{"cartpole_dqn", 4, 2, nil, "this algorithm gives policies none", remembers(t, 4, 2, true, false)},
	} {
		path := c.path
		if path == "" {
			path = somebodys(t, c.in, c.out)
		}
		tr, err := withPolicy(t, e, c.name, path, c.sets...)
		if err == nil {
			err = tr.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d to %d: %v does not say %q", c.name, c.in, c.out, err, c.want)
		}
		tried++
	}
	if tried != 11 {
		t.Errorf("%d misfits", tried)
	}
}
