package observability

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/metrics"
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
	for _, part := range metrics.Parts() {
		fmt.Fprintf(&b, "\n### %s%s\n\n| name | type | labels | meaning |\n|---|---|---|---|\n", strings.ToUpper(string(part[:1])), part[1:])
		for _, m := range metrics.All() {
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
		t.Error("the table of docs/observability.md is not that of runtime/metrics: go test ./cmd/internal/apptest/observability -run Table -update")
	}
	if n != len(metrics.All()) {
		t.Errorf("%d of %d metrics", n, len(metrics.All()))
	}
}

// TestDocumentedCommands runs every command of docs/observability.md as it is written, in order, in
// a folder of its own that has the shipped configurations. Only the ports are those that the system
// gives, which programs say, Prometheus at the level info only. Without a Prometheus its programs'
// commands are left out, which the test says.
func TestDocumentedCommands(t *testing.T) {
	longtest.Nightly(t)
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
	// said are the addresses that programs have said, each behind the one that is written.
	var said []string
	programs := []struct {
		listens, written string
		says             *regexp.Regexp
	}{{"--metrics :9464 ", "localhost:9464", address}, {"--web.listen-address=127.0.0.1:9090 ", "localhost:9090", listensOn}}
	text, _, _ := between(t)
	printed, ran, left := "", 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if block[1] == "yaml" {
			text := strings.NewReplacer(said...).Replace(block[2])
			if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for written := range strings.Lines(block[2]) {
			line := strings.NewReplacer(said...).Replace(written)
			if !there && !strings.HasPrefix(line, "onnxrl ") && !strings.Contains(line, "/metrics") {
				left++
				continue
			}
			background := strings.HasSuffix(written, " &\n")
			if background {
				line = "exec " + strings.NewReplacer(" &\n", "", ":9464", ":0", ":9090", ":0", "--log.level=warn", "--log.level=info").Replace(line)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", line)
			cmd.Dir, cmd.Env = dir, append(self.Env, "PATH="+path+":"+os.Getenv("PATH"), "no_proxy=*")
			if background {
				r := apptest.Launch(t, cmd)
				for _, p := range programs {
					if strings.Contains(written, p.listens) {
						said = append(said, p.written, r.Finds(p.says))
					}
				}
			} else if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s%v\n%s%s", written, err, printed, out)
			} else {
				printed += string(out)
			}
			ran++
		}
	}
	if left > 0 {
		t.Logf("%s is not set, and there is no promtool: %d commands were left out", prometheusVar, left)
	}
	if ran+left != 8 || left > 6 || there && len(said) != 2*len(programs) {
		t.Errorf("%d commands ran, %d were left out, listening: %q", ran, left, said)
	}
	wants := []string{"# TYPE go_goroutines gauge"}
	if there {
		wants = append(wants, "Ready.", "SUCCESS: 23 rules found", "} => 1 @[")
	}
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
}
