package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// behind is a storage whose answers may be old: of each key they are what any writer has written so
// far, or that there is nothing, also after a newer one was seen. In between it calls during.
type behind struct {
	memoryPrefix
	mu     sync.Mutex
	rand   *rand.Rand
	rate   float64
	of     map[string][][]byte
	during func()
}

func (b *behind) old(key string) ([]byte, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.of[key]
	if len(list) == 0 || b.rand.Float64() >= b.rate {
		return nil, false
	}
	if i := b.rand.IntN(len(list) + 1); i < len(list) {
		return list[i], true
	}
	return nil, true
}

func (b *behind) Stat(ctx context.Context, key string) (Info, error) {
	if content, old := b.old(key); old {
		if content == nil {
			return Info{}, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
		}
		return Info{Size: int64(len(content)), Tag: string(DigestOf(content))}, nil
	}
	return b.memoryPrefix.Stat(ctx, key)
}

func (b *behind) Read(ctx context.Context, key string, r Range) (io.ReadCloser, error) {
	if content, old := b.old(key); old {
		if content == nil {
			return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
		}
		m := memoryPrefix{&memoryBucket{of: map[string][]byte{key: content}}, ""}
		return m.Read(ctx, key, r)
	}
	return b.memoryPrefix.Read(ctx, key, r)
}

func (b *behind) Write(ctx context.Context, key string, content []byte) error {
	b.during()
	err := b.memoryPrefix.Write(ctx, key, content)
	b.mu.Lock()
	b.of[key] = append(b.of[key], append([]byte{}, content...))
	b.mu.Unlock()
	b.during()
	return err
}

// TestStale publishes trees through a storage whose answers are old and which fails at random, both
// together, under a tag that moves. Readers look in between every two writes. Whatever they see is
// one of the trees, as a whole, that was published before they looked; and when the storage has
// settled, the last one.
func TestStale(t *testing.T) { testStale(t, longtest.Cases(t, 8, 2)) }

// TestStaleOfManySeeds is TestStale with more seeds.
func TestStaleOfManySeeds(t *testing.T) {
	longtest.Nightly(t)
	testStale(t, 25)
}

func testStale(t *testing.T, trials int) {
	const versions = 4
	seen := map[string]int{}
	for seed := range uint64(trials) {
		r := rand.New(rand.NewPCG(seed, 2))
		under := &behind{memoryPrefix: memoryOf(t), rand: rand.New(rand.NewPCG(seed, 3)), rate: 0.5 * r.Float64(), of: map[string][][]byte{}, during: func() {}}
		storage := func() Bucket {
			return &faulty{Bucket: under, rand: rand.New(rand.NewPCG(r.Uint64(), 4)), rate: 0.2 * r.Float64(), dead: -1}
		}
		dirs, refs := map[Digest]string{}, []Digest{}
		for i := range uint64(versions) {
			dir := writeTree(t, 10*seed+i)
			d, err := openTest(t, memoryOf(t), Options{}).PutTree(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			dirs[d], refs = dir, append(refs, d)
		}
		begun, to := 0, filepath.Join(t.TempDir(), "copy")
		look := func(b Bucket, what string, ref Digest, published bool) {
			t.Helper()
			err := openTest(t, b, Options{Attempts: 4}).GetTree(t.Context(), ref, to)
			switch {
			case err == nil:
				seen[what]++
				same(t, to, dirs[ref])
				if !published {
					t.Fatalf("seed %d: a tree is there before it is published", seed)
				}
				if err := os.RemoveAll(to); err != nil {
					t.Fatal(err)
				}
			case errors.Is(err, errInternal), errors.Is(err, fs.ErrNotExist), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, ErrDamaged):
				seen[what+", not yet"]++
				if left, err := os.ReadDir(filepath.Dir(to)); err != nil || len(left) > 0 {
					t.Fatalf("seed %d: %v is left of a tree that cannot be read, %v", seed, left, err)
				}
			default:
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		looking := false
		under.during = func() {
			if looking || r.IntN(4) > 0 {
				return
			}
			looking = true
			defer func() { looking = false }()
			// One who was told the reference, of what is there or comes next.
			i := r.IntN(versions)
			_, whole := under.memoryPrefix.of[blobKey(refs[i])]
			look(storage(), "told", refs[i], whole)
			// And one who follows the tag; drivers notice bodies that are cut off.
			tag, err := openTest(t, under, Options{}).Tag(t.Context(), "trees/latest")
			if err != nil {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("seed %d: tag: %v", seed, err)
				}
				return
			}
			at := -1
			for i, ref := range refs[:begun] {
				if string(ref) == string(tag) {
					at = i
				}
			}
			if at < 0 {
				t.Fatalf("seed %d: the tag is %q, none of those that were set", seed, tag)
			}
			look(storage(), "by tag", Digest(tag), true)
		}
		for i, ref := range refs {
			for n := 0; ; n++ {
				got, err := openTest(t, storage(), Options{Parallel: 1}).PutTree(t.Context(), dirs[ref])
				if err == nil && got == ref {
					break
				}
				if err == nil || n > 50 || !errors.Is(err, errInternal) {
					t.Fatalf("seed %d: put: %s, %v", seed, got, err)
				}
				seen["put again"]++
			}
			begun = i + 1
			for n := 0; ; n++ {
				err := openTest(t, storage(), Options{}).SetTag(t.Context(), "trees/latest", []byte(ref))
				if err == nil {
					break
				}
				if n > 50 || !errors.Is(err, errInternal) {
					t.Fatalf("seed %d: tag: %v", seed, err)
				}
			}
		}
		under.during, under.rate = func() {}, 0
		tag, err := openTest(t, under, Options{}).Tag(t.Context(), "trees/latest")
		if err != nil || string(tag) != string(refs[versions-1]) {
			t.Fatalf("seed %d: in the end the tag is %q, %v", seed, tag, err)
		}
		for _, ref := range refs {
			if err := openTest(t, under, Options{}).GetTree(t.Context(), ref, to); err != nil {
				t.Fatalf("seed %d: in the end: %v", seed, err)
			}
			same(t, to, dirs[ref])
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, what := range []string{"told", "told, not yet", "by tag", "by tag, not yet"} {
		if seen[what] < trials/4 {
			t.Errorf("%d times: %s; the storage was too good: %v", seen[what], what, seen)
		}
	}
}
