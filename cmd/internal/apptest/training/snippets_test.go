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

// shipped are the configurations, as an absolute path: tests change the folder.
var shipped = func() string {
	path, err := filepath.Abs("../../../../configs/experiments")
	if err != nil {
		panic(err)
	}
	return path
}()

// pages are those with Python snippets: how many there are, and what is done before each, by its
// number, and after the last, whose number is one more. python is the page's interpreter.
var pages = map[string]struct {
	snippets int
	around   func(t *testing.T, snippet int, python string)
}{
	"environments": {1, func(t *testing.T, snippet int, python string) {
		if snippet == 0 {
			return
		}
		page := string(apptest.ReadBytes(t, filepath.Join(shipped, "../../docs/environments.md")))
		yaml := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindStringSubmatch(page)
		if yaml == nil {
			t.Fatal("docs/environments.md has no configuration")
		}
		write(t, "rooms.py", string(apptest.ReadBytes(t, "snippet0.py")))
		write(t, "thermostat.yaml", yaml[1])
		t.Setenv("ONNXRL_PYTHON", python)
		apptest.Succeed(t, "train", "thermostat.yaml", "--out", "runs/rooms", "--engine", portable.Name, "-q", "--no-publish", "--set", "train.total_env_steps=2048", "--set", "train.validation.every_steps=0")
	}},
	"models": {2, func(t *testing.T, snippet int, _ string) {
		fit := func(args ...string) {
			apptest.Succeed(t, append([]string{"fit", "--loss", "cross_entropy", "--engine", portable.Name, "-q"}, args...)...)
		}
		switch snippet {
		case 0:
			fit("--model", filepath.Join(shipped, "digits/cnn.onnx"), "--data", filepath.Join(shipped, "digits/digits.parquet"), "--input", "image=p*", "--target", "logits=label", "--epochs", "1", "--out", "trained.onnx")
		case 2:
			table := "f0,f1,f2,f3,label\n"
			for i := range 40 {
				table += fmt.Sprintf("%d,%d,%d,%d,%d\n", i%2, i%3, i%5, i%7, i%3)
			}
			write(t, "table.csv", table)
			fit("--model", "net.onnx", "--data", "table.csv", "--input", "x=f*", "--target", "y=label", "--epochs", "2", "--out", "net_trained.onnx")
		}
	}},
	"scml": {1, func(t *testing.T, snippet int, _ string) {
		if snippet == 0 {
			write(t, "agent/agent.json", `{"layout": 1, "goal": 4, "horizon": 40}`)
			apptest.Succeed(t, "export", "agent", "--format", "scml", "--engine", portable.Name, "--out", "lita")
		}
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
			python := filepath.Join(folder, name, "bin", "python")
			for i, text := range snippets {
				pages[name].around(t, i, python)
				script := fmt.Sprintf("snippet%d.py", i)
				write(t, script, text)
				out, err := exec.CommandContext(t.Context(), python, script).CombinedOutput()
				if err != nil {
					t.Fatalf("docs/%s.md, snippet %d: %v\n%s", name, i+1, err, out)
				}
			}
			pages[name].around(t, len(snippets), python)
		})
	}
}
