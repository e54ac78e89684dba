package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an environment of Python does wrong ends a run with an error that names environment, step, field and what was expected. Without a Python the program says that.
func TestTrainBadPythonEnvironments(t *testing.T) {
	fake, err := filepath.Abs(filepath.Join("..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", fake)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	dir := t.TempDir()
	train := func(env string) []string {
		path := filepath.Join(dir, "run.yaml")
		text := "seed: 1\nenv: " + env + "\nagent: {kind: ppo, rollout_steps: 8, batch_size: 8, hidden: [4]}\ntrain: {num_envs: 2, total_env_steps: 64, threads: 1, validation: {every_steps: 0}}\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"train", path, "-q", "--engine", "portable", "--out", filepath.Join(dir, "run")}
	}
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("ONNXRL_PYTHON") == "" {
		refuse(t, train("{kind: gymnasium, id: Walk-v0, python: python3}"), "no Python interpreter")
		return
	}
	cases := 0
	for how, says := range map[string]string{
		"nan observation": `observation "observation": element 0 is NaN, expected a finite number`,
		"nan at the end":  `final observation "observation": element 0 is +Inf, expected a finite number`,
		"nan reward":      "the reward is NaN, expected a finite number",
		"shape":           "observation has shape (2,), expected (1,)",
		"no observation":  "observation is None, expected an array of shape (1,)",
		"old":             "step returns 4 values, expected observation, reward, terminated, truncated and info",
		"no end":          "terminated is None and truncated False, expected a truth value each",
	} {
		r := onnxrl(t, train(`{kind: gymnasium, id: Rude-v0, workers: 1, kwargs: {how: "`+how+`"}}`)...)
		if want := "step Rude-v0: environment 0, step 3 of episode 0: " + says + "\n"; r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit status %d, and it is not said that %s:\n%s", how, r.code, want, r.err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		cases++
	}
	if cases != 7 {
		t.Errorf("%d cases", cases)
	}
}
