package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// most is how many packages of this module the program links at most.
const most = 52

// foreign begin the import paths of whatever the program has no use for.
var foreign = []string{"github.com/onnxrl/onnxrl/envs/market", "github.com/onnxrl/onnxrl/envs/scml", "github.com/onnxrl/onnxrl/agents/scml", "github.com/onnxrl/onnxrl/agents/livetrade",
	"github.com/apache/arrow", "google.golang.org/grpc", "github.com/aws", "oras.land", "github.com/redis", "github.com/segmentio", "go.temporal.io"}

// TestProgram trains, evaluates and decides, with a shorter document in the place of the shipped one.
func TestProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "env: {kind: cartpole}\nagent: {kind: ppo, n_steps: 32, batch_size: 64, n_epochs: 1, hidden: [4]}\ntrain: {num_envs: 2, total_env_steps: 128}\neval: {episodes: 1}\npublish: {observations: 8, allow_ties: true}\n"
	if err := os.WriteFile("cartpole_ppo", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = out
	main()
	os.Stdout = stdout
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile("out")
	if err != nil || !regexp.MustCompile(`^mean return \d+ action [01]\n$`).Match(said) {
		t.Errorf("it says %q, %v", said, err)
	}
}

// TestPageBegins compares the program with the first code of docs/embed.md.
func TestPageBegins(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "embed.md"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	if code, _, _ = strings.Cut(code, "```"); code != string(program) {
		t.Errorf("docs/embed.md begins with\n%s\nexpected\n%s", code, program)
	}
	if n := strings.Count(string(program), "\n"); n > 30 {
		t.Errorf("%d lines, expected at most 30", n)
	}
}

// TestLinks: the program links nothing that it does not name.
func TestLinks(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, p := range strings.Fields(string(list)) {
		for _, f := range foreign {
			if strings.HasPrefix(p, f) {
				t.Errorf("it links %s", p)
			}
		}
		if strings.HasPrefix(p, "github.com/onnxrl/onnxrl/") {
			own++
		}
	}
	t.Logf("%d packages of ours", own)
	if own > most {
		t.Errorf("%d packages of this module, expected at most %d", own, most)
	}
}
