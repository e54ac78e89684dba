package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"

	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// formerKeys is tiny, and written in keys of an earlier program.
const formerKeys = `seed: 1
env: {kind: corridor, cells: 6}
agent:
  kind: a2c
  rollout_steps: 5
  lr_actor: 0.001
  lr_critic: 0.002
  entropy_coef: 0.01
  hidden: [4]
train: {num_envs: 2, total_env_steps: 100, threads: 1, validation: {every_steps: 50}}
publish: {when: never}
`

// said counts the notes on standard error that name a key.
func said(r result, key string) int {
	n := 0
	for line := range strings.Lines(r.err) {
		if strings.HasPrefix(line, "onnxrl: note: ") && strings.Contains(line, key) {
			n++
		}
	}
	return n
}

// TestFormerKeys trains, tunes and ablates a document with keys of an earlier program: it is told
// once, and what is written has the keys of now.
func TestFormerKeys(t *testing.T) {
	t.Parallel()
	config, dir := write(t, "tiny.yaml", formerKeys), filepath.Join(t.TempDir(), "run")
	r := onnxrl(t, "train", config, "-q", "--engine", portable.Name, "--out", dir, "--set", "agent.ent_coef=0.03", "--set", "agent.value_coef=0.7")
	if r.code != 0 || said(r, "tiny.yaml:5:3: agent.rollout_steps is called agent.n_steps now") != 1 || said(r, "--set agent.value_coef=0.7: agent.value_coef is called agent.vf_coef now") != 1 || said(r, "") != 5 {
		t.Errorf("status %d:\n%s", r.code, r.err)
	}
	text := readText(t, filepath.Join(dir, run.ConfigFile))
	for _, want := range []string{"\n  n_steps: 5\n", "\n  ent_coef: 0.03\n", "\n  vf_coef: 0.7\n", "\n  learning_rate: 0.001\n", "\n  critic_learning_rate: 0.002\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "rollout_steps") || strings.Contains(text, "lr_actor") {
		t.Errorf("former keys in\n%s", text)
	}
	refuse(t, []string{"train", config, "--set", "agent={kind: a2c, rollout_steps: 4, n_steps: 5}"}, "agent.rollout_steps", "is called agent.n_steps now, which is given too")

	search := write(t, "search.yaml", formerKeys+"tune:\n  trials: 2\n  startup_trials: 1\n  space: {agent.entropy_coef: {kind: uniform, low: 0.1, high: 0.2}}\n")
	dir = filepath.Join(t.TempDir(), "search")
	if r := onnxrl(t, "tune", search, "-q", "--engine", portable.Name, "--out", dir); r.code != 0 || said(r, "value of agent.entropy_coef: agent.entropy_coef is called agent.ent_coef now") != 1 {
		t.Fatalf("status %d:\n%s%s", r.code, r.out, r.err)
	}
	if text := readText(t, filepath.Join(dir, "best.yaml")); !strings.Contains(text, "\n  ent_coef: 0.1") || strings.Contains(text, "entropy_coef") {
		t.Errorf("found\n%s", text)
	}

	study := write(t, "study.yaml", "base: "+config+"\nseeds: [1]\nmetrics: [mean_reward]\nset: {train.validation: {every_steps: 0}}\nfactors: {entropy: {low: {agent.entropy_coef: 0.01}, high: {agent.ent_coef: 0.5}}}\n")
	dir = filepath.Join(t.TempDir(), "study")
	if r := onnxrl(t, "ablate", study, "-q", "--engine", portable.Name, "--out", dir); r.code != 0 || said(r, "entropy_coef is called") != 2 {
		t.Fatalf("status %d:\n%s%s", r.code, r.out, r.err)
	}
	for cell, want := range sorted.All(map[string]string{"base": "0.01", "entropy=high": "0.5"}) {
		text, err := os.ReadFile(filepath.Join(dir, cell, "seed-1", run.ConfigFile))
		if err != nil || !strings.Contains(string(text), "\n  ent_coef: "+want+"\n") {
			t.Errorf("%s: %v\n%s", cell, err, text)
		}
	}
}
