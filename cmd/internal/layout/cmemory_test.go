package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoresIntoC looks for the ways in which Go code can store a pointer into memory of C. Such a
// store runs a write barrier, which reports the word's old value to the collector: in memory that
// was not zeroed that may be the address of a Go object freed since, and the heap is corrupt.
// Memory from C is zeroed (calloc), and addresses in it are written as uintptr.
func TestStoresIntoC(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, problem := range storesIntoC(set, f) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("only %d files", files)
	}
}

// storesIntoC reports calls of C.malloc, and conversions to a pointer to pointers unless the
// pointer is read at once.
func storesIntoC(set *token.FileSet, f *ast.File) (problems []string) {
	report := func(n ast.Node, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: ", set.Position(n.Pos()))+fmt.Sprintf(format, args...))
	}
	read := map[ast.Node]bool{}   // *(**T)(p), looked at
	stored := map[ast.Node]bool{} // the left sides of assignments
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				stored[left] = true
			}
		case *ast.StarExpr:
			if !stored[n] {
				read[n.X] = true
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && isName(s.X, "C") && s.Sel.Name == "malloc" {
				report(n, "C.malloc gives memory with stale words: use C.calloc")
			}
			paren, ok := n.Fun.(*ast.ParenExpr)
			if !ok {
				return true
			}
			if to, ok := paren.X.(*ast.StarExpr); ok && isPointer(to.X) && !read[n] {
				report(n, "a pointer to pointers from unsafe memory: write addresses as uintptr")
			}
		}
		return true
	})
	return problems
}

func isPointer(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return true
	case *ast.SelectorExpr:
		return isName(e.X, "unsafe") && e.Sel.Name == "Pointer"
	}
	return false
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestStoresIntoCFindsThem(t *testing.T) {
	const source = `package p
func f(p unsafe.Pointer) {
	a := C.malloc(8)
	unsafe.Slice((*unsafe.Pointer)(a), 1)[0] = p
	*(**C.char)(a) = nil
	_ = *(*unsafe.Pointer)(a)
	_ = unsafe.Slice((*uintptr)(a), 1)
	_ = C.calloc(1, 8)
}`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(storesIntoC(set, f), "\n")
	for _, at := range []string{"p.go:3:", "p.go:4:", "p.go:5:"} {
		if !strings.Contains(got, at) {
			t.Errorf("nothing at %s\n%s", at, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n != 3 {
		t.Errorf("%d problems, expected 3\n%s", n, got)
	}
}
