package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// testPart makes small files large.
const testPart = 1000

func openTest(t *testing.T, b Bucket, o Options) *Store {
	t.Helper()
	s := newStore(b, "test://store", o)
	s.part = testPart
	s.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return s
}

func memoryOf(t *testing.T) memoryPrefix {
	t.Helper()
	return memoryPrefix{&memoryBucket{of: map[string][]byte{}}, ""}
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed)))
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// writeTree makes files of all kinds of sizes; the seed changes one.
func writeTree(t *testing.T, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	for name, b := range sorted.All(map[string][]byte{
		"config.yaml": []byte("a: 1\n"), "empty": nil, "ckpt/one/arrays": randomBytes(1, 3*testPart+17),
		"ckpt/two/arrays": randomBytes(seed, 2*testPart), "ckpt/two/same": randomBytes(1, 3*testPart+17), "exact": randomBytes(3, testPart),
	}) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "nothing", "here"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content of a directory, by path; a directory has a slash at its end.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			got[filepath.ToSlash(rel)+"/"] = ""
			return nil
		}
		b, err := os.ReadFile(path)
		got[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := content(t, got), content(t, want)
	if len(a) != len(b) {
		t.Errorf("%d entries, want %d", len(a), len(b))
	}
	for name, v := range sorted.All(b) {
		if w, ok := a[name]; !ok || w != v {
			t.Errorf("%s: %d bytes (there: %v), want %d", name, len(w), ok, len(v))
		}
	}
}

func TestTreeThereAndBack(t *testing.T) {
	ctx := t.Context()
	dir := writeTree(t, 7)
	if err := os.WriteFile(atomicfile.TempName(filepath.Join(dir, "config.yaml")), []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openTest(t, memoryOf(t), Options{})
	ref, err := s.PutTree(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "deep", "copy")
	if err := s.GetTree(ctx, ref, to); err != nil {
		t.Fatal(err)
	}
	temps, err := filepath.Glob(filepath.Join(dir, ".*tmp*"))
	if err != nil || len(temps) != 1 {
		t.Fatal(temps, err)
	}
	if err := os.Remove(temps[0]); err != nil {
		t.Fatal(err)
	}
	same(t, to, dir)
	if err := s.GetTree(ctx, ref, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory that is there: %v", err)
	}
	sent := s.Stats().Sent
	again, err := s.PutTree(ctx, to)
	if err != nil || again != ref {
		t.Errorf("the copy is %s, %v, want %s", again, err, ref)
	}
	// The lists of parts of the three large files are written again, their parts and the rest are
	// not.
	if n := s.Stats().Sent - sent; n != 3 {
		t.Errorf("%d objects sent again, want 3", n)
	}
}

// faulty fails at random: errors before and after an operation, cut bodies, bodies with flipped
// bits.
type faulty struct {
	Bucket
	mu   sync.Mutex
	rand *rand.Rand
	rate float64
	// dead is the number of operations until all fail, negative for never.
	dead int
}

var errInternal = errors.New("500 internal error")

func (f *faulty) fails() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead == 0 {
		return true
	}
	f.dead--
	return f.rand.Float64() < f.rate
}

func (f *faulty) Stat(ctx context.Context, key string) (Info, error) {
	if f.fails() {
		return Info{}, errInternal
	}
	return f.Bucket.Stat(ctx, key)
}

func (f *faulty) Read(ctx context.Context, key string, r Range) (io.ReadCloser, error) {
	if f.fails() {
		return nil, errInternal
	}
	body, err := f.Bucket.Read(ctx, key, r)
	if err != nil || !f.fails() {
		return body, err
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(b) > 0 && f.rand.IntN(4) == 0 {
		b[f.rand.IntN(len(b))] ^= 1
	} else {
		b = b[:f.rand.IntN(len(b)+1)]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (f *faulty) Write(ctx context.Context, key string, b []byte) error {
	if f.fails() {
		return errInternal
	}
	if err := f.Bucket.Write(ctx, key, b); err != nil {
		return err
	}
	if f.fails() {
		// It has arrived, and the answer has not.
		return errInternal
	}
	return nil
}

// TestFaults moves trees through a storage that fails. Whatever happens, a tree is whole or not
// there, and errors are only those of the storage.
func TestFaults(t *testing.T) { testFaults(t, longtest.Cases(t, 30, 4)) }

// TestFaultsOfManySeeds is TestFaults with more seeds.
func TestFaultsOfManySeeds(t *testing.T) {
	longtest.Nightly(t)
	testFaults(t, 200)
}

func testFaults(t *testing.T, trials int) {
	gave := map[string]int{}
	for seed := range uint64(trials) {
		r := rand.New(rand.NewPCG(seed, 1))
		under := memoryOf(t)
		var cache *Cache
		if seed%2 == 0 {
			var err error
			if cache, err = OpenCache(t.TempDir(), 4*testPart); err != nil {
				t.Fatal(err)
			}
		}
		dir := writeTree(t, seed)
		want, err := openTest(t, memoryOf(t), Options{}).PutTree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		open := func(dead int) *Store {
			f := &faulty{Bucket: under, rand: r, rate: 0.3 * r.Float64(), dead: dead}
			return openTest(t, f, Options{Cache: cache, Parallel: 1 + r.IntN(4)})
		}
		to := filepath.Join(t.TempDir(), "copy")
		// Senders and receivers die early, one after the other, until one of each comes through.
		for n := 1; ; n++ {
			ref, err := open(n*3).PutTree(t.Context(), dir)
			if err == nil {
				if ref != want {
					t.Fatalf("seed %d: reference %s, want %s", seed, ref, want)
				}
				break
			}
			gave["put"]++
			if !errors.Is(err, errInternal) {
				t.Fatalf("seed %d: put: %v", seed, err)
			}
			if _, ok := under.of[blobKey(want)]; ok {
				// The answer to the last write was lost; all before it has arrived.
				openWhole(t, under, want, dir)
			}
		}
		for n := 1; ; n++ {
			err := open(n*3).GetTree(t.Context(), want, to)
			if err == nil {
				break
			}
			gave["get"]++
			if !errors.Is(err, errInternal) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrDamaged) {
				t.Fatalf("seed %d: get: %v", seed, err)
			}
			left, err := os.ReadDir(filepath.Dir(to))
			if err != nil || len(left) > 0 {
				t.Fatalf("seed %d: a get that failed left %v, %v", seed, left, err)
			}
		}
		same(t, to, dir)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if gave["put"] < trials || gave["get"] < trials {
		t.Errorf("the storage hardly failed: %v", gave)
	}
}

func openWhole(t *testing.T, b Bucket, ref Digest, want string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "whole")
	if err := openTest(t, b, Options{}).GetTree(t.Context(), ref, to); err != nil {
		t.Fatalf("the manifest is there and the tree is not: %v", err)
	}
	same(t, to, want)
}

func TestTreeErrors(t *testing.T) {
	ctx := t.Context()
	b := memoryOf(t)
	s := openTest(t, b, Options{MaxBytes: 10 * testPart})
	put := func(text string) Digest {
		t.Helper()
		d, err := s.Put(ctx, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	x := put("x")
	entry := func(path string, size int) string {
		return fmt.Sprintf(`{"path":%q,"size":%d,"digest":%q}`, path, size, x)
	}
	tree := func(files ...string) Digest {
		return put(`{"kind":"onnxrl.tree.v1","files":[` + strings.Join(files, ",") + `]}`)
	}
	for name, c := range sorted.All(map[string]struct {
		ref  Digest
		want string
	}{
		"not a digest": {"sha256:../../x", "expected sha256:"}, "nothing": {DigestOf([]byte("nothing")), "not exist"},
		"no tree": {put("hello"), "not a tree"}, "another kind": {put(`{"kind":"x"}`), "expected \"onnxrl.tree.v1\""},
		"elsewhere": {tree(entry("../x", 1)), "relative path"}, "root": {tree(entry("/x", 1)), "relative path"},
		"twice": {tree(entry("x", 1), entry("x", 1)), "twice"}, "negative": {tree(entry("x", -1)), "size -1"},
		"too large":              {tree(entry("x", 6*testPart), entry("y", 6*testPart)), "more than 10000 bytes"},
		"a file and a directory": {tree(entry("x", 1), entry("x/y", 1)), "x"},
		"another size":           {tree(entry("x", 2)), "unexpected EOF"},
	}) {
		to := filepath.Join(t.TempDir(), "d")
		err := s.GetTree(ctx, c.ref, to)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}
	ref := tree(entry("x", 1))
	b.of[blobKey(x)] = []byte("y")
	err := s.GetTree(ctx, ref, filepath.Join(t.TempDir(), "d"))
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), x.hex()) {
		t.Errorf("a damaged blob: %v", err)
	}
	dir := writeTree(t, 1)
	if err := os.Symlink("config.yaml", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutTree(ctx, dir); err == nil || !strings.Contains(err.Error(), "link is neither") {
		t.Errorf("a link: %v", err)
	}
	if _, err := s.PutTree(ctx, dir+"x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.PutTree(ended, t.TempDir()); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
