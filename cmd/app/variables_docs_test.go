package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Every environment variable that the program reads is in the table of docs/variables.md, but
// for those by which it talks to its own processes.
func TestVariablesAreInTheTable(t *testing.T) {
	t.Parallel()
	table := apptest.ReadText(t, "../../docs/variables.md")
	own := map[string]bool{"ONNXRL_PYTHON_PERMITTED": true}
	name := regexp.MustCompile(`"(ONNXRL_[A-Z0-9_]+)"`)
	read := map[string]string{}
	if err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "apptest"):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			read[string(m[1])] = path
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for v, path := range sorted.All(read) {
		if !own[v] && !strings.Contains(table, "`"+v) {
			t.Errorf("%s, which %s reads, is not in the table", v, path)
		}
	}
	if len(read) < 15 {
		t.Errorf("%d variables were found", len(read))
	}
}
