package objects

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// kept is the number of bytes of all parts and trees that are in a cache, while nobody adds or
// removes one.
func kept(ctx context.Context, c *Cache) (n int64, err error) {
	release, err := c.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, dir := range []string{c.blobs(), c.trees()} {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(c.dir, path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || e.IsDir() || atomicfile.IsTemp(e.Name()) || dir == c.trees() && !strings.Contains(filepath.ToSlash(rel), "/content/"):
				return err
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				n += info.Size()
			}
			return err
		}))
	}
	return n, err
}

// TestCacheLimitOfAll lets several processes fetch trees and put parts into one directory: parts
// and trees together are never more than the limit, and what is fetched is whole.
func TestCacheLimitOfAll(t *testing.T) {
	const most = 10_000
	root, dir := t.TempDir(), t.TempDir()
	var refs []Reference
	for i := range uint64(12) {
		refs = append(refs, stored(t, root, i, 1500+100*int(i)))
	}
	if err := os.WriteFile(filepath.Join(dir, "bytes"), []byte("0\n"), 0o644); err != nil { // Of a former program.
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for p := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(p, 1))
			for range longtest.Cases(t, 25, 8) {
				// Every turn is a process of its own.
				f, err := openFiles(LocalOptions{Dir: dir, MaxBytes: most})
				if err != nil {
					t.Error(err)
					return
				}
				i := r.IntN(len(refs))
				path, err := f.tree(refs[i])
				if err != nil {
					t.Errorf("tree %d: %v", i, err)
					return
				}
				b, err := os.ReadFile(filepath.Join(path, "bars.csv"))
				if err != nil || DigestOf(b) != DigestOf(randomBytes(uint64(i), 1500+100*i)) {
					t.Errorf("tree %d has %d bytes, %v", i, len(b), err)
				}
				part := randomBytes(r.Uint64(), 300)
				if err := f.cache.put(t.Context(), DigestOf(part), part); err != nil {
					t.Error(err)
				}
				if n, err := kept(t.Context(), f.cache); err != nil || n > most {
					t.Errorf("%d bytes, limit %d: %v", n, most, err)
				}
				for _, u := range f.keep {
					if err := u.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// TestCacheKilled finds what a process that was killed in the middle of a tree has left, and counts
// and removes it.
func TestCacheKilled(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	ref := stored(t, root, 1, 1000)
	c, err := OpenCache(dir, 2500)
	if err != nil {
		t.Fatal(err)
	}
	folder := c.folder(ref.Tree)
	half := atomicfile.TempName(filepath.Join(folder, "content"))
	for _, err := range []error{
		os.MkdirAll(half, 0o755), os.WriteFile(filepath.Join(half, "bars.csv"), make([]byte, 800), 0o444), os.Chmod(half, 0o555),
		os.MkdirAll(filepath.Join(folder, "users"), 0o755), c.reserveTree(t.Context(), folder, 1000),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if used, err := c.used(); err != nil || used != 1000 {
		t.Errorf("%d bytes are counted, %v, want those of the tree that was on its way", used, err)
	}
	if _, err := fetched(t, LocalOptions{Dir: dir, MaxBytes: 2500}, ref); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(half); err == nil {
		t.Error("half a tree is still there")
	}
	if used, err := c.used(); err != nil || used > 2500 || used < 2000 {
		t.Errorf("%d bytes are counted, %v, want those of a tree and its parts", used, err)
	}
}

// TestCacheParts: parts go before trees, and take the place of trees only up to their share.
func TestCacheParts(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	o := LocalOptions{Dir: dir, MaxBytes: 20_000}
	for i := range uint64(4) {
		if _, err := fetched(t, o, stored(t, root, i, 4900)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := OpenCache(dir, o.MaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	trees := func() int {
		t.Helper()
		list, err := c.treeEntries()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := trees(); n != 4 {
		t.Errorf("%d trees are kept, want all, without their parts", n)
	}
	// Within the share there is always room, for which one tree goes; beyond it parts follow parts.
	for n := range uint64(100) {
		b := randomBytes(100+n, 900)
		if err := c.put(t.Context(), DigestOf(b), b); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.get(DigestOf(b), 900); !ok {
			t.Fatalf("part %d is not kept", n)
		}
	}
	if n := trees(); n != 3 {
		t.Errorf("%d trees are left, want 3", n)
	}
}

// TestCacheLimit fills a directory through several caches, as processes do, and finds the limit
// kept and what was used last still there.
func TestCacheLimit(t *testing.T) {
	const most = 10 * testPart
	dir := t.TempDir()
	var group sync.WaitGroup
	for i := range uint64(4) {
		c, err := OpenCache(dir, most)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for n := range uint64(50) {
				b := randomBytes(100*i+n, testPart/2)
				if err := c.put(t.Context(), DigestOf(b), b); err != nil {
					t.Error(err)
				}
				if n, err := kept(t.Context(), c); err != nil || n > most {
					t.Errorf("%d bytes, limit %d: %v", n, most, err)
				}
			}
		})
	}
	group.Wait()
	c, err := OpenCache(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	loved := randomBytes(1000, testPart)
	for n := range uint64(30) {
		if _, ok := c.get(DigestOf(loved), testPart); n > 0 && !ok {
			t.Fatal("what is used all the time was removed")
		}
		for _, b := range [][]byte{loved, randomBytes(2000+n, testPart)} {
			if err := c.put(t.Context(), DigestOf(b), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(c.path(DigestOf(loved)), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.get(DigestOf(loved), testPart); ok {
		t.Error("a damaged entry was handed out")
	}
	if _, err := os.Stat(c.path(DigestOf(loved))); err == nil {
		t.Error("a damaged entry is still there")
	}
}

// TestCacheSaves fetches a tree twice, the second time without the storage's files.
func TestCacheSaves(t *testing.T) {
	c, err := OpenCache(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeTree(t, 1)
	b := memoryOf(t)
	s := openTest(t, b, Options{Cache: c})
	ref, err := s.PutTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.GetTree(t.Context(), ref, filepath.Join(t.TempDir(), "a")); err != nil {
		t.Fatal(err)
	}
	for key := range sorted.All(b.of) {
		if strings.HasPrefix(key, "blobs/") {
			delete(b.of, key)
		}
	}
	to := filepath.Join(t.TempDir(), "b")
	if err := s.GetTree(t.Context(), ref, to); err != nil {
		t.Fatal(err)
	}
	same(t, to, dir)
}
