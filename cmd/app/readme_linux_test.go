package app

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const shippedExperiments = "../../configs/experiments"

// readmeShims are the programs that the commands of the README start. They run what is written;
// only what takes long is made shorter, and the port is a free one.
var readmeShims = map[string]string{
	"onnxrl": `case "$1" in
demo) set -- "$@" --env-steps 400 ;;
train) set -- "$@" --set train.total_env_steps=400 --set train.validation.every_steps=200 --set 'publish={observations: 64, allow_ties: true}' ;;
serve) set -- "$@" --http "127.0.0.1:$PORT" --grpc "" ;;
esac
exec "$PROGRAM" "$@"`,
	"go": `case "$*" in
"run ./cmd/onnxrl "*) shift 2; exec onnxrl "$@" ;;
"install ./cmd/onnxrl") exec test -f "$ROOT/cmd/onnxrl/main.go" ;;
"test ./...") exec test -f "$ROOT/go.mod" ;; # which is what is running
esac
echo "go $*: not a command that this test knows" >&2
exit 1`,
	"curl": `n=$#
while [ "$n" -gt 0 ]; do
	a=$(printf %s "$1" | sed "s/^localhost:8000/127.0.0.1:$PORT/")
	shift
	set -- "$@" "$a"
	n=$((n - 1))
done
exec "$CURL" "$@"`,
}

// TestReadmeCommands runs every command of the README as it is written, in order, where nothing but
// the shipped configurations and the files of the reader are.
func TestReadmeCommands(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("the README's requests are made by curl: ", err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(root, "configs"), filepath.Join(dir, "configs")); err != nil {
		t.Fatal(err)
	}
	for name, text := range sorted.All(readmeShims) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What the Python line above the commands of fit writes, and a table with three classes.
	rows := apptest.Table(64)
	for i := range rows {
		rows[i][3] = float32(i % 3)
	}
	for name, from := range sorted.All(map[string]string{"net.onnx": apptest.MLPOf(t, 3), "table.parquet": apptest.ParquetFile(t, rows)}) {
		if err := os.Rename(from, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	self := apptest.Program(t)
	env := append(self.Env, "PATH="+bin+":"+os.Getenv("PATH"), "PROGRAM="+self.Path, "ROOT="+root, "CURL="+curl, "PORT="+port, "no_proxy=*")

	printed, commands := "", 0
	for _, b := range fences(t, filepath.Join(root, "README.md")) {
		if b.language != "" || !regexp.MustCompile(`^(go|onnxrl|curl) `).MatchString(b.text) {
			continue
		}
		for line := range strings.Lines(b.text) {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = dir, env
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			background := regexp.MustCompile(`&\s*(#.*)?$`).MatchString(strings.TrimSpace(line))
			if background {
				// Its output would keep the shell's pipe open.
				cmd.Stdout, cmd.Stderr = nil, nil
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				t.Cleanup(func() {
					if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
						t.Error(err)
					}
				})
			}
			if err := cmd.Run(); err != nil {
				t.Errorf("line %d of README.md: %s%v\n%s", b.line, line, err, out.String())
			}
			printed += out.String()
			commands++
		}
	}
	if commands != 12 {
		t.Errorf("%d commands ran", commands)
	}
	for _, want := range []string{"runs/demo-1/best.onnx", "equal-weight buy-and-hold", "PPO     100", `{"ready":true}`, `"platform"`, `"outputs"`} {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
	for _, file := range []string{"trained.onnx", "tuned.onnx"} {
		m, err := loadModel(filepath.Join(dir, file))
		if err != nil || m.Graph.Inputs()[0].Name != "x" {
			t.Errorf("%s: %v", file, err)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprint("directory ", dir))
	}
}

// TestTutorialSCML runs every command of docs/scml.md as it is written, in order, in an empty
// folder. What is in Python is for the league's own program, which is none of ours.
func TestTutorialSCML(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin, self := t.TempDir(), t.TempDir(), apptest.Program(t)
	if err := os.Symlink(self.Path, filepath.Join(bin, "onnxrl")); err != nil {
		t.Fatal(err)
	}
	printed, commands := "", 0
	for _, b := range fences(t, filepath.Join(root, "docs/scml.md")) {
		if b.language != "" {
			continue // for the league's own program
		}
		for line := range strings.Lines(b.text) {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = dir, append(self.Env, "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("line %d of docs/scml.md: %s%v\n%s", b.line, line, err, out)
			}
			printed += string(out)
			commands++
		}
	}
	if commands != 27 {
		t.Errorf("%d commands ran", commands)
	}
	for _, want := range []string{"units of product 2, from rows to columns", "worst error", "6 of 6 worlds", "no problems", "micro: 4670 samples", "published runs/manager", "first  penguin", "second  second:no-coordinator", "the agent is ", "is worth", "the Python package lita"} {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
}

type fence struct {
	language, text string
	line           int
}

// fences returns the blocks of code of a Markdown file.
func fences(t *testing.T, path string) (out []fence) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var open *fence
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		language, mark := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case mark && open == nil:
			open = &fence{language: language, line: n + 1}
		case mark:
			out, open = append(out, *open), nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Fatalf("%s: the block of line %d has no end", path, open.line)
	}
	return out
}

// TestCommandsInText finds every command and flag that the README and docs name between backquotes,
// and that of the experiments and their comments.
func TestCommandsInText(t *testing.T) {
	files := []string{"../../README.md", shippedExperiments + "/README.md"}
	for _, pattern := range []string{shippedExperiments + "/*.yaml", "../../docs/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v %v", pattern, more, err)
		}
		files = append(files, more...)
	}
	named := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".md") {
			for _, b := range fences(t, path) {
				for _, line := range strings.Split(strings.ReplaceAll(b.text, "&&", "\n"), "\n") {
					text = append(text, "\n`"+strings.TrimSpace(line)+"`"...)
				}
			}
		}
		for _, m := range regexp.MustCompile("(?m)`onnxrl ([^`\n]+)`|^#   onnxrl (.+)$").FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(strings.ReplaceAll(m[1]+m[2], `\|`, "|"))
			cmds := []*cobra.Command{(&app{}).command()}
			for len(words) > 0 && cmds[0].HasSubCommands() {
				if named := func(c *cobra.Command) bool { return c.Name() == words[0] }; cmds[0].Runnable() && !slices.ContainsFunc(cmds[0].Commands(), named) {
					break // A command that has others beside its own arguments.
				}
				var next []*cobra.Command
				for _, name := range strings.Split(words[0], "|") {
					i := slices.IndexFunc(cmds[0].Commands(), func(c *cobra.Command) bool { return c.Name() == name })
					if i < 0 {
						t.Errorf("%s: %s: there is no command %q", path, m[0], name)
						continue
					}
					next = append(next, cmds[0].Commands()[i])
				}
				if len(next) == 0 {
					break
				}
				cmds, words = next, words[1:]
			}
			for _, w := range words {
				name := regexp.MustCompile(`^\[?--([a-z-]+)`).FindStringSubmatch(w)
				if name == nil {
					continue
				}
				for _, c := range cmds {
					if c.InheritedFlags(); c.Flag(name[1]) == nil {
						t.Errorf("%s: %s: %s has no flag --%s", path, m[0], c.CommandPath(), name[1])
					}
				}
			}
			named++
		}
	}
	if named < 30 {
		t.Errorf("%d commands found", named)
	}
}
