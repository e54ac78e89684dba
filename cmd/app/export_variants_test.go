package app

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// exportVariants are short runs of every kind of policy and everything that may stand between one
// and its environment.
var exportVariants = map[string]struct {
	document string
	// states are the inputs that remember; noise is that of samples, empty of policies that draw
	// nothing.
	states []string
	noise  string
	// bound is the largest action of a continuous policy.
	bound float32
}{
	"masked choices": {"env: {kind: invalid_action}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1}\n", nil, "gumbel", 0},
	"values":         {"env: {kind: cartpole}\nagent: {kind: dqn, learning_starts: 50}\n", nil, "", 0},
	"stacked and normalised": {"env: {kind: cartpole}\nwrappers: {normalize: {obs: true}, frame_stack: {frames: 4, initial: zero}}\nagent: {kind: a2c, n_steps: 10}\n",
		[]string{"observation_state_in"}, "gumbel", 0},
	"recurrent, stacked and normalised": {"env: {kind: cartpole}\nwrappers: {normalize: {obs: true}, frame_stack: {frames: 2}}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1, recurrent: {kind: lstm, hidden: 4}}\n",
		[]string{"state/actor_h0", "state/actor_c0", "state/critic_h0", "state/critic_c0", "observation_seen_in", "observation_state_in"}, "gumbel", 0},
	"normal and rescaled": {"env: {kind: pendulum}\nwrappers: {normalize: {obs: true, reward: true}, rescale_action: true}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1}\n",
		nil, "normal", 2},
	"normal, clipped and stacked": {"env: {kind: pendulum}\nwrappers: {clip_action: true, frame_stack: {frames: 3, flat: false}}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1, encoder: {kind: mlp}}\n",
		[]string{"observation_seen_in", "observation_state_in"}, "normal", 2},
	"gSDE":          {"env: {kind: pendulum}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1, use_sde: true}\n", nil, "normal", 2},
	"squashed":      {"env: {kind: pendulum}\nagent: {kind: sac, learning_starts: 50, hidden: [8]}\n", nil, "normal", 2},
	"deterministic": {"env: {kind: pendulum}\nagent: {kind: td3, learning_starts: 50, hidden: [8]}\n", nil, "", 2},
}

// TestPoliciesArePublishedAndExported trains some for a moment: publications pass the parity
// check and are verified, exports are compared with the checkpoint, and drawn actions stay
// within the environment's bounds. Golden runs publish a policy of every kind of agent every
// day.
func TestPoliciesArePublishedAndExported(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	exportPolicies(t, []string{"deterministic", "recurrent, stacked and normalised", "squashed"})
}

// TestEveryPolicyIsPublishedAndExported does so with all of them.
func TestEveryPolicyIsPublishedAndExported(t *testing.T) {
	longtest.Nightly(t)
	exportPolicies(t, slices.Sorted(maps.Keys(exportVariants)))
}

func exportPolicies(t *testing.T, names []string) {
	cases := 0
	for _, name := range names {
		v := exportVariants[name]
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := apptest.Trained(t, "seed: 5\ntrain: {num_envs: 2, total_env_steps: 200, threads: 1, validation: {every_steps: 100}}\neval: {episodes: 2}\npublish: {observations: 300, allow_ties: true}\n"+v.document)
			if n := len(apptest.VersionsIn(t, dir)); n != 1 {
				t.Fatalf("%d versions", n)
			}
			m, err := loadModel(filepath.Join(dir, publish.BestFile))
			if err != nil {
				t.Fatal(err)
			}
			list, err := models.States(m)
			var states []string
			for _, s := range list {
				states = append(states, s.Input)
			}
			if err != nil || !slices.Equal(slices.Sorted(slices.Values(states)), slices.Sorted(slices.Values(v.states))) {
				t.Errorf("it remembers %q, expected %q, %v", states, v.states, err)
			}
			text, _ := m.Meta(bake.MetaPrefix + "parity")
			if strings.Contains(text, "episodes with their memory") != (v.states != nil) || !strings.Contains(text, "max error") {
				t.Errorf("parity %q", text)
			}
			for _, e := range apptest.Engines() {
				apptest.Succeed(t, "models", "verify", "--store", filepath.Join(dir, publish.StoreDir), "--engine", e)
			}
			x := exported(t, dir, "--out", filepath.Join(t.TempDir(), "x.onnx"), "--rows", "200")
			if x.Trained != "checkpoint" || x.Observations != "recorded" || x.Parity.MaxError > bake.Tolerance || (x.Parity.Episodes > 0) != (v.states != nil) || (x.Parity.Choices > 0) != (v.bound == 0) {
				t.Errorf("%+v", x)
			}
			if action := apptest.VersionsIn(t, dir)[0].Manifest.Outputs[0]; v.bound > 0 && (action.Bounds == nil || float32(action.Bounds.High[0]) != v.bound) {
				t.Errorf("actions %+v", action)
			}
			folder := filepath.Join(t.TempDir(), "python")
			if v.noise == "" {
				apptest.Refuse(t, []string{"export", dir, "--sample", "--out", folder, "--rows", "64", "--allow-ties"}, "the policy is deterministic")
				cases++
				return
			}
			out := filepath.Join(t.TempDir(), "s.onnx")
			exported(t, dir, "--sample", "--out", out, "--rows", "64")
			drawn, err := loadModel(out)
			if err != nil {
				t.Fatal(err)
			}
			if kind, _ := drawn.Meta(bake.MetaNoise); kind != v.noise {
				t.Errorf("noise %q, expected %q", kind, v.noise)
			}
			if scale, _ := drawn.Meta(bake.MetaSquashScale); (scale == "2") != (name == "squashed") {
				t.Errorf("tanh is multiplied by %q", scale)
			}
			largest := drawActions(t, drawn)
			if v.bound > 0 && (largest > v.bound+1e-5 || largest < v.bound/10) {
				t.Errorf("the largest drawn action is %g, the bound %g", largest, v.bound)
			}
			cases++
		})
	}
	if cases != len(names) {
		t.Errorf("%d of %d variants", cases, len(names))
	}
}

// drawActions runs a model that samples on made-up rows with much noise and returns the largest of
// its samples' absolute values.
func drawActions(t *testing.T, m *onnx.Model) (largest float32) {
	t.Helper()
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const rows = 50
	draws := rng.New(3).Stream()
	in, out := make([]*tensor.Tensor, len(s.Inputs())), make([]*tensor.Tensor, len(s.Outputs()))
	for i, p := range s.Inputs() {
		in[i] = tensor.New(p.DType, append([]int{rows}, p.Shape[1:]...)...)
		switch p.DType {
		case tensor.Bool:
			for k := range in[i].Bools() {
				in[i].Bools()[k] = true
			}
		case tensor.Float32:
			for k := range in[i].Float32s() {
				in[i].Float32s()[k] = float32(5 * draws.Normal())
			}
		}
	}
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(s.Outputs(), func(p engine.Port) bool { return p.Name == bake.SampleOutput })
	if out[i].DType() != tensor.Float32 {
		return 0
	}
	for _, x := range out[i].Float32s() {
		largest = max(largest, x, -x)
	}
	return largest
}
