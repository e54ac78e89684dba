package training

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const shippedExperiments = "../../../../configs/experiments"

// agentYAML is a short run in the market of MarketCSV, with the 29 features that the shipped
// PyTorch encoder takes.
func agentYAML(t *testing.T, encoder string) string {
	t.Helper()
	return apptest.Write(t, "agent.yaml", fmt.Sprintf(`
seed: 3
publish: {observations: 64, allow_ties: true}
env:
  kind: trading
  window: 8
  data:
    source: {path: %q}
    split: {train: [2020-01-01, 2020-06-30], valid: [2020-07-01, 2020-08-31], test: [2020-09-01, 2020-12-31]}
agent: {kind: a2c, n_steps: 20, learning_rate: 1.0e-2, optimizer: {kind: adam}, encoders: shared, encoder: %s}
train: {num_envs: 1, total_env_steps: 80, threads: 1, validation: {every_steps: 40}}
`, apptest.MarketCSV(t), encoder))
}

// parameters reads the parameters of a role from the newest checkpoint of a run.
func parameters(t *testing.T, dir, role string) map[string][]float32 {
	t.Helper()
	c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := map[string][]float32{}
	for _, name := range c.Reader().Names() {
		if param, ok := strings.CutPrefix(name, "agent/params/"+role+"/"); ok {
			if out[param], _, err = c.Reader().Float32s(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

// TestPretrainedEncoder pretrains the shipped PyTorch encoder on windows of the market, freezes it,
// and trains an agent on its features: the agent changes and the encoder does not, bit for bit,
// also in what is published.
func TestPretrainedEncoder(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	windows, encoder := filepath.Join(dir, "windows.parquet"), filepath.Join(dir, "encoder.onnx")
	shipped := filepath.Join(shippedExperiments, "encoders", "torch_tcn_head.onnx")
	run := agentYAML(t, fmt.Sprintf(`{kind: file, path: %q, output: features, freeze: ["*"]}`, encoder))

	rep := apptest.Decoded[windowTable](t, apptest.Succeed(t, "data", "windows", run, "--out", windows, "--json"))
	if rep.Features != 29 || rep.Window != 8 || rep.Rows < 80 {
		t.Fatalf("windows: %+v", rep)
	}
	fit := []string{"fit", filepath.Join(shippedExperiments, "pretrain_encoder.yaml"), "--model", shipped, "--data", windows, "--set", "bind.time=8", "--epochs", "2", "--batch", "16", "--out", encoder, "--json", "-q"}
	if s := apptest.Decoded[fitReport](t, apptest.Succeed(t, fit...)); s.Trainable != 10497 || s.Frozen != 0 || s.Steps == 0 {
		t.Errorf("fit: %+v", s)
	}
	pretrained, fresh := apptest.Weights(t, encoder), apptest.Weights(t, shipped)
	changed := 0
	for name, w := range sorted.All(pretrained) {
		if !slices.Equal(w, fresh[name]) {
			changed++
		}
	}
	if changed < 16 {
		t.Errorf("pretraining changed %d of %d weights", changed, len(pretrained))
	}

	out := filepath.Join(dir, "run")
	apptest.Succeed(t, "train", run, "--out", out, "-q")
	frozen := parameters(t, out, "frozen")
	if len(frozen) != 14 {
		t.Errorf("%d parameters are frozen, expected 14", len(frozen))
	}
	for name, w := range sorted.All(frozen) {
		if !slices.Equal(w, pretrained[strings.TrimPrefix(name, "encoder.")]) {
			t.Errorf("%s has changed", name)
		}
	}
	best := apptest.Weights(t, filepath.Join(out, publish.BestFile))
	served := 0
	for name, w := range sorted.All(frozen) {
		if slices.Equal(w, best[name]) {
			served++
		}
	}
	if served != len(frozen) {
		t.Errorf("%d of %d frozen parameters are in the published model", served, len(frozen))
	}

	// Another length of training gives another policy over the same features.
	longer := filepath.Join(dir, "longer")
	apptest.Succeed(t, "train", run, "--out", longer, "--set", "train.total_env_steps=120", "-q")
	a, b := parameters(t, out, "trainable"), parameters(t, longer, "trainable")
	moved := 0
	for name, w := range sorted.All(a) {
		if !slices.Equal(w, b[name]) {
			moved++
		}
	}
	if moved == 0 || moved < len(a)-2 {
		t.Errorf("%d of %d trained parameters move", moved, len(a))
	}
	for name, w := range sorted.All(parameters(t, longer, "frozen")) {
		if !slices.Equal(w, frozen[name]) {
			t.Errorf("%s has changed", name)
		}
	}
}

// TestEncodersThatDoNotFit are named with both shapes, and no run is left.
func TestEncodersThatDoNotFit(t *testing.T) {
	t.Parallel()
	shipped, err := filepath.Abs(filepath.Join(shippedExperiments, "encoders", "torch_tcn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")
	file := fmt.Sprintf("{kind: file, path: %q}", shipped)
	for _, k := range []struct {
		encoder string
		sets    []string
		says    []string
	}{
		{file, []string{"env.data.features.indicators={sma: [5]}"}, []string{"torch_tcn.onnx", `input "window" is float32[batch,time,29]`, ",8,7]"}},
		{fmt.Sprintf("{kind: file, path: %q, layout: channels_first}", shipped), nil, []string{`input "window" is float32[batch,time,29]`, ",29,8]", "channels_last"}},
		{fmt.Sprintf("{kind: file, path: %q, output: logits}", shipped), nil, []string{`no output "logits", only features`}},
		{fmt.Sprintf("{kind: file, path: %q}", apptest.Write(t, "bad.onnx", "no model")), nil, []string{"bad.onnx"}},
		{fmt.Sprintf("{kind: file, path: %q}", filepath.Join(t.TempDir(), "none.onnx")), nil, []string{"none.onnx", "no such file"}},
		{fmt.Sprintf(`{kind: file, path: %q, freeze: ["conv9.*"]}`, shipped), nil, []string{"conv9"}},
	} {
		args := []string{"train", agentYAML(t, k.encoder), "--out", out}
		for _, s := range k.sets {
			args = append(args, "--set", s)
		}
		r := apptest.Run(t, args...)
		if r.Code != 1 {
			t.Errorf("%s: exit status %d\n%s%s", k.encoder, r.Code, r.Out, r.Err)
		}
		for _, s := range k.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", k.encoder, s, r.Err)
			}
		}
		if err := run.Free(out); err != nil {
			t.Errorf("%s: %v", k.encoder, err)
		}
	}
}

// TestDescendantsNameTheirParents begins a run with what another has published.
func TestDescendantsNameTheirParents(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	run := agentYAML(t, "{kind: timecnn, d_model: 8, n_layers: 1}")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	apptest.Succeed(t, "train", run, "--out", first, "-q")
	parent := find(t, filepath.Join(first, publish.StoreDir)+"//agent:"+publish.BestAlias)
	if len(parent.Manifest.Parents) != 0 || parent.Manifest.Golden == nil || parent.Manifest.DataDigest == "" || parent.Manifest.EnvStep == 0 {
		t.Errorf("manifest %+v", parent.Manifest)
	}
	apptest.Succeed(t, "train", run, "--out", second, "--init", filepath.Join(first, publish.StoreDir)+"//agent:"+publish.BestAlias, "--set", "seed=4", "-q")
	child := find(t, filepath.Join(second, publish.StoreDir)+"//agent:latest")
	if !slices.Equal(child.Manifest.Parents, []string{parent.Digest}) || *child.Manifest.Seed != 4 {
		t.Errorf("parents %v, expected %s", child.Manifest.Parents, parent.Digest)
	}
}

// TestAgentsNameTheirEncoder trains on an encoder that was published, into the store beside it or into
// the one that commands use, and on one that was not.
func TestAgentsNameTheirEncoder(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(shippedExperiments, "encoders", "torch_tcn_head.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"beside", "neither", "used"} {
		folder := filepath.Join(dir, name)
		encoder := filepath.Join(folder, "encoder.onnx")
		for _, err := range []error{os.MkdirAll(folder, 0o755), os.WriteFile(encoder, text, 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		store, want := map[string]string{"beside": filepath.Join(folder, publish.StoreDir), "used": filepath.Join(dir, "store")}[name], []string(nil)
		if store != "" {
			apptest.Succeed(t, "models", "publish", encoder, "--kind", "encoder", "--store", store)
			want = []string{find(t, store+"//encoder").Digest}
		}
		run := agentYAML(t, fmt.Sprintf(`{kind: file, path: %q, output: features, freeze: ["*"]}`, encoder))
		out := filepath.Join(folder, "run")
		apptest.Succeed(t, "train", run, "--out", out, "-q", "--set", "train.total_env_steps=20", "--set", "train.validation.every_steps=20", "--set", "publish.observations=16", "--store", filepath.Join(dir, "store"))
		if got := find(t, filepath.Join(out, publish.StoreDir)+"//agent").Manifest.Parents; !slices.Equal(got, want) {
			t.Errorf("%s: parents %v, expected %v", name, got, want)
		}
	}
}

func find(t *testing.T, ref string) artifact.Version {
	t.Helper()
	s, v, err := artifact.Find(ref, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return v
}
