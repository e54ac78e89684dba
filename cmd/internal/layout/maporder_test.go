package layout

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestMapsInTestsAreSorted finds loops over maps in tests: their order changes from run to run, and
// with it what a case leaves to the next, so that a test fails by chance. Package
// runtime/sorted has an order; a loop without variables needs none.
func TestMapsInTestsAreSorted(t *testing.T) {
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
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		Dir:  dir, Tests: true,
	}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Error(e)
		}
		for _, f := range p.Syntax {
			path := p.Fset.Position(f.Pos()).Filename
			if !strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			if rel, err := filepath.Rel(dir, path); err == nil {
				path = filepath.ToSlash(rel)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.RangeStmt); ok && (r.Key != nil || r.Value != nil) && unordered(p.TypesInfo, r.X) {
					problems = append(problems, fmt.Sprintf("%s:%d: a loop in the map's own order: range over sorted.All", path, p.Fset.Position(r.Pos()).Line))
				}
				return true
			})
		}
	}
	return files, problems
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
