package observability

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/metrics/names"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const documentation = root + "/docs/observability.md"

// between are the parts of the documentation before, between and behind the marks of the table.
func between(t *testing.T) (before, table, behind string) {
	t.Helper()
	text, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "<!-- names -->\n")
	table, behind, more := strings.Cut(rest, "<!-- end of names -->")
	if !ok || !more {
		t.Fatal("docs/observability.md has no marks of the table")
	}
	return before, table, behind
}

// TestTable: the table of the documentation is that of the code.
func TestTable(t *testing.T) {
	var b strings.Builder
	n := 0
	for _, part := range names.Parts() {
		fmt.Fprintf(&b, "\n### %s%s\n\n| name | type | labels | meaning |\n|---|---|---|---|\n", strings.ToUpper(string(part[:1])), part[1:])
		for _, m := range names.All() {
			if m.Part != part {
				continue
			}
			labels := strings.Join(m.Labels, ", ")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help)
			n++
		}
	}
	b.WriteString("\n")
	before, table, behind := between(t)
	if *update {
		if err := os.WriteFile(documentation, []byte(before+"<!-- names -->\n"+b.String()+"<!-- end of names -->"+behind), 0o644); err != nil {
			t.Fatal(err)
		}
		table = b.String()
	}
	if table != b.String() {
		t.Error("the table of docs/observability.md is not that of runtime/metrics/names: go test ./cmd/internal/apptest/observability -run Table -update")
	}
	if n != len(names.All()) {
		t.Errorf("%d of %d metrics", n, len(names.All()))
	}
}

// TestDocumentedCommands runs every command of docs/observability.md as it is written, in order, in
// a folder of its own that has the shipped configurations. Only the ports are free ones, which are
// put in their places. Without a Prometheus its programs' commands are left out, which the test
// says.
func TestDocumentedCommands(t *testing.T) {
	dir, bin, self := t.TempDir(), t.TempDir(), apptest.Program(t)
	at, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range sorted.All(map[string]string{filepath.Join(bin, "onnxrl"): self.Path, filepath.Join(dir, "configs"): filepath.Join(at, "configs")}) {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	path := bin
	if program := os.Getenv(prometheusVar); program != "" {
		path += ":" + filepath.Dir(program)
	}
	_, err = exec.LookPath("promtool")
	there := err == nil || os.Getenv(prometheusVar) != ""
	ports := strings.NewReplacer(":9464", ":"+freePort(t), ":9090", ":"+freePort(t))
	text, _, _ := between(t)
	printed, ran, left := "", 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		body := ports.Replace(block[2])
		if block[1] == "yaml" {
			if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for line := range strings.Lines(body) {
			if !there && !strings.HasPrefix(line, "onnxrl ") && !strings.Contains(line, "/metrics") {
				left++
				continue
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = dir, append(self.Env, "PATH="+path+":"+os.Getenv("PATH"), "no_proxy=*")
			if strings.HasSuffix(strings.TrimSpace(line), "&") {
				err = goesOn(t, cmd)
			} else {
				var out []byte
				out, err = cmd.CombinedOutput()
				printed += string(out)
			}
			if err != nil {
				t.Fatalf("%s%v\n%s", line, err, printed)
			}
			ran++
		}
	}
	if left > 0 {
		t.Logf("%s is not set, and there is no promtool: %d commands were left out", prometheusVar, left)
	}
	if ran+left != 8 || left > 6 {
		t.Errorf("%d commands ran, %d were left out", ran, left)
	}
	says := []string{"# TYPE go_goroutines gauge"}
	if there {
		says = append(says, "Ready.", "SUCCESS: 23 rules found", "} => 1 @[")
	}
	for _, want := range says {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
}

// goesOn runs a command that leaves a program behind, which is ended, and waited for, with the
// test.
func goesOn(t *testing.T, cmd *exec.Cmd) error {
	t.Helper()
	// The pipe ends with the last program that holds it.
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = to, to, &syscall.SysProcAttr{Setpgid: true}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, from)
	}()
	err = errors.Join(cmd.Run(), to.Close())
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
		<-ended
		from.Close()
	})
	return err
}

// freePort is a port of this machine that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
