package layout

import (
	"flag"
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

var update = flag.Bool("update", false, "rewrite the listing of the public interface")

// apiFile lists everything that programs may use of this module, one line for each name.
const apiFile = "testdata/api.txt"

// TestPublicInterface shows what changes for those who import the module: the listing is part of
// every change that adds, removes or alters an exported name.
func TestPublicInterface(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports, Dir: root}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range pkgs {
		for _, e := range p.Errors {
			t.Error(e)
		}
		path := strings.TrimPrefix(p.PkgPath, modulePrefix)
		if p.Name == "main" || strings.Contains("/"+path+"/", "/internal/") {
			continue
		}
		lines = append(lines, exported(path, p.Types, func(o types.Object) bool {
			return strings.HasSuffix(p.Fset.Position(o.Pos()).Filename, ".pb.go")
		})...)
	}
	slices.Sort(lines)
	if len(lines) < 1000 {
		t.Fatalf("only %d exported names", len(lines))
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll(filepath.Dir(apiFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(apiFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if _, ok := slices.BinarySearch(want, line); !ok {
			t.Errorf("new: %s", line)
		}
	}
	for _, line := range want {
		if _, ok := slices.BinarySearch(lines, line); !ok {
			t.Errorf("gone: %s", line)
		}
	}
	if t.Failed() {
		t.Log("the public interface has changed; go test ./cmd/internal/layout -run TestPublicInterface -update lists it anew")
	}
}

// exported lists the names of a package, with what they are, but for generated ones.
func exported(path string, pkg *types.Package, generated func(types.Object) bool) []string {
	short := func(other *types.Package) string {
		if other == pkg {
			return ""
		}
		return other.Name()
	}
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, path+": "+fmt.Sprintf(format, args...))
	}
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() || generated(o) {
			continue
		}
		named, ok := o.(*types.TypeName)
		if !ok {
			add("%s", types.ObjectString(o, short))
			continue
		}
		switch u := o.Type().Underlying().(type) {
		case *types.Struct:
			add("type %s struct", name)
			for i := range u.NumFields() {
				if f := u.Field(i); f.Exported() {
					add("type %s struct, %s %s", name, f.Name(), types.TypeString(f.Type(), short))
				}
			}
		case *types.Interface:
			add("type %s interface", name)
			for i := range u.NumMethods() {
				m := u.Method(i)
				add("type %s interface, %s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
			}
		default:
			add("%s", types.ObjectString(o, short))
		}
		if t, ok := named.Type().(*types.Named); ok && !types.IsInterface(t) {
			for i := range t.NumMethods() {
				if m := t.Method(i); m.Exported() && !generated(m) {
					add("method %s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), short), "func"))
				}
			}
		}
	}
	return lines
}
