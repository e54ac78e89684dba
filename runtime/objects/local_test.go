package objects

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// stored puts a tree of one file of a size into a directory and returns its reference.
func stored(t *testing.T, root string, seed uint64, size int) Reference {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bars.csv"), randomBytes(seed, size), 0o644); err != nil {
		t.Fatal(err)
	}
	at := "file:///" + strings.TrimPrefix(filepath.ToSlash(root), "/")
	s, err := Open(t.Context(), at, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := s.PutTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return Reference{URL: at, Tree: d}
}

// fetched is what another process would have of a reference: those before it have ended.
func fetched(t *testing.T, o LocalOptions, r Reference) (string, error) {
	t.Helper()
	SetLocal(o)
	defer SetLocal(LocalOptions{})
	path, err := Local(r.String())
	endLocal(t)
	return path, err
}

// endLocal lets go of the trees that are in use, as the end of a process does.
func endLocal(t *testing.T) {
	t.Helper()
	if process.files == nil {
		return
	}
	for _, f := range process.files.keep {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	process.files.keep = nil
}

// TestLocal fetches trees once, verifies them in every process, and keeps the limit.
func TestLocal(t *testing.T) {
	root, cache := t.TempDir(), t.TempDir()
	begun := 0
	o := LocalOptions{Dir: cache, MaxBytes: 2500, Begin: func(Reference, int64) (func(int64), func()) {
		begun++
		return func(int64) {}, func() {}
	}}
	one := stored(t, root, 1, 1000)
	path, err := fetched(t, o, one)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(path, "bars.csv")
	is := func(seed uint64) {
		t.Helper()
		got, err := os.ReadFile(file)
		if err != nil || DigestOf(got) != DigestOf(randomBytes(seed, 1000)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	is(1)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o222 != 0 {
		t.Errorf("the copy can be written to: %v, %v", info.Mode(), err)
	}
	below := one
	below.Path = "bars.csv"
	if got, err := fetched(t, o, below); err != nil || got != file || begun != 1 {
		t.Errorf("again: %s, %v, fetched %d times, want %s and once", got, err, begun, file)
	}
	below.Path = "none.csv"
	if _, err := fetched(t, o, below); err == nil || !strings.Contains(err.Error(), `has no file "none.csv"`) {
		t.Errorf("no such file: %v", err)
	}
	below.Path = "*.csv"
	if got, err := fetched(t, o, below); err != nil || got != filepath.Join(path, "*.csv") {
		t.Errorf("a pattern: %s, %v", got, err)
	}
	// Changed files are fetched again.
	for _, err := range []error{os.Chmod(file, 0o644), os.WriteFile(file, []byte("changed"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fetched(t, o, one); err != nil || begun != 2 {
		t.Errorf("changed: %v, fetched %d times, want twice", err, begun)
	}
	is(1)
	// The storage is not needed for what is here.
	two, three := stored(t, root, 2, 1000), stored(t, root, 3, 1000)
	if _, err := fetched(t, o, two); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := fetched(t, o, two); err != nil || begun != 3 {
		t.Errorf("without the storage: %v, fetched %d times", err, begun)
	}
	if _, err := fetched(t, o, three); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not here and no storage: %v", err)
	}
	if err := os.Rename(root+".away", root); err != nil {
		t.Fatal(err)
	}
	// There is room for two. The first was used before the second.
	if _, err := fetched(t, o, three); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the tree that was used least recently is still there")
	}
	// Files in use stay.
	SetLocal(o)
	for _, r := range []Reference{two, three} {
		if _, err := Local(r.String()); err != nil {
			t.Fatal(err)
		}
	}
	if !IsCopy(filepath.Join(path, "x")) || IsCopy(cache) || IsCopy(root) {
		t.Error("copies are not known as such")
	}
	// The list of copies has references.
	for path, want := range sorted.All(map[string]string{
		filepath.Join(process.files.held[two.Tree].dir, "x", "y"): two.String() + "/x/y", process.files.held[three.Tree].dir: three.String(), three.String() + "/z": three.String() + "/z",
		filepath.Join(cache, "trees", one.Tree.hex(), "content"): filepath.Join(cache, "trees", one.Tree.hex(), "content"), filepath.Join(cache, "b"): filepath.Join(cache, "b"),
	}) {
		if got, err := Abs(path); err != nil || got != want {
			t.Errorf("%s is %s, %v, want %s", path, got, err, want)
		}
	}
	users := process.files
	SetLocal(o)
	if _, err := Local(one.String()); err == nil || !strings.Contains(err.Error(), "are in use; set "+LimitVariable) {
		t.Errorf("no room: %v", err)
	}
	process.files = users
	endLocal(t)
	if _, err := fetched(t, o, one); err != nil {
		t.Errorf("room again: %v", err)
	}
	large := stored(t, root, 4, 3000)
	if _, err := fetched(t, o, large); err == nil || !strings.Contains(err.Error(), "3000 bytes, and the cache "+cache+" at most 2500: set "+LimitVariable) {
		t.Errorf("too large: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	o.Context = ended
	if _, err := fetched(t, o, two); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestReferences: what is a reference, what is a path, and what is wrong.
func TestReferences(t *testing.T) {
	SetLocal(LocalOptions{Dir: t.TempDir()})
	defer SetLocal(LocalOptions{})
	for _, path := range []string{"", "a/b.csv", "/a#b", "shipped:market/us5_daily.parquet", `C:\data`} {
		if got, err := Local(path); err != nil || got != path || IsReference(path) {
			t.Errorf("%q became %q, %v", path, got, err)
		}
	}
	d := string(DigestOf(nil))
	for raw, want := range sorted.All(map[string]string{
		"file:///x": "does not say what of it is meant; expected URL#sha256:…", "file:///x#prices": "expected sha256:", "file:///x#" + d + "/../y": "expected one below the tree",
		"nowhere://x#" + d: `no storage has the scheme "nowhere"; expected one of file, mem`, "mem://hunter2@x#" + d: "credentials do not belong into a URL", "mem://x?k=hunter2#" + d: "has no parameters",
		"mem://local-none#" + d: "not exist",
	}) {
		_, err := Local(raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want %q", raw, err, want)
		}
	}
	t.Setenv(LimitVariable, "much")
	SetLocal(LocalOptions{Dir: t.TempDir()})
	if _, err := Local("mem://x#" + d); err == nil || !strings.Contains(err.Error(), LimitVariable+`="much": expected a positive number of bytes`) {
		t.Errorf("limit: %v", err)
	}
}
