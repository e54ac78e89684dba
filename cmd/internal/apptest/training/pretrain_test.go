package training

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestPretrainedTimesNet pretrains a TimesNet that the document describes on windows of the market,
// and trains PPO and SAC with adapters over it: the base stays what the file has, bit by bit, its
// parameters are counted, and what is published proves itself.
func TestPretrainedTimesNet(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := t.TempDir()
	windows, encoder := filepath.Join(dir, "windows.parquet"), filepath.Join(dir, "encoder.onnx")
	market := agentYAML(t, fmt.Sprintf(`{kind: file, path: %q, output: features}`, encoder))
	apptest.Succeed(t, "data", "windows", market, "--out", windows)
	fit := []string{"fit", filepath.Join(shippedExperiments, "pretrain_timesnet.yaml"), "--data", windows, "--batch", "16", "--seed", "5", "--json", "-q",
		"--set", "network.window=[8, 29]", "--set", "network.encoder={kind: timesnet, d_model: 4, d_ff: 4, n_layers: 2, n_kernels: 2, top_k: 2}"}
	// The embedding, the normalisation that the blocks share, two inceptions each, and heads of one
	// value and of five.
	const base, heads = 3*29*4 + 2*4 + 2*2*(4*4*(1+9)+2*4), 6 * (4 + 1)
	before, after := filepath.Join(dir, "before.onnx"), encoder
	for out, rate := range sorted.All(map[string]string{before: "0", after: "0.01"}) {
		s := apptest.Decoded[fitReport](t, apptest.Succeed(t, append(fit, "--lr", rate, "--epochs", "2", "--out", out)...))
		if s.Trainable != base+heads || s.Frozen != 0 || s.Steps == 0 || s.Validation == nil || len(s.Metrics) != 2 {
			t.Errorf("fit: %+v", s)
		}
	}
	pretrained, fresh := apptest.Weights(t, after), apptest.Weights(t, before)
	for name, w := range sorted.All(pretrained) {
		if !strings.HasPrefix(name, "const/") && slices.Equal(w, fresh[name]) {
			t.Errorf("pretraining did not change %s", name)
		}
	}

	for name, agent := range sorted.All(map[string]string{
		"ppo": "{kind: ppo, n_steps: 20, batch_size: 10, hidden: [8], lora: {rank: 8}",
		"sac": "{kind: sac, hidden: [8], batch_size: 8, learning_starts: 20, train_freq: 4, buffer_size: 80, lora: {rank: 8}",
	}) {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			said := apptest.Run(t, "train", market, "--out", out, "--set", "env.actions=weights", "--set", fmt.Sprintf("agent=%s, encoder: {kind: file, path: %q, output: features}}", agent, encoder))
			if said.Code != 0 {
				t.Fatalf("exit status %d\n%s%s", said.Code, said.Out, said.Err)
			}
			var l run.Lineage
			if err := json.Unmarshal([]byte(apptest.ReadText(t, filepath.Join(out, "lineage.json"))), &l); err != nil {
				t.Fatal(err)
			}
			if l.Parameters == nil || l.Parameters.Base != base || l.Parameters.Adapters == 0 || l.Parameters.Other == 0 {
				t.Fatalf("parameters %+v", l.Parameters)
			}
			apptest.Says(t, said.Out+said.Err, l.Parameters.String())
			kept := parameters(t, out, "base")
			if len(kept) != 19 {
				t.Errorf("%d parameters are the base's, expected 19", len(kept))
			}
			for name, w := range sorted.All(kept) {
				if !slices.Equal(w, pretrained[name[len("encoder."):]]) {
					t.Errorf("%s has changed", name)
				}
			}
			for name, w := range sorted.All(parameters(t, out, "trainable")) {
				// B begins at 0.
				if filepath.Ext(name) == ".B" && !slices.ContainsFunc(w, func(x float32) bool { return x != 0 }) {
					t.Errorf("%s has not been trained", name)
				}
			}
			apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(out, publish.StoreDir)), "ok")
		})
	}

	for _, k := range []struct {
		set  string
		says []string
	}{
		{"network.encoder.kind=timesnett", []string{"network.encoder.kind", "did you mean", "timesnet"}},
		{"network.encoder.d_modell=4", []string{"network.encoder.d_modell"}},
		{"network.encoder.dropout=0.1", []string{"network.encoder", "dropout of 0.1 is not supported"}},
		{"network.encoder.top_k=5", []string{"network.encoder", "[8 29]", "top_k: 5 needs a window of 10 steps"}},
		{"tie=[norm.*]", []string{"tie", "is for files"}},
		{"network.window=[8]", []string{"network.window", "expected two numbers"}},
		{"network.window=[8, 28]", []string{"window", "232", "224"}},
		{"network.outputs={features: 5}", []string{"network.outputs.features", "give it another"}},
		{"network.outputs={volatility: 0}", []string{"network.outputs.volatility"}},
		{"network.outputs={volatility: 1}", []string{"returns"}},
	} {
		apptest.Refuse(t, append(fit, "--set", k.set), k.says...)
	}
	both := apptest.Run(t, append(fit, "--model", encoder)...)
	apptest.Says(t, both.Err, "network: is instead of model", "encoder.onnx")
	if both.Code != 1 {
		t.Errorf("a model and a network: exit status %d", both.Code)
	}
}
