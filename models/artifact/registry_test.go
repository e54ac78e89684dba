package artifact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// hub is a registry on a loopback port that counts what it is asked.
type hub struct {
	*httptest.Server
	mu      sync.Mutex
	uploads int // of blobs
	gets    int // of blobs
	// fail, where it is not nil, answers in the registry's place where it returns true.
	fail func(w http.ResponseWriter, r *http.Request) bool
}

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{}
	under := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		blob := strings.Contains(r.URL.Path, "/blobs/")
		if blob && r.Method == http.MethodPut {
			h.uploads++
		}
		if blob && r.Method == http.MethodGet {
			h.gets++
		}
		fail := h.fail
		h.mu.Unlock()
		if fail != nil && fail(w, r) {
			return
		}
		under.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Server.Close)
	return h
}

// counts returns and resets the number of uploads and downloads of blobs.
func (h *hub) counts() (uploads, gets int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	uploads, gets = h.uploads, h.gets
	h.uploads, h.gets = 0, 0
	return uploads, gets
}

func (h *hub) setFail(f func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = f
}

func (h *hub) repository(t testing.TB, name string) hubRepository {
	t.Helper()
	repo, err := remoteRepository(h.URL, name)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// hubRepository marks what is not there, as package registry does, which this one cannot import.
type hubRepository struct{ *remote.Repository }

func (r hubRepository) Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error) {
	d, err := r.Repository.Resolve(ctx, ref)
	if errors.Is(err, errdef.ErrNotFound) {
		err = NotFound(err)
	}
	return d, err
}

func remoteRepository(url, name string) (hubRepository, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(url, "http://") + "/" + name)
	if err != nil {
		return hubRepository{}, err
	}
	repo.PlainHTTP = true
	// Without the waits of the default client between attempts.
	repo.Client = &http.Client{Transport: &retry.Transport{Policy: func() retry.Policy {
		return &retry.GenericPolicy{Retryable: func(*http.Response, error) (bool, error) { return false, nil }}
	}}}
	return hubRepository{repo}, nil
}

// A version with its ancestors goes to a registry and from there into another store, where it has
// the same digest and gives the same golden outputs. What is there is not sent again.
func TestPushAndPull(t *testing.T) {
	h := newHub(t)
	repo := h.repository(t, "team/models")
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	first := publish(t, s, draft("team/a", 1))
	d := from("team/a", 2, first)
	d.Manifest.Parents = append(d.Manifest.Parents, digestPrefix+hex64)
	d.Files = []NewFile{{Title: "doc/notes.txt", Data: []byte("notes")}}
	second := publish(t, s, d)

	var seen []Progress
	report := func(p Progress) { seen = append(seen, p) }
	v, n, err := s.Push(t.Context(), "team/a", repo, PushOptions{Tags: []string{"latest", "prod"}, Lineage: true, Progress: report})
	if err != nil || n != 2 || v.Digest != second.Digest {
		t.Fatalf("pushed %d, %v, %v", n, v, err)
	}
	if up, _ := h.counts(); up != 7 {
		t.Errorf("%d uploads", up)
	}
	complete(t, seen, second, false)
	complete(t, seen, first, false)
	seen = nil
	if _, n, err = s.Push(t.Context(), "team/a:latest", repo, PushOptions{Tags: []string{"again"}, Progress: report}); err != nil || n != 1 {
		t.Fatalf("pushed %d, %v", n, err)
	}
	if up, _ := h.counts(); up != 0 {
		t.Errorf("%d uploads of what was there", up)
	}
	complete(t, seen, second, true)

	for _, ref := range []string{"prod", "again", second.Digest} {
		seen = nil
		to := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
		got, n, err := to.Pull(t.Context(), repo, ref, PullOptions{Name: "team/a", Aliases: []string{"prod"}, Lineage: true, Progress: report})
		if err != nil || n != 2 || got.Digest != second.Digest || !slices.Equal(got.Aliases, []string{"prod"}) || got.Published.IsZero() {
			t.Fatalf("%s: pulled %d, %v with %v, %v", ref, n, got, got.Aliases, err)
		}
		complete(t, seen, second, false)
		list, err := to.Verify(t.Context(), portable.New())
		if err != nil || len(list) != 2 || list[0].Golden == 0 || list[1].Golden == 0 {
			t.Errorf("%s: verified %+v, %v", ref, list, err)
		}
		if _, gets := h.counts(); gets != 7 {
			t.Errorf("%s: %d downloads", ref, gets)
		}
		seen = nil
		if _, _, err := to.Pull(t.Context(), repo, ref, PullOptions{Progress: report}); err != nil {
			t.Error(err)
		}
		complete(t, seen, second, true)
		// The manifest is read to know what there is.
		if _, gets := h.counts(); gets != 1 {
			t.Errorf("%s: %d downloads of what is there", ref, gets)
		}
		line, err := to.Lineage("team/a:prod")
		if err != nil || len(line) != 3 || line[1].Version == nil || line[2].Version != nil {
			t.Errorf("%s: lineage %v, %v", ref, line, err)
		}
	}
	// Without its ancestors.
	to := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	if _, n, err := to.Pull(t.Context(), repo, "prod", PullOptions{}); err != nil || n != 1 || verifyAll(t, to.Dir()) != 1 {
		t.Errorf("pulled %d, %v", n, err)
	}
	if _, err := to.Resolve("team/a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an alias that was not asked for: %v", err)
	}
	// A damaged file is fetched again.
	path := to.blobPath(digest.Digest(second.Files[0].Digest))
	rewrite(t, path, []byte("damage"))
	if _, _, err := to.Pull(t.Context(), repo, "prod", PullOptions{}); err != nil || verifyAll(t, to.Dir()) != 1 {
		t.Errorf("repaired with %v", err)
	}
}

// complete checks that all files of a version were reported to their last byte.
func complete(t *testing.T, seen []Progress, v Version, skipped bool) {
	t.Helper()
	want := map[string]int64{"manifest": v.config, "image manifest": v.size}
	for _, f := range v.Files {
		want[f.Title] = f.Size
	}
	last := map[string]Progress{}
	for _, p := range seen {
		if p.Version == v.Digest {
			last[p.Title] = p
		}
	}
	for title, size := range sorted.All(want) {
		p := last[title]
		file := title != "manifest" && title != "image manifest"
		if p.Done != size || p.Size != size || file && p.Skipped != skipped {
			t.Errorf("%s: %q ended as %+v of %d bytes", v, title, p, size)
		}
	}
}

// Blobs that have arrived before an interruption are not fetched, and not sent, again.
func TestInterruptedTransfersGoOn(t *testing.T) {
	h := newHub(t)
	repo := h.repository(t, "a")
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	d := draft("a", 1)
	for _, title := range []string{"1", "2", "3", "4"} {
		d.Files = append(d.Files, NewFile{Title: title, Data: bytes.Repeat([]byte(title), 3000)})
	}
	v := publish(t, s, d)
	// Three uploads are let through, then the registry is out of order.
	block := func(method string, after int) func(http.ResponseWriter, *http.Request) bool {
		var mu sync.Mutex
		n := 0
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			if n++; n <= after {
				return false
			}
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
	}
	h.setFail(block(http.MethodPut, 3))
	if _, _, err := s.Push(t.Context(), "a", repo, PushOptions{Tags: []string{"x"}}); err == nil || !strings.Contains(err.Error(), "502") {
		t.Fatalf("error %v", err)
	}
	if _, err := repo.Resolve(t.Context(), "x"); err == nil {
		t.Fatal("half a version has a tag")
	}
	h.setFail(nil)
	h.counts()
	if _, _, err := s.Push(t.Context(), "a", repo, PushOptions{Tags: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	// Transfers run side by side: one that was let through may still be cut off by the failure of
	// another.
	if up, _ := h.counts(); up < len(v.Files)+1-3 || up > len(v.Files) {
		t.Errorf("%d uploads in the second attempt", up)
	}

	to := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	h.setFail(block(http.MethodGet, 1+3)) // the manifest, and three files
	if _, _, err := to.Pull(t.Context(), repo, "x", PullOptions{}); err == nil || !strings.Contains(err.Error(), "502") {
		t.Fatalf("error %v", err)
	}
	if n := verifyAll(t, to.Dir()); n != 0 {
		t.Errorf("%d versions after a pull that failed", n)
	}
	h.setFail(nil)
	h.counts()
	if _, _, err := to.Pull(t.Context(), repo, "x", PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, gets := h.counts(); gets < 1+len(v.Files)-3 || gets > len(v.Files) {
		t.Errorf("%d downloads in the second attempt", gets)
	}
	// Blobs that were fetched in vain are garbage.
	other := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	h.setFail(block(http.MethodGet, 1+3))
	if _, _, err := other.Pull(t.Context(), repo, "x", PullOptions{}); err == nil {
		t.Fatal("no error")
	}
	if c := collect(t, other, CollectOptions{}); c.Blobs < 1 || c.Blobs > 3 {
		t.Errorf("%d blobs collected", c.Blobs)
	}
	if n, _ := storeBytes(t, other); n != 0 || verifyAll(t, to.Dir()) != 1 {
		t.Errorf("%d blobs left", n)
	}
}

// A damaged blob does not reach the registry under the name of a good one.
func TestDamageIsNotPushed(t *testing.T) {
	h := newHub(t)
	// The registry says so there what it also answers.
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	repo := h.repository(t, "a")
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	v := publish(t, s, draft("a", 1))
	path := s.blobPath(digest.Digest(v.Files[0].Digest))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[3] ^= 1
	rewrite(t, path, b)
	if _, _, err := s.Push(t.Context(), "a", repo, PushOptions{Tags: []string{"x"}}); err == nil {
		t.Error("a damaged model was pushed")
	}
	if _, err := repo.Resolve(t.Context(), "x"); err == nil {
		t.Error("it has a tag")
	}
	if _, _, err := s.Push(t.Context(), "a", repo, PushOptions{Tags: []string{"a:b"}}); err == nil || !strings.Contains(err.Error(), `tag: alias "a:b"`) {
		t.Errorf("a bad tag: %v", err)
	}
	if _, _, err := s.Push(t.Context(), "none", repo, PushOptions{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

// Versions go from one store to another, and to oras's layouts, without a registry between.
func TestPullFromALayout(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	first := publish(t, s, draft("a", 1))
	v := publish(t, s, from("a", 2, first))
	source, err := oci.New(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	to := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	if got, n, err := to.Pull(t.Context(), source, "a:latest", PullOptions{Lineage: true, Aliases: []string{Latest}}); err != nil || n != 2 || got.Digest != v.Digest {
		t.Errorf("%d, %v, %v", n, got, err)
	}
	if n := verifyAll(t, to.Dir()); n != 2 {
		t.Errorf("%d versions", n)
	}
	// From store to store, with the ancestors that there are.
	d := from("b", 3, v)
	d.Manifest.Parents = append(d.Manifest.Parents, digestPrefix+hex64)
	tip := publish(t, s, d)
	third := open(t, t.TempDir(), Options{})
	if got, err := third.CopyFrom(t.Context(), s, "b", PullOptions{Lineage: true, Aliases: []string{"best"}}); err != nil || got.Digest != tip.Digest || verifyAll(t, third.Dir()) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := third.CopyFrom(t.Context(), s, "c", PullOptions{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if got, err := s.CopyFrom(t.Context(), s, "a", PullOptions{Aliases: []string{"again"}}); err != nil || !slices.Contains(got.Aliases, "again") {
		t.Errorf("into itself: %v, %v", got, err)
	}
	layout, err := oci.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := to.Push(t.Context(), "a", layout, PushOptions{Tags: []string{"v1"}}); err != nil {
		t.Fatal(err)
	}
	if desc, err := oras.Resolve(t.Context(), layout, "v1", oras.DefaultResolveOptions); err != nil || desc.Digest.String() != v.Digest {
		t.Errorf("%v, %v", desc, err)
	}
}
