package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestMapsInTestsAreSorted finds loops over maps in tests: their order changes from run to run, and
// with it what a case leaves to the next, so that a test fails by chance. Package
// runtime/sorted has an order; a loop without variables needs none.
func TestMapsInTestsAreSorted(t *testing.T) {
	longtest.Nightly(t)
	files, problems := mapLoops(t, root, "./...")
	for _, p := range problems {
		t.Error(p)
	}
	if files < 400 {
		t.Errorf("only %d files of tests", files)
	}
}

// TestMapLoopsAreFound looks at a test that has what it should not.
func TestMapLoopsAreFound(t *testing.T) {
	dir := t.TempDir()
	for _, f := range [][2]string{{"go.mod", "module m\n\ngo 1.24\n"}, {"m_test.go", `package m

import (
	"maps"
	"testing"
)

type table map[string]int

func Test(t *testing.T) {
	m := table{}
	for range m {
	}
	for _, v := range []int{1} {
		_ = v
	}
	for k := range m {
		_ = k
	}
	for k := range maps.Keys(m) {
		_ = k
	}
}
`}} {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, problems := mapLoops(t, dir, ".")
	if files != 1 || len(problems) != 2 || !strings.HasPrefix(problems[0], "m_test.go:17: ") || !strings.HasPrefix(problems[1], "m_test.go:20: ") {
		t.Errorf("%d files, %q", files, problems)
	}
}

// mapLoops returns how many files of tests the packages below dir have, and their loops over maps
// in the maps' own order.
func mapLoops(t *testing.T, dir, pattern string) (files int, problems []string) {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	pkgs, imports := testedPackages(t, set, dir, pattern)
	for _, p := range pkgs {
		parse := func(names []string, whole bool) (out []*ast.File) {
			for _, name := range names {
				f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && !whole {
						fn.Body = nil
					}
				}
				out = append(out, f)
			}
			return out
		}
		look := func(path string, others, tests []*ast.File, imports types.Importer) *types.Package {
			info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
			// The compiler reports types that do not fit. An external test may see two forms of its
			// package: as it is, and with what its tests add.
			config := types.Config{Importer: imports, FakeImportC: true, Error: func(error) {}}
			pkg, _ := config.Check(path, set, append(others, tests...), info)
			for _, f := range tests {
				files++
				problems = append(problems, loopsOf(t, set, dir, f, info)...)
			}
			return pkg
		}
		pkg := look(p.ImportPath, parse(append(p.GoFiles, p.CgoFiles...), false), parse(p.TestGoFiles, true), imports)
		look(p.ImportPath+"_test", nil, parse(p.XTestGoFiles, true), withTests{imports, pkg})
	}
	return files, problems
}

// loopsOf lists the loops of a file over maps in their own order.
func loopsOf(t *testing.T, set *token.FileSet, dir string, f *ast.File, info *types.Info) (problems []string) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		if !ok || r.Key == nil && r.Value == nil {
			return true
		}
		at := set.Position(r.Pos())
		if rel, err := filepath.Rel(dir, at.Filename); err == nil {
			at.Filename = filepath.ToSlash(rel)
		}
		if typ := info.TypeOf(r.X); typ == nil || typ == types.Typ[types.Invalid] {
			t.Errorf("%s:%d: what the loop is over has no known type", at.Filename, at.Line)
		} else if unordered(info, r.X) {
			problems = append(problems, fmt.Sprintf("%s:%d: a loop in the map's own order: range over sorted.All", at.Filename, at.Line))
		}
		return true
	})
	return problems
}

// testedPackage is what go list says of a package.
type testedPackage struct {
	ImportPath, Dir                                                         string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles, TestImports, XTestImports []string
}

// testedPackages lists packages that have tests, and imports whatever they import from what the go
// command has compiled: neither tests nor what they import is compiled for this.
func testedPackages(t *testing.T, set *token.FileSet, dir, pattern string) (pkgs []testedPackage, imports types.Importer) {
	t.Helper()
	list := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
		cmd.Dir = dir
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, errs.String())
		}
		return out
	}
	args := []string{"-deps", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", pattern}
	seen := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(list("-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,TestImports,XTestImports", pattern))); ; {
		var p testedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		pkgs = append(pkgs, p)
		for _, path := range append(p.TestImports, p.XTestImports...) {
			if path != "C" && path != "unsafe" && !seen[path] {
				seen[path] = true
				args = append(args, path)
			}
		}
	}
	export := map[string]string{}
	for line := range strings.Lines(string(list(args...))) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		export[path] = file
	}
	return pkgs, importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
}

// withTests imports a package with what its tests add, and others as they are.
type withTests struct {
	types.Importer
	pkg *types.Package
}

func (w withTests) Import(path string) (*types.Package, error) {
	if w.pkg != nil && path == w.pkg.Path() {
		return w.pkg, nil
	}
	return w.Importer.Import(path)
}

// unordered reports whether e is a map, or an iterator over one.
func unordered(info *types.Info, e ast.Expr) bool {
	if t := info.TypeOf(e); t != nil {
		if _, ok := t.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isName(f.X, "maps")
}
