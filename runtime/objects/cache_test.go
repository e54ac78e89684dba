package objects

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

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
				entries, err := c.entries()
				if err != nil || bytesOf(entries) > most {
					t.Errorf("%d bytes, limit %d: %v", bytesOf(entries), most, err)
				}
			}
		})
	}
	group.Wait()
	c, err := OpenCache(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	kept := randomBytes(1000, testPart)
	for n := range uint64(30) {
		if _, ok := c.get(DigestOf(kept), testPart); n > 0 && !ok {
			t.Fatal("what is used all the time was removed")
		}
		for _, b := range [][]byte{kept, randomBytes(2000+n, testPart)} {
			if err := c.put(t.Context(), DigestOf(b), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(c.path(DigestOf(kept)), []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.get(DigestOf(kept), testPart); ok {
		t.Error("a damaged entry was handed out")
	}
	if _, err := os.Stat(c.path(DigestOf(kept))); err == nil {
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
