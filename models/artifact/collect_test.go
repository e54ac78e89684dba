package artifact

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func from(name string, k float32, parents ...Version) Draft {
	d := draft(name, k)
	for _, p := range parents {
		d.Manifest.Parents = append(d.Manifest.Parents, p.Digest)
	}
	return d
}

// generations publishes a chain: three versions of base, and a tip that was made from the second,
// which was made from the first. Two versions of other end with no need for the first of them.
func generations(t *testing.T, s *Store) map[string]Version {
	t.Helper()
	v := map[string]Version{}
	v["base1"] = publish(t, s, draft("base", 1))
	v["base2"] = publish(t, s, from("base", 2, v["base1"]))
	v["base3"] = publish(t, s, draft("base", 3))
	v["base4"] = publish(t, s, draft("base", 4))
	v["tip"] = publish(t, s, from("tip", 5, v["base2"]))
	v["other1"] = publish(t, s, draft("other", 6))
	v["other2"] = publish(t, s, draft("other", 7))
	return v
}

func collect(t *testing.T, s *Store, o CollectOptions) Collected {
	t.Helper()
	c, err := s.Collect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// storeBytes counts the blobs of a store and their bytes.
func storeBytes(t *testing.T, s *Store) (n int, bytes int64) {
	t.Helper()
	list, err := os.ReadDir(s.blobDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		n++
		bytes += st.Size()
	}
	return n, bytes
}

func TestCollectKeepsWhatIsNeeded(t *testing.T) {
	day := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name    string
		prepare func(t *testing.T, s *Store, v map[string]Version)
		options func(v map[string]Version) CollectOptions
		removed []string
		recent  int
	}{
		{"aliases and parents of parents", nil, nil, []string{"base3", "other1"}, 0},
		{"another alias", func(t *testing.T, s *Store, v map[string]Version) { alias(t, s, v["base3"], "prod") }, nil, []string{"other1"}, 0},
		{"an alias of another program", func(t *testing.T, s *Store, v map[string]Version) { foreignTag(t, s, v["other1"], "anything") }, nil, []string{"base3"}, 0},
		{"without the alias of the chain", func(t *testing.T, s *Store, v map[string]Version) { unalias(t, s, "tip", Latest) }, nil, []string{"base1", "base2", "base3", "tip", "other1"}, 0},
		{"the last of each name", nil, func(map[string]Version) CollectOptions { return CollectOptions{KeepLast: 2} }, nil, 0},
		{"the last without aliases", func(t *testing.T, s *Store, v map[string]Version) {
			unalias(t, s, "other", Latest)
			unalias(t, s, "tip", Latest)
		}, func(map[string]Version) CollectOptions { return CollectOptions{KeepLast: 1} }, []string{"base3", "other1"}, 0},
		{"needed elsewhere", nil, func(v map[string]Version) CollectOptions {
			return CollectOptions{Keep: []string{v["base3"].Digest, digestPrefix + hex64}}
		}, []string{"other1"}, 0},
		{"recent", nil, func(map[string]Version) CollectOptions { return CollectOptions{Before: day.Add(6 * time.Second)} }, []string{"base3"}, 1},
		{"recent with its parents", func(t *testing.T, s *Store, v map[string]Version) { unalias(t, s, "tip", Latest) }, func(map[string]Version) CollectOptions {
			return CollectOptions{Before: day.Add(5 * time.Second)}
		}, []string{"base3"}, 4},
	}
	for _, c := range cases {
		s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
		v := generations(t, s)
		if c.prepare != nil {
			c.prepare(t, s, v)
		}
		o := CollectOptions{}
		if c.options != nil {
			o = c.options(v)
		}
		// Files that killed processes have left are old; those written just now count as recent.
		blobs, bytes := storeBytes(t, s)
		o.DryRun = true
		dry := collect(t, s, o)
		if n, b := storeBytes(t, s); n != blobs || b != bytes || verifyAll(t, s.Dir()) != len(v) {
			t.Errorf("%s: a dry run has changed the store", c.name)
		}
		o.DryRun = false
		got := collect(t, s, o)
		var names []string
		for _, r := range got.Removed {
			for n, x := range sorted.All(v) {
				if x.Digest == r.Digest {
					names = append(names, n)
				}
			}
		}
		if !slices.Equal(names, c.removed) || got.Kept != len(v)-len(c.removed) || got.Recent != c.recent {
			t.Errorf("%s: removed %v, kept %d, %d of them recent", c.name, names, got.Kept, got.Recent)
		}
		if len(dry.Removed) != len(got.Removed) || dry.Kept != got.Kept || dry.Recent != got.Recent || dry.Blobs != got.Blobs || dry.Bytes != got.Bytes {
			t.Errorf("%s: a dry run says %+v", c.name, dry)
		}
		if n, b := storeBytes(t, s); blobs-n != got.Blobs || bytes-b != got.Bytes || o.Before.IsZero() && got.Blobs < 2*len(c.removed) {
			t.Errorf("%s: %d blobs and %d bytes removed, it says %d and %d", c.name, blobs-n, bytes-b, got.Blobs, got.Bytes)
		}
		if n := verifyAll(t, s.Dir()); n != got.Kept {
			t.Errorf("%s: %d versions are whole, %d kept", c.name, n, got.Kept)
		}
		if again := collect(t, s, o); len(again.Removed) != 0 || again.Blobs != 0 {
			t.Errorf("%s: a second collection removed %d versions and %d blobs", c.name, len(again.Removed), again.Blobs)
		}
	}
	if len(cases) != 9 {
		t.Errorf("%d cases", len(cases))
	}
}

func alias(t *testing.T, s *Store, v Version, name string) {
	t.Helper()
	if _, err := s.Alias(t.Context(), v.Digest, name); err != nil {
		t.Fatal(err)
	}
}

func unalias(t *testing.T, s *Store, name, alias string) {
	t.Helper()
	if err := s.RemoveAlias(t.Context(), name, alias); err != nil {
		t.Fatal(err)
	}
}

func foreignTag(t *testing.T, s *Store, v Version, name string) {
	t.Helper()
	there, err := oci.New(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := there.Tag(t.Context(), v.descriptor(), name); err != nil {
		t.Fatal(err)
	}
}

// Artefacts of other programs stay with all they consist of, and so do versions that they refer to;
// blobs without an entry go.
func TestCollectAndOtherPrograms(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	signed := publish(t, s, draft("a", 1))
	unsigned := publish(t, s, draft("a", 2))
	publish(t, s, draft("a", 3))
	ctx := t.Context()
	there, err := oci.New(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	layer, err := oras.PushBytes(ctx, there, "application/vnd.example", []byte("signature"))
	if err != nil {
		t.Fatal(err)
	}
	subject := signed.descriptor()
	signature, err := oras.PackManifest(ctx, there, oras.PackManifestVersion1_1, "application/vnd.example.signature", oras.PackManifestOptions{Subject: &subject, Layers: []ocispec.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := oras.PushBytes(ctx, there, "application/vnd.example", []byte("lost"))
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(s.blobDir(), "README")
	rewrite(t, notes, []byte("not a blob"))
	if c := collect(t, s, CollectOptions{Before: time.Now().Add(-time.Hour), DryRun: true}); c.Blobs != 0 {
		t.Errorf("%d blobs that were written just now would be removed", c.Blobs)
	}
	c := collect(t, s, CollectOptions{})
	if len(c.Removed) != 1 || c.Removed[0].Digest != unsigned.Digest {
		t.Errorf("removed %v", c.Removed)
	}
	for d, want := range sorted.All(map[digest.Digest]bool{layer.Digest: true, signature.Digest: true, lost.Digest: false}) {
		if _, err := os.Stat(s.blobPath(d)); (err == nil) != want {
			t.Errorf("%s: %v", d, err)
		}
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error(err)
	}
	verifyAll(t, s.Dir())
}

func TestCollectRefuses(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	v := publish(t, s, draft("a", 1))
	publish(t, s, draft("a", 2))
	for _, c := range []struct {
		o    CollectOptions
		says string
	}{{CollectOptions{KeepLast: -1}, "keep the last -1"}, {CollectOptions{Keep: []string{"sha256:12"}}, `digest "sha256:12"`}} {
		if _, err := s.Collect(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v, want %q", err, c.says)
		}
	}
	// A version that cannot be read may need others.
	rewrite(t, s.blobPath(digest.Digest(v.Digest)), []byte("{}"))
	before, _ := storeBytes(t, s)
	_, err := s.Collect(t.Context(), CollectOptions{})
	if after, _ := storeBytes(t, s); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "nothing is removed") || before != after {
		t.Errorf("%d of %d blobs, error %v", after, before, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// Every disk operation of a collection fails once; what is kept is whole, and the next collection
// ends the work.
func TestCollectMayFailAnywhere(t *testing.T) {
	fault := errors.New("fault")
	failures, every := 0, longtest.Every(t, 4)
	for n := 1; ; n += every {
		s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
		generations(t, s)
		disk := &removals{Disk: faultdisk.New(volatile{atomicfile.OS}), failAt: n - 7, fault: fault}
		disk.FailAt(n, fault)
		_, err := open(t, s.Dir(), Options{Disk: disk}).Collect(t.Context(), CollectOptions{})
		failed := disk.Failed() || disk.removed >= n-7 && n > 7
		if failed != errors.Is(err, fault) {
			t.Errorf("operation %d: error %v", n, err)
		}
		verifyAll(t, s.Dir())
		collect(t, s, CollectOptions{})
		if got := verifyAll(t, s.Dir()); got != 5 {
			t.Errorf("operation %d failed: %d versions in the end", n, got)
		}
		if blobs, _ := storeBytes(t, s); blobs != wholeBlobs(t, s) {
			t.Errorf("operation %d failed: %d blobs in the end", n, blobs)
		}
		if !failed {
			break
		}
		failures++
	}
	// Seven of replacing the index and making the names of the folder durable, and the files of two
	// versions that no other has.
	if failures != (7+2*4+every-1)/every {
		t.Errorf("only %d operations failed", failures)
	}
}

// volatile is a disk that makes nothing durable, which only a power failure would tell, and is
// fast.
type volatile struct{ atomicfile.Disk }

func (d volatile) Create(path string) (atomicfile.File, error) {
	f, err := d.Disk.Create(path)
	if err != nil {
		return nil, err
	}
	return volatileFile{f}, nil
}
func (volatile) SyncDir(string) error { return nil }

type volatileFile struct{ atomicfile.File }

func (volatileFile) Sync() error { return nil }

// removals is a disk of which the n-th removal of a blob fails too.
type removals struct {
	*faultdisk.Disk
	removed, failAt int
	fault           error
}

func (d *removals) RemoveAll(path string) error {
	if atomicfile.IsTemp(filepath.Base(path)) {
		return d.Disk.RemoveAll(path)
	}
	if d.removed++; d.removed == d.failAt {
		return d.fault
	}
	return d.Disk.RemoveAll(path)
}

// wholeBlobs counts the different files of all versions.
func wholeBlobs(t *testing.T, s *Store) int {
	t.Helper()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, v := range list {
		all[v.Digest], all[v.configDigest.String()] = true, true
		for _, f := range v.Files {
			all[f.Digest] = true
		}
	}
	return len(all)
}

// A publication counts on blobs that are there, and a collection removes them before it commits:
// the version is whole all the same. The two go on at once a few hundred times.
func TestCollectBesidePublishers(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	// The same files as those of a version that goes: only the manifest differs.
	d := draft("a", 1)
	blobs, err := d.compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := publish(t, s, d)
	staged := map[string]*staged{}
	if err := s.stageMissing(t.Context(), blobs, staged); err != nil || len(staged) != 0 {
		t.Fatalf("%d staged, %v", len(staged), err)
	}
	unalias(t, s, "a", Latest)
	if c := collect(t, s, CollectOptions{}); len(c.Removed) != 1 || c.Removed[0].Digest != old.Digest {
		t.Fatalf("removed %v", c.Removed)
	}
	if done, err := s.commit(t.Context(), blobs, staged, func(*ocispec.Index) { t.Error("listed") }); done || err != nil {
		t.Errorf("committed %v, %v", done, err)
	}
	const rounds = 60
	errs := make(chan error, 3)
	for w := range 2 {
		go func() {
			mine, err := Open(s.Dir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
			for i := 0; i < rounds && err == nil; i++ {
				d := draft("w"+fmt.Sprint(w), float32(i%3))
				d.Manifest.EnvStep = int64(i)
				_, err = mine.Publish(t.Context(), d)
			}
			errs <- err
		}()
	}
	go func() {
		var err error
		for i := 0; i < rounds && err == nil; i++ {
			_, err = s.Collect(t.Context(), CollectOptions{})
		}
		errs <- err
	}()
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	collect(t, s, CollectOptions{})
	if n := verifyAll(t, s.Dir()); n != 2 {
		t.Errorf("%d versions", n)
	}
}

func TestRemoveAlias(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	d := draft("a", 1)
	d.Aliases = []string{"best"}
	v := publish(t, s, d)
	publish(t, s, draft("b", 1))
	unalias(t, s, "a", "best")
	if got := resolve(t, s, "a"); got.Digest != v.Digest || !slices.Equal(got.Aliases, []string{Latest}) || !got.Published.Equal(v.Published) {
		t.Errorf("%v with %v of %v", got, got.Aliases, got.Published)
	}
	cases := []struct{ name, alias, says string }{
		{"a", "best", "aliases of a: expected latest"},
		{"c", "best", "names in the store: expected a, b"},
		{"A", "best", `artefact name "A"`},
		{"a", "b c", `alias "b c"`},
	}
	for _, c := range cases {
		if err := s.RemoveAlias(t.Context(), c.name, c.alias); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s:%s: error %v", c.name, c.alias, err)
		}
	}
	if err := s.RemoveAlias(t.Context(), "a", "best"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
	// Another program may have written one entry for a version and its tag.
	index, err := s.readIndex()
	if err != nil {
		t.Fatal(err)
	}
	index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool { return d.Annotations[ocispec.AnnotationRefName] == "" })
	if err := s.writeIndex(index); err != nil {
		t.Fatal(err)
	}
	unalias(t, s, "a", Latest)
	resolve(t, s, v.Digest)
	if n := verifyAll(t, s.Dir()); n != 2 || len(cases) != 4 {
		t.Errorf("%d versions", n)
	}
}
