package layout

import (
	"bytes"
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var update = flag.Bool("update", false, "write the table of docs/embed.md")

// The stability of public packages, which docs/embed.md explains.
const (
	kept      = "kept"
	mayChange = "may change"
)

// public are the packages for programs of others. All other packages are no promise.
var public = map[string]string{
	"agents":                  kept,
	"agents/evaluate":         mayChange,
	"agents/experiment":       kept,
	"agents/experiment/kinds": kept,
	"agents/livetrade":        mayChange,
	"agents/livetrade/board":  mayChange,
	"agents/ppo":              kept,
	"agents/run":              kept,
	"agents/train":            mayChange,
	"cmd/app":                 kept,
	"envs":                    kept,
	"envs/classic":            mayChange,
	"envs/envtest":            kept,
	"envs/wrap":               mayChange,
	"export/serve":            kept,
	"export/serve/server":     mayChange,
	"models/artifact":         mayChange,
	"models/fit":              kept,
	"runtime/engine":          kept,
	"runtime/objects":         mayChange,
	"runtime/objects/s3":      kept,
	"runtime/objects/web":     kept,
	"runtime/onnx":            kept,
	"runtime/ort":             kept,
	"runtime/portable":        kept,
	"runtime/rng":             kept,
	"runtime/tensor":          kept,
}

// TestPublicPackages compares the table of docs/embed.md with the comments of the packages, and
// looks for the packages that the page's programs import.
func TestPublicPackages(t *testing.T) {
	const page = "../../../docs/embed.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| package | what for | stability |\n|---|---|---|\n")
	for name, stability := range sorted.All(public) {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, purpose(t, name), stability)
	}
	old := regexp.MustCompile(`(?m)^\| package \|.*\n(\|.*\n)*`).Find(text)
	if old == nil {
		t.Fatal("docs/embed.md has no table of packages")
	}
	if *update {
		if err := os.WriteFile(page, bytes.Replace(text, old, []byte(table.String()), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(old) != table.String() {
		t.Errorf("docs/embed.md: the table differs from the comments of the packages (go test ./cmd/internal/layout -run TestPublicPackages -update), expected\n%s", &table)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"`+modulePrefix+`(.*)"$`).FindAllSubmatch(text, -1) {
		if name := string(m[1]); public[name] == "" {
			t.Errorf("docs/embed.md imports %s, which is not in the table", name)
		}
	}
}

// purpose is the first sentence of a package's comment behind its name, up to what explains it.
func purpose(t *testing.T, name string) string {
	t.Helper()
	files, err := filepath.Glob("../../../" + name + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(f.Doc.Text(), "Package "+path.Base(name)+" "); ok {
			rest = regexp.MustCompile(`[:;(]`).Split(new(doc.Package).Synopsis(rest), 2)[0]
			return strings.TrimRight(rest, " .")
		}
	}
	t.Fatalf("%s: no file has the comment of the package", name)
	return ""
}
