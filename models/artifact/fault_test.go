package artifact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// Every disk operation of making a store and publishing fails once. Afterwards the store holds what
// it held, whole, and the same publication succeeds.
func TestEveryDiskOperationMayFail(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	failures, every := 0, longtest.Every(t, 5)
	for n := 1; ; n += every {
		dir := filepath.Join(t.TempDir(), "store")
		disk := faultdisk.New(volatile{atomicfile.OS})
		disk.FailAt(n, fault)
		s, err := Open(dir, Options{Disk: disk})
		made := err == nil
		if made {
			_, err = s.Publish(t.Context(), draft("a", 1))
		}
		failed := disk.Failed()
		if failed != errors.Is(err, fault) {
			t.Errorf("operation %d: error %v", n, err)
		}
		for _, name := range names(t, dir) {
			if atomicfile.IsTemp(filepath.Base(name)) {
				t.Errorf("operation %d failed and left %s", n, name)
			}
		}
		s = open(t, dir, Options{})
		if _, err := s.Verify(t.Context(), nil); err != nil {
			t.Errorf("operation %d failed: %v", n, err)
		}
		publish(t, s, draft("a", 1))
		if got := verifyAll(t, dir); got != 1 {
			t.Errorf("operation %d failed: %d versions after publishing again", n, got)
		}
		if !failed {
			break
		}
		failures++
	}
	if failures*every < 30 {
		t.Errorf("only %d operations failed", failures)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk := faultdisk.New(volatile{atomicfile.OS})
	s := open(t, dir, Options{Disk: disk})
	old := publish(t, s, draft("a", 1))
	d := Draft{Manifest: Manifest{Name: "a", Kind: "model"}, ModelBytes: modelBytes(2000, 2), Golden: golden(2000, 2)}
	full := 0
	for room := int64(0); ; room += 1500 {
		disk.SetRoom(room)
		_, err := s.Publish(t.Context(), d)
		if err == nil {
			break
		}
		full++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room %d: error %v", room, err)
		}
		disk.SetRoom(-1)
		if v := resolve(t, open(t, dir, Options{MustExist: true}), "a"); v.Digest != old.Digest {
			t.Fatalf("room %d: latest is %s", room, v)
		}
		if n := verifyAll(t, dir); n != 1 {
			t.Fatalf("room %d: %d versions", room, n)
		}
	}
	if full < 10 || verifyAll(t, dir) != 2 {
		t.Errorf("the disk was full %d times", full)
	}
}

// Every file of a version is damaged in every way; each time the damage is found, the error names
// the blob with both digests, other versions are found, and publishing again repairs it.
func TestDamageIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	ways := []struct {
		name   string
		damage func(t *testing.T, path string, b []byte)
		says   []string
	}{
		{"flipped", func(t *testing.T, path string, b []byte) { b[len(b)/2] ^= 8; rewrite(t, path, b) }, []string{"is damaged", "has digest sha256:"}},
		{"shorter", func(t *testing.T, path string, b []byte) { rewrite(t, path, b[:len(b)-1]) }, []string{"is damaged", "bytes, expected"}},
		{"longer", func(t *testing.T, path string, b []byte) { rewrite(t, path, append(b, ' ')) }, []string{"is damaged", "bytes, expected"}},
		{"missing", func(t *testing.T, path string, b []byte) { remove(t, path) }, []string{"is damaged", "is missing"}},
		{"a directory", func(t *testing.T, path string, b []byte) {
			remove(t, path)
			if err := os.Mkdir(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}, []string{"is damaged", "not a regular file"}},
	}
	d := draft("a", 1)
	d.Files = []NewFile{{Title: "notes.txt", Data: []byte("notes")}}
	found, repaired := 0, 0
	parts := []string{ModelTitle, "image manifest", "manifest", GoldenTitle, "notes.txt"}[:longtest.Cases(t, 5, 1)]
	for _, part := range parts {
		for _, way := range ways {
			what := part + ", " + way.name
			s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
			v := publish(t, s, d)
			publish(t, s, draft("b", 2))
			path := blobOfPart(t, s, v, part)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			way.damage(t, path, b)
			list, err := s.Verify(t.Context(), portable.New())
			var damage *DamageError
			if len(list) != 2 || !errors.Is(err, ErrDamaged) || !errors.As(err, &damage) || damage.Path != path || damage.Blob != digestPrefix+filepath.Base(path) {
				t.Errorf("%s: %d verified, error %v", what, len(list), err)
				continue
			}
			for _, says := range append(way.says, damage.Blob) {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%s: the error does not say %q: %v", what, says, err)
				}
			}
			if part == ModelTitle {
				if _, err := v.Model(); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: the model was read, %v", what, err)
				}
				out := t.TempDir()
				if _, err := v.Extract(t.Context(), out); !errors.Is(err, ErrDamaged) || len(names(t, out)) != 0 {
					t.Errorf("%s: extracted %v, %v", what, names(t, out), err)
				}
			}
			good, _ := s.List()
			if !slices.ContainsFunc(good, func(v Version) bool { return v.Manifest.Name == "b" }) {
				t.Errorf("%s: another version is not listed", what)
			}
			found++
			if way.name == "a directory" {
				continue
			}
			publish(t, s, d)
			if _, err := s.Verify(t.Context(), portable.New()); err != nil {
				t.Errorf("%s: after publishing again: %v", what, err)
				continue
			}
			repaired++
		}
	}
	if found != 5*len(parts) || repaired != 4*len(parts) {
		t.Errorf("%d kinds of damage found, %d repaired", found, repaired)
	}
}

func rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func digestOf(text string) digest.Digest { return digest.Digest(text) }

func blobOfPart(t *testing.T, s *Store, v Version, part string) string {
	t.Helper()
	image, err := s.readImage(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digestOf(v.Digest), Size: v.size})
	if err != nil {
		t.Fatal(err)
	}
	switch part {
	case "image manifest":
		return s.blobPath(digestOf(v.Digest))
	case "manifest":
		return s.blobPath(image.Config.Digest)
	}
	for _, f := range v.Files {
		if f.Title == part {
			return s.blobPath(f.desc.Digest)
		}
	}
	t.Fatalf("no part %q", part)
	return ""
}

// The files of the layout itself are damaged.
func TestDamagedLayout(t *testing.T) {
	cases := []struct {
		name, file, content, says string
		damage, opens             bool
	}{
		{"index is no JSON", "index.json", "{", "index.json: unexpected end", true, true},
		{"empty index", "index.json", "", "index.json: unexpected end", true, true},
		{"index of another version", "index.json", `{"schemaVersion":1,"manifests":[]}`, "schemaVersion is 1, expected 2", true, true},
		{"digest that leaves the folder", "index.json", `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:../../../etc/passwd","size":1}]}`, "entry 0: digest", true, true},
		{"negative size", "index.json", `{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex64 + `","size":-1}]}`, "entry 0: size -1", true, true},
		{"tag of two versions", "index.json", `{"schemaVersion":2,"manifests":[{"digest":"sha256:` + hex64 + `","annotations":{"org.opencontainers.image.ref.name":"a:b"}},
			{"digest":"sha256:` + strings.Repeat("0", 64) + `","annotations":{"org.opencontainers.image.ref.name":"a:b"}}]}`, `"a:b" stands for`, true, true},
		{"layout is no JSON", "oci-layout", "x", "oci-layout: invalid character", true, false},
		{"layout of another version", "oci-layout", `{"imageLayoutVersion":"2.0.0"}`, `imageLayoutVersion is "2.0.0", expected "1.0.0"`, false, false},
	}
	for _, c := range cases {
		s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
		publish(t, s, draft("a", 1))
		rewrite(t, filepath.Join(s.Dir(), c.file), []byte(c.content))
		again, err := Open(s.Dir(), Options{})
		if (err == nil) != c.opens {
			t.Errorf("%s: opened with error %v", c.name, err)
			continue
		}
		if c.opens {
			_, err = again.Resolve("a")
			_, perr := again.Publish(t.Context(), draft("a", 2))
			_, lerr := again.List()
			if perr == nil || lerr == nil {
				t.Errorf("%s: publish %v, list %v", c.name, perr, lerr)
			}
			if text, _ := os.ReadFile(filepath.Join(s.Dir(), c.file)); string(text) != c.content {
				t.Errorf("%s: the damaged file was replaced", c.name)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrDamaged) != c.damage {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
	}
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	remove(t, filepath.Join(s.Dir(), "index.json"))
	if _, err := s.List(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "index.json is missing") {
		t.Errorf("no index: %v", err)
	}
	if len(cases) != 8 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestDirectoriesThatAreNoStore(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, filepath.Join(dir, "thesis.tex"), []byte("x"))
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrNoStore) || !strings.Contains(err.Error(), "other files, such as thesis.tex") {
		t.Errorf("a folder of other files: %v", err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left %v", got)
	}
	missing := filepath.Join(dir, "none")
	if _, err := Open(missing, Options{MustExist: true}); !errors.Is(err, ErrNoStore) {
		t.Errorf("a folder that is missing: %v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "thesis.tex"), Options{}); err == nil {
		t.Error("a file was opened as a store")
	}
	if _, err := Open("", Options{}); err == nil || !strings.Contains(err.Error(), "no directory is given") {
		t.Errorf("no folder: %v", err)
	}
}

// A blob that another process removes between the look and the lock is written after all.
func TestBlobsThatVanishAreWrittenAgain(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	d := draft("a", 1)
	blobs, err := d.compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]*staged{}
	done, err := s.commit(t.Context(), blobs, list, func(*ocispec.Index) { t.Error("the index was changed") })
	if done || err != nil {
		t.Errorf("committed without blobs: %v, %v", done, err)
	}
	if err := s.stageMissing(t.Context(), blobs, list); err != nil || len(list) != len(blobs) {
		t.Fatalf("%d of %d staged, %v", len(list), len(blobs), err)
	}
	done, err = s.commit(t.Context(), blobs, list, func(index *ocispec.Index) { s.list(index, blobs[len(blobs)-1].desc, "a", []string{Latest}) })
	if !done || err != nil || verifyAll(t, s.Dir()) != 1 {
		t.Errorf("committed: %v, %v", done, err)
	}
}
