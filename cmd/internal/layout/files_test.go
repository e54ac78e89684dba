package layout

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// topLevel is everything the repository may hold at its top.
var topLevel = []string{
	"cmd", "runtime", "envs", "agents", "models", "export", "configs", "go.mod", "go.sum", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "THIRD_PARTY_NOTICES", "docs",
}

// maxLines is the longest a hand-written file may be.
const maxLines = 800

func TestTopLevel(t *testing.T) {
	for _, name := range topEntries(t) {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			t.Errorf("%s does not belong at the top level", name)
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

// topEntries lists what the repository holds at its top. What a user's runs have left there does
// not count, so the list is git's; a source tree without git is taken as it lies.
func topEntries(t *testing.T) []string {
	t.Helper()
	var names []string
	if out, err := exec.Command("git", "-C", root, "ls-files").Output(); err == nil && len(out) > 0 {
		for _, path := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			name, _, _ := strings.Cut(path, "/")
			names = append(names, name)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
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
				if !strings.Contains(filepath.ToSlash(path), "/testdata/") {
					t.Errorf("%s: the name says nothing", path)
				}
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
