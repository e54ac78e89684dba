package app

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// TestWalksNameFunctions: each function or method that the walks of docs/architecture.md name, as
// `folder/package.Function` or `folder/package.Type.Method`, is there.
func TestWalksNameFunctions(t *testing.T) {
	t.Parallel()
	named := 0
	for _, m := range regexp.MustCompile("`((?:agents|envs|models|runtime|export|cmd)[a-z/]*)\\.(?:([A-Za-z]+)\\.)?([A-Za-z]+)`").FindAllStringSubmatch(apptest.ReadText(t, "../../docs/architecture.md"), -1) {
		receiver := ""
		if m[2] != "" {
			receiver = `\(\w+ \*?` + m[2] + `\) `
		}
		declares := regexp.MustCompile(`(?m)^func ` + receiver + m[3] + `\(`)
		files, err := filepath.Glob(filepath.Join("../..", m[1], "*.go"))
		if err != nil || !slices.ContainsFunc(files, func(path string) bool {
			return !strings.HasSuffix(path, "_test.go") && declares.MatchString(apptest.ReadText(t, path))
		}) {
			t.Errorf("docs/architecture.md: %s is not declared in %s: %v", m[0], m[1], err)
		}
		named++
	}
	if named < 15 {
		t.Errorf("%d functions found", named)
	}
}
