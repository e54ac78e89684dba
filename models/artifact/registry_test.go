package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/retry"

	"onnxrl/runtime/atomicfile"
	"onnxrl/runtime/portable"
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

func (h *hub) repository(t testing.TB, name string) *remote.Repository {
	t.Helper()
	repo, err := remoteRepository(h.URL, name)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func remoteRepository(url, name string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(url, "http://") + "/" + name)
	if err != nil {
		return nil, err
	}
	repo.PlainHTTP = true
	// Without the waits of the default client between attempts.
	repo.Client = &http.Client{Transport: &retry.Transport{Policy: func() retry.Policy {
		return &retry.GenericPolicy{Retryable: func(*http.Response, error) (bool, error) { return false, nil }}
	}}}
	return repo, nil
}

// A version with its ancestors goes to a registry and from there into another store, where it has the same digest and gives the same golden outputs. What is there is not sent again.
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
	for title, size := range want {
		p := last[title]
		file := title != "manifest" && title != "image manifest"
		if p.Done != size || p.Size != size || file && p.Skipped != skipped {
			t.Errorf("%s: %q ended as %+v of %d bytes", v, title, p, size)
		}
	}
}

// What has arrived before an interruption is not fetched, and not sent, again.
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
	if up, _ := h.counts(); up != len(v.Files)+1-3 {
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
	if _, gets := h.counts(); gets != 1+len(v.Files)-3 {
		t.Errorf("%d downloads in the second attempt", gets)
	}
	// What was fetched in vain is garbage.
	other := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	h.setFail(block(http.MethodGet, 1+3))
	if _, _, err := other.Pull(t.Context(), repo, "x", PullOptions{}); err == nil {
		t.Fatal("no error")
	}
	if c := collect(t, other, CollectOptions{}); c.Blobs != 3 {
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

// hostileSource is a version whose descriptions say what they like.
type hostileSource struct {
	*memory.Store
	root ocispec.Descriptor
	// body, where it is not nil, is what every layer is answered with.
	body func() io.Reader
}

func (h hostileSource) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return h.root, nil
}

func (h hostileSource) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	if h.body != nil && d.MediaType != ocispec.MediaTypeImageManifest && d.MediaType != ConfigType {
		return io.NopCloser(h.body()), nil
	}
	return h.Store.Fetch(ctx, d)
}

// hostile changes a good version's descriptions; the digests of the descriptions are right.
func hostile(t testing.TB, edit func(image *ocispec.Manifest, m map[string]any)) hostileSource {
	t.Helper()
	d := draft("a", 1)
	blobs, err := d.compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mem := memory.New()
	put := func(mediaType string, b []byte) ocispec.Descriptor {
		desc := content.NewDescriptorFromBytes(mediaType, b)
		if err := mem.Push(context.Background(), desc, bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		return desc
	}
	read := func(b blob) []byte {
		r, err := b.open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	n := len(blobs)
	for _, b := range blobs[:n-2] {
		put(b.desc.MediaType, read(b))
	}
	var image ocispec.Manifest
	m := map[string]any{}
	if err := errors.Join(json.Unmarshal(read(blobs[n-1]), &image), json.Unmarshal(read(blobs[n-2]), &m)); err != nil {
		t.Fatal(err)
	}
	edit(&image, m)
	config, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if c := put(ConfigType, config); image.Config.Size == blobs[n-2].desc.Size {
		c.MediaType = image.Config.MediaType
		image.Config = c
	}
	text, err := json.Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	return hostileSource{Store: mem, root: put(ocispec.MediaTypeImageManifest, text)}
}

func title(s string) func(*ocispec.Manifest, map[string]any) {
	return func(image *ocispec.Manifest, _ map[string]any) {
		image.Layers[1].Annotations = map[string]string{ocispec.AnnotationTitle: s}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Whatever a registry says of a version, a pull either gives a whole version or an error, and writes nothing outside the store's blobs and no more than it was told.
func TestHostileRegistries(t *testing.T) {
	type edit = func(image *ocispec.Manifest, m map[string]any)
	cases := []struct {
		name string
		edit edit
		body func() io.Reader
		says string
	}{
		{"path upwards", title("../../etc/passwd"), nil, `file title "../../etc/passwd"`},
		{"absolute path", title("/etc/passwd"), nil, `file title "/etc/passwd"`},
		{"path of another system", title(`..\..\x`), nil, "file title"},
		{"drive", title("c:x"), nil, "file title"},
		{"zero byte", title("a\x00b"), nil, "file title"},
		{"detour", title("a/../../b"), nil, "file title"},
		{"no title", title(""), nil, "file title"},
		{"long title", title(strings.Repeat("a", 300)), nil, "file title"},
		{"title of another file", title(ModelTitle), nil, "a second file"},
		{"largest size", func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = math.MaxInt64 }, nil, "expected at most"},
		{"sizes that overflow", func(i *ocispec.Manifest, _ map[string]any) {
			i.Layers[0].Size, i.Layers[1].Size = math.MaxInt64, math.MaxInt64
		}, nil, "9223372036854775807 bytes, expected at most"},
		{"negative size", func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = -1 }, nil, "size -1"},
		{"size that lies", func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = 1 << 30 }, func() io.Reader { return strings.NewReader("x") }, "does not have the 1073741824 bytes"},
		{"size that is too small", func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = 3 }, func() io.Reader { return strings.NewReader("xxxx") }, "does not have the 3 bytes"},
		{"endless body", func(*ocispec.Manifest, map[string]any) {}, func() io.Reader { return endless{} }, "bytes that it is said to have"},
		{"other content", func(i *ocispec.Manifest, _ map[string]any) {}, func() io.Reader { return bytes.NewReader(bytes.Repeat([]byte("x"), len(modelBytes(4, 1)))) }, "is not what it is said to be"},
		{"huge configuration", func(i *ocispec.Manifest, _ map[string]any) { i.Config.Size = 1 << 50 }, nil, "expected at most"},
		{"digest that is a path", func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Digest = "sha256:../../../x" }, nil, "digest"},
		{"another algorithm", func(i *ocispec.Manifest, _ map[string]any) {
			i.Layers[0].Digest = digest.SHA512.FromString("x")
		}, nil, "expected SHA-256"},
		{"another program's", func(i *ocispec.Manifest, _ map[string]any) { i.ArtifactType = "application/vnd.example" }, nil, "not a model that this program has published"},
		{"no model", func(i *ocispec.Manifest, _ map[string]any) { i.Layers = i.Layers[1:] }, nil, "0 files of type"},
		{"name that is a path", func(_ *ocispec.Manifest, m map[string]any) { m["name"] = "../a" }, nil, "artefact name"},
		{"another name", func(_ *ocispec.Manifest, m map[string]any) { m["name"] = "b" }, nil, "it is a version of b, expected one of a"},
		{"newer schema", func(_ *ocispec.Manifest, m map[string]any) { m["schema"] = 99 }, nil, "its schema is 99"},
		{"parent that is a path", func(_ *ocispec.Manifest, m map[string]any) { m["parents"] = []string{"../../x"} }, nil, "parent"},
		{"shape that overflows", func(_ *ocispec.Manifest, m map[string]any) {
			m["inputs"] = []any{map[string]any{"name": "x", "shape": []int{1 << 30, 1 << 30, 1 << 30}}}
		}, nil, "shape"},
	}
	for _, c := range cases {
		dir := t.TempDir()
		s := open(t, filepath.Join(dir, "store"), Options{Disk: volatile{atomicfile.OS}})
		h := hostile(t, c.edit)
		h.body = c.body
		_, _, err := s.Pull(t.Context(), h, "x", PullOptions{Name: "a", Aliases: []string{"prod"}, Lineage: true})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
		if n := verifyAll(t, s.Dir()); n != 0 {
			t.Errorf("%s: %d versions", c.name, n)
		}
		if got, _ := os.ReadDir(dir); len(got) != 1 {
			t.Errorf("%s: %d files beside the store", c.name, len(got))
		}
	}
	// The same without malice.
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	if _, _, err := s.Pull(t.Context(), hostile(t, func(*ocispec.Manifest, map[string]any) {}), "x", PullOptions{Name: "a"}); err != nil || verifyAll(t, s.Dir()) != 1 {
		t.Error(err)
	}
	if _, _, err := s.Pull(t.Context(), hostile(t, func(*ocispec.Manifest, map[string]any) {}), "x", PullOptions{MaxBytes: 100}); err == nil || !strings.Contains(err.Error(), "expected at most 100") {
		t.Errorf("error %v", err)
	}
	if len(cases) != 26 {
		t.Errorf("%d cases", len(cases))
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

// FuzzPull lets a registry answer with any image manifest and any manifest.
func FuzzPull(f *testing.F) {
	h := hostile(f, func(*ocispec.Manifest, map[string]any) {})
	text, err := content.FetchAll(context.Background(), h.Store, h.root)
	if err != nil {
		f.Fatal(err)
	}
	image, err := decodeImage(text)
	if err != nil {
		f.Fatal(err)
	}
	config, err := content.FetchAll(context.Background(), h.Store, image.Config)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, config)
	f.Add([]byte(`{"layers":[{"digest":"sha256:../x","size":-1}]}`), []byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, imageText, configText []byte) {
		// The fuzzer cannot guess the digest of the manifest.
		var image ocispec.Manifest
		if json.Unmarshal(imageText, &image) == nil && image.Config.MediaType == ConfigType {
			image.Config.Digest, image.Config.Size = digest.FromBytes(configText), int64(len(configText))
			if text, err := json.Marshal(image); err == nil {
				imageText = text
			}
		}
		root := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, imageText)
		source := texts{root.Digest: imageText, digest.FromBytes(configText): configText}
		r, err := describeRemote(context.Background(), source, root, PullOptions{MaxBytes: 1 << 20})
		if err != nil {
			return
		}
		if CheckName(r.manifest.Name) != nil {
			t.Errorf("name %q was accepted", r.manifest.Name)
		}
		if _, err := r.manifest.encode(); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
		for _, f := range r.files {
			if !filepath.IsLocal(filepath.FromSlash(f.Title)) || f.Size < 0 || f.Size > 1<<20 {
				t.Errorf("file %q of %d bytes was accepted", f.Title, f.Size)
			}
		}
	})
}

// texts are blobs in memory.
type texts map[digest.Digest][]byte

func (s texts) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	b, ok := s[d.Digest]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// A stranger has put versions into the layout whose digests are right and whose descriptions are hostile: they are named, nothing is written for them, and the others keep working.
func TestHostileEntries(t *testing.T) {
	edits := map[string]func(*ocispec.Manifest, map[string]any){
		"file title": title("../../../escaped"),
		"size -1":    func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = -1 },
		"artefact name": func(_ *ocispec.Manifest, m map[string]any) {
			m["name"] = "../a"
		},
	}
	for says, edit := range edits {
		dir := t.TempDir()
		s := open(t, filepath.Join(dir, "store"), Options{Disk: volatile{atomicfile.OS}})
		good := publish(t, s, draft("good", 5))
		h := hostile(t, edit)
		there, err := oci.New(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		text, err := content.FetchAll(t.Context(), h.Store, h.root)
		if err != nil {
			t.Fatal(err)
		}
		var image ocispec.Manifest
		if err := json.Unmarshal(text, &image); err != nil {
			t.Fatal(err)
		}
		for _, d := range []ocispec.Descriptor{image.Config, h.root} {
			b, err := content.FetchAll(t.Context(), h.Store, d)
			if err != nil {
				t.Fatal(err)
			}
			if err := there.Push(t.Context(), d, bytes.NewReader(b)); err != nil {
				t.Fatal(err)
			}
		}
		if err := there.Tag(t.Context(), h.root, "a:latest"); err != nil {
			t.Fatal(err)
		}
		list, err := s.List()
		if err == nil || !strings.Contains(err.Error(), says) || len(list) != 1 || list[0].Digest != good.Digest {
			t.Errorf("%s: listed %v, %v", says, list, err)
		}
		for what, f := range map[string]func() error{
			"resolve": func() error { _, err := s.Resolve("a"); return err },
			"collect": func() error { _, err := s.Collect(t.Context(), CollectOptions{}); return err },
			"push": func() error {
				_, _, err := s.Push(t.Context(), h.root.Digest.String(), memory.New(), PushOptions{})
				return err
			},
			"verify":  func() error { _, err := s.Verify(t.Context(), nil); return err },
			"lineage": func() error { _, err := s.Lineage("a"); return err },
		} {
			if err := f(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s gives %v", says, what, err)
			}
		}
		if _, err := good.Extract(t.Context(), filepath.Join(dir, "out")); err != nil {
			t.Error(err)
		}
		if got, _ := os.ReadDir(dir); len(got) != 2 {
			t.Errorf("%s: %v beside the store", says, got)
		}
		// Its alias can be taken away, which does not make it readable, and published over.
		unalias(t, s, "a", Latest)
		publish(t, s, draft("a", 1))
		resolve(t, s, "a")
	}
	if len(edits) != 3 {
		t.Errorf("%d cases", len(edits))
	}
}
