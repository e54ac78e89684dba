package app

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestStandardInput: - is the document on standard input for every command that takes one.
func TestStandardInput(t *testing.T) {
	t.Parallel()
	owners, err := fs.ReadFile(configs.Shipped(), "qtmrl_owner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	base := filepath.Join(filepath.Dir(apptest.AblationFiles(t, apptest.AblationStudy, apptest.AblationBase)), "base.yaml")
	study := strings.Replace(apptest.AblationStudy, "base.yaml", base, 1)
	cases := []struct {
		args   []string
		text   string
		code   int
		prints string
	}{
		{[]string{"config", "check", "-"}, "env: {kind: cartpole}\nagent: {kind: ppo}\n", 0, "-: nothing is wrong with it"},
		{[]string{"config", "check", "-"}, "env: {kind: cartpole}\nagent: {kind: ppo, gama: 1}\n", 1, "standard input:2:20: agent.gama: unknown key"},
		{[]string{"config", "check", "-", "--set", "train.total_env_steps=40"}, study, 0, "-: nothing is wrong with it"},
		{[]string{"config", "convert", "-"}, string(owners), 0, "\n  kind: a2c\n"},
		{[]string{"train", "-", "-q", "--engine", portable.Name, "--out", at("run"), "--no-publish"}, apptest.FormerKeys, 0, "run directory " + at("run")},
		{[]string{"train", "-"}, "env: {kind: cartpol}\nagent: {kind: ppo}\n", 1, "standard input:1:13: env.kind: unknown kind"},
		{[]string{"tune", "-", "-q", "--engine", portable.Name, "--trials", "2", "--out", at("search")}, apptest.ReadText(t, apptest.TuneYAML(t)), 0, at(filepath.Join("search", tune.BestFile))},
		{[]string{"tune", "-"}, "env: {kind: cartpole}\nagent: {kind: ppo}\ntune: {trails: 2}\n", 1, "standard input:3:8: tune.trails: unknown key"},
		{[]string{"ablate", "-", "-q", "--engine", portable.Name, "--dry-run", "--calibrate", "0"}, study, 0, "6 runs of 3 cells to train"},
		{[]string{"ablate", "-"}, "base: cartpole_ppo\nfactor: {}\n", 1, "standard input:2:1: factor: unknown key"},
		{[]string{"fit", "-"}, "epoch: 2\n", 1, "standard input:1:1: epoch: unknown key"},
		{[]string{"serve", "-"}, "htp: localhost:0\n", 1, "standard input:1:1: htp: unknown key"},
		{[]string{"data", "warmup", "-"}, apptest.AblationBase, 0, "warm"},
		{[]string{"data", "inspect", "-"}, apptest.AblationBase, 0, "1 symbol"},
		{[]string{"evaluate", scaledFile(t, 2), "--config", "-"}, "env: {kind: cartpol}\nagent: {kind: ppo}\n", 1, "standard input:1:13: env.kind: unknown kind"},
	}
	for _, c := range cases {
		var text bytes.Buffer
		code := execute(t.Context(), kinds.All(), c.args, strings.NewReader(c.text), &text, &text)
		if code != c.code || !strings.Contains(text.String(), c.prints) {
			t.Errorf("%v: status %d, expected %d and %q in\n%s", c.args, code, c.code, c.prints, text.String())
		}
	}
	if len(cases) != 15 {
		t.Errorf("%d cases", len(cases))
	}
	// The names of a run of standard input, and of a study.
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(at("run"), run.LineageFile), &l); err != nil || l.Name != experiment.Name(experiment.StandardInput) || l.Name != "stdin" {
		t.Errorf("%v, the run is called %q", err, l.Name)
	}
	if _, err := os.Stat("runs"); err == nil {
		t.Error("a folder runs was made")
	}
}
