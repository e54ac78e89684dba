package training

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
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// folderVar names the folder that .ci/snippets prints, with an environment for each page.
const folderVar = "ONNXRL_SNIPPETS"

// pages are those with Python snippets: what there has to be in the folder that a snippet runs in, by
// its number, and how many there are.
var pages = map[string]struct {
	snippets int
	before   func(t *testing.T, snippet int)
}{
	"scml": {1, func(t *testing.T, _ int) {
		write(t, "agent/agent.json", `{"layout": 1, "goal": 4, "horizon": 40}`)
		apptest.Succeed(t, "export", "agent", "--format", "scml", "--engine", portable.Name, "--out", "lita")
	}},
	"models": {2, func(t *testing.T, snippet int) {
		if snippet == 0 {
			return
		}
		// The commands between them.
		table := "f0,f1,f2,f3,label\n"
		for i := range 40 {
			table += fmt.Sprintf("%d,%d,%d,%d,%d\n", i%2, i%3, i%5, i%7, i%3)
		}
		write(t, "table.csv", table)
		apptest.Succeed(t, "fit", "--model", "net.onnx", "--data", "table.csv", "--input", "x=f*", "--target", "y=label", "--loss", "cross_entropy", "--epochs", "2", "--engine", portable.Name, "-q", "--dir", "run", "--out", "trained.onnx")
	}},
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var block = regexp.MustCompile("(?ms)^ *```python\n(.*?)^ *```")

// snippetsOf returns the Python snippets of all pages.
func snippetsOf(t *testing.T) map[string][]string {
	t.Helper()
	found, err := filepath.Glob("../../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]string{}
	for _, path := range found {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		for _, m := range block.FindAllStringSubmatch(string(apptest.ReadBytes(t, path)), -1) {
			list[name] = append(list[name], m[1])
		}
	}
	return list
}

// TestEverySnippet: every page with Python snippets is in the table, with as many.
func TestEverySnippet(t *testing.T) {
	list := snippetsOf(t)
	for name, snippets := range sorted.All(list) {
		if pages[name].snippets != len(snippets) {
			t.Errorf("docs/%s.md has %d Python snippets, and the table %d", name, len(snippets), pages[name].snippets)
		}
	}
	if len(list) != len(pages) {
		t.Errorf("%d pages have Python snippets, and the table has %d", len(list), len(pages))
	}
}

// TestSnippets runs the snippets of each page as scripts, one after another in one folder.
func TestSnippets(t *testing.T) {
	longtest.Nightly(t)
	folder := os.Getenv(folderVar)
	if folder == "" {
		t.Skipf("%s names no folder of environments, which .ci/snippets prints", folderVar)
	}
	for name, snippets := range sorted.All(snippetsOf(t)) {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for i, text := range snippets {
				pages[name].before(t, i)
				script := fmt.Sprintf("snippet%d.py", i)
				write(t, script, text)
				out, err := exec.CommandContext(t.Context(), filepath.Join(folder, name, "bin", "python"), script).CombinedOutput()
				if err != nil {
					t.Fatalf("docs/%s.md, snippet %d: %v\n%s", name, i+1, err, out)
				}
			}
		})
	}
}
