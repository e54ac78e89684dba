package layout

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// topLevel is everything the repository may hold at its top.
var topLevel = []string{
	"cmd", "runtime", "envs", "agents", "models", "export", "configs", "go.mod", "go.sum", "README.md", "LICENSE", "THIRD_PARTY_NOTICES",
}

// maxLines is the longest a hand-written file may be.
const maxLines = 800

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) && e.Name() != "runs" {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
	for _, dir := range []string{"runtime", "export", "envs"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		if dir != "envs" && len(files) > 0 {
			t.Errorf("%s holds Go files; a package of that name would shadow the standard library's or say nothing", dir)
		}
	}
}

func TestFilesStayReadable(t *testing.T) {
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != "." && d.Name() != ".." {
				return filepath.SkipDir
			}
			switch d.Name() {
			case "util", "common", "base", "core", "types":
				t.Errorf("%s: the name says nothing", path)
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n++
		if bytes.HasPrefix(data, []byte("// Code generated")) {
			return nil
		}
		if lines := bytes.Count(data, []byte("\n")); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it", path, lines, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 100 {
		t.Errorf("only %d files were looked at", n)
	}
}
