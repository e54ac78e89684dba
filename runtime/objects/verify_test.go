package objects

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestVerify damages every object of a tree at rest, one after the other, and keeps its size. A
// reader says which one it is and what mends it; sending the tree again with Verify does, and
// writes nothing else again.
func TestVerify(t *testing.T) {
	ctx := t.Context()
	dir := writeTree(t, 7)
	under := memoryOf(t)
	ref, err := openTest(t, under, Options{}).PutTree(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string][]byte{}
	for key, b := range sorted.All(under.of) {
		whole[key] = bytes.Clone(b)
	}
	damaged := 0
	for key, b := range sorted.All(whole) {
		if len(b) == 0 {
			continue
		}
		damaged++
		bad := bytes.Clone(b)
		bad[len(bad)/2] ^= 1
		under.of[key] = bad
		get := func() error {
			return openTest(t, under, Options{}).GetTree(ctx, ref, filepath.Join(t.TempDir(), "copy"))
		}
		err := get()
		for _, want := range []string{"the object " + key + " in test://store is damaged", "models push --verify"} {
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q", key, err, want)
			}
		}
		parts := strings.HasPrefix(key, "parts/")
		if _, err := openTest(t, under, Options{}).PutTree(ctx, dir); err != nil {
			t.Fatal(err)
		}
		// Lists of parts are always written.
		if err := get(); (err == nil) != parts {
			t.Errorf("%s: sent again without Verify: %v", key, err)
		}
		s := openTest(t, under, Options{Verify: true})
		if got, err := s.PutTree(ctx, dir); err != nil || got != ref {
			t.Fatalf("%s: sent again: %s, %v", key, got, err)
		}
		if n := s.Stats().Repaired; n != 1 && !parts || n != 0 && parts {
			t.Errorf("%s: %d objects are mended", key, n)
		}
		if err := get(); err != nil || !bytes.Equal(under.of[key], b) {
			t.Errorf("%s is not mended: %v", key, err)
		}
	}
	if damaged < 10 {
		t.Errorf("%d objects", damaged)
	}
}

// TestVerifyBlob: a damaged part of a blob makes it one that is not there, for who verifies.
func TestVerifyBlob(t *testing.T) {
	ctx := t.Context()
	under := memoryOf(t)
	content := randomBytes(1, 3*testPart+5)
	b := Blob{DigestOf(content), int64(len(content))}
	if err := openTest(t, under, Options{}).PutBlob(ctx, b, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	part := blobKey(DigestOf(content[testPart : 2*testPart]))
	under.of[part] = randomBytes(2, testPart)
	careless, careful := openTest(t, under, Options{}), openTest(t, under, Options{Verify: true})
	if ok, err := careless.HasBlob(ctx, b); !ok || err != nil {
		t.Errorf("without Verify: %v, %v", ok, err)
	}
	if ok, err := careful.HasBlob(ctx, b); ok || err != nil {
		t.Errorf("with Verify: %v, %v", ok, err)
	}
	if err := careful.PutBlob(ctx, b, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if ok, err := careful.HasBlob(ctx, b); !ok || err != nil || careful.Stats().Repaired != 1 {
		t.Errorf("mended: %v, %v, %+v", ok, err, careful.Stats())
	}
}
