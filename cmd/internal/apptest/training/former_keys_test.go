package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"

	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// said counts the notes on standard error that name a key.
func said(r apptest.Result, key string) int {
	n := 0
	for line := range strings.Lines(r.Err) {
		if strings.HasPrefix(line, "onnxrl: note: ") && strings.Contains(line, key) {
			n++
		}
	}
	return n
}

// TestFormerKeys trains, tunes and ablates a document with keys of an earlier program: the
// command says so once, and the written document has the keys of now.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	config, dir := apptest.Write(t, "tiny.yaml", apptest.FormerKeys), filepath.Join(t.TempDir(), "run")
	r := apptest.Run(t, "train", config, "-q", "--engine", portable.Name, "--out", dir, "--set", "agent.ent_coef=0.03", "--set", "agent.value_coef=0.7")
	if r.Code != 0 || said(r, "tiny.yaml:5:3: agent.rollout_steps is called agent.n_steps now") != 1 || said(r, "--set agent.value_coef=0.7: agent.value_coef is called agent.vf_coef now") != 1 || said(r, "") != 5 {
		t.Errorf("status %d:\n%s", r.Code, r.Err)
	}
	text := apptest.ReadText(t, filepath.Join(dir, run.ConfigFile))
	for _, want := range []string{"\n  n_steps: 5\n", "\n  ent_coef: 0.03\n", "\n  vf_coef: 0.7\n", "\n  learning_rate: 0.001\n", "\n  critic_learning_rate: 0.002\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "rollout_steps") || strings.Contains(text, "lr_actor") {
		t.Errorf("former keys in\n%s", text)
	}
	apptest.Refuse(t, []string{"train", config, "--set", "agent={kind: a2c, rollout_steps: 4, n_steps: 5}"}, "agent.rollout_steps", "is called agent.n_steps now, which is given too")

	search := apptest.Write(t, "search.yaml", apptest.FormerKeys+"tune:\n  trials: 2\n  startup_trials: 1\n  space: {agent.entropy_coef: {kind: uniform, low: 0.1, high: 0.2}}\n")
	dir = filepath.Join(t.TempDir(), "search")
	if r := apptest.Run(t, "tune", search, "-q", "--engine", portable.Name, "--out", dir); r.Code != 0 || said(r, "value of agent.entropy_coef: agent.entropy_coef is called agent.ent_coef now") != 1 {
		t.Fatalf("status %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	if text := apptest.ReadText(t, filepath.Join(dir, "best.yaml")); !strings.Contains(text, "\n  ent_coef: 0.1") || strings.Contains(text, "entropy_coef") {
		t.Errorf("found\n%s", text)
	}

	study := apptest.Write(t, "study.yaml", "base: "+config+"\nseeds: [1]\nmetrics: [mean_reward]\nset: {train.validation: {every_steps: 0}}\nfactors: {entropy: {low: {agent.entropy_coef: 0.01}, high: {agent.ent_coef: 0.5}}}\n")
	dir = filepath.Join(t.TempDir(), "study")
	if r := apptest.Run(t, "ablate", study, "-q", "--engine", portable.Name, "--out", dir); r.Code != 0 || said(r, "entropy_coef is called") != 2 {
		t.Fatalf("status %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	for cell, want := range sorted.All(map[string]string{"base": "0.01", "entropy=high": "0.5"}) {
		text, err := os.ReadFile(filepath.Join(dir, cell, "seed-1", run.ConfigFile))
		if err != nil || !strings.Contains(string(text), "\n  ent_coef: "+want+"\n") {
			t.Errorf("%s: %v\n%s", cell, err, text)
		}
	}
}
