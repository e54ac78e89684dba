package studies

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestEvolve: a reduced form of the shipped search, told as JSON, a table and a tree; one that is
// stopped by SIGINT or killed gives the same log. Flags that contradict each other are refused.
func TestEvolve(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	search := apptest.Write(t, "search.yaml", `
base: cartpole_ppo
set: {agent.n_epochs: 2, eval.episodes: 2}
population: 8
interval_steps: 512
generations: 3
strategy: {kind: mf_pbt, frequencies: [1]}
probe: 16
space:
  agent.learning_rate: {kind: loguniform, low: 1.0e-5, high: 1.0e-2}
  agent.ent_coef: {kind: loguniform, low: 1.0e-3, high: 1.0e-1}
`)
	dir := filepath.Join(t.TempDir(), "ref")
	sum := apptest.Decode[evolve.Summary](t, apptest.Succeed(t, "evolve", "-q", "--json", search, "--population", "4", "--out", dir))
	if sum.Generations != 3 || sum.EnvSteps != 4*3*512 || len(sum.Members) != 4 || sum.Clones != 2 || len(sum.MAPD) != 3 {
		t.Errorf("%+v", sum)
	}
	want := apptest.ReadBytes(t, filepath.Join(dir, evolve.LogFile))
	for name, sig := range sorted.All(map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "kill -9": os.Kill}) {
		dir := filepath.Join(t.TempDir(), "search")
		code, text := apptest.Signalled(t, filepath.Join(dir, "generation-0001", "member-002", "checkpoints", "ckpt-"), 1, sig, "evolve", "-q", search, "--population", "4", "--out", dir)
		switch {
		case sig == os.Kill && code != -1:
			t.Fatalf("a killed process has exit status %d", code)
		case sig != os.Kill && (code != apptest.Interrupted || !strings.Contains(text, "continue with: onnxrl evolve --resume "+dir)):
			t.Fatalf("%s: exit status %d, expected %d\n%s", name, code, apptest.Interrupted, text)
		}
		out := apptest.Succeed(t, "evolve", "-q", "--resume", dir)
		if got := apptest.ReadBytes(t, filepath.Join(dir, evolve.LogFile)); string(got) != string(want) {
			t.Errorf("%s:\n%s\nexpected\n%s", name, got, want)
		}
		for _, says := range []string{"mean_reward", "agent.learning_rate", "3 of 3 generations, 6144 env steps; 2 clones", "best member " + dir} {
			if !strings.Contains(out, says) {
				t.Errorf("%s: the table lacks %q:\n%s", name, says, out)
			}
		}
	}
	tree := apptest.Succeed(t, "evolve", "tree", dir)
	for _, says := range []string{"MAPD", "begin 0  generation 0", "\n  clone ", "agent.ent_coef (least, median, most)"} {
		if !strings.Contains(tree, says) {
			t.Errorf("the tree lacks %q:\n%s", says, tree)
		}
	}
	if told := apptest.Decode[evolve.Tree](t, apptest.Succeed(t, "evolve", "tree", dir, "--json")); len(told.Records) != 3 || !reflect.DeepEqual(told.Summary.Best, sum.Best) {
		t.Errorf("%+v", told)
	}
	n := 0
	for _, c := range []struct {
		says string
		args []string
	}{
		{"the document of a search is needed", nil},
		{"leave --out, --population and --set out", []string{"--resume", dir, "--population", "8"}},
		{"holds a search already", []string{search, "--out", dir}},
		{"does not divide", []string{search, "--population", "6"}},
		{"is an experiment and not a search", []string{"cartpole_ppo"}},
		{"it holds no search", []string{"--resume", t.TempDir()}},
		{"it holds no search", []string{"tree", t.TempDir()}},
	} {
		apptest.Refuse(t, append([]string{"evolve"}, c.args...), c.says)
		n++
	}
	if n != 7 {
		t.Errorf("%d refusals", n)
	}
}
