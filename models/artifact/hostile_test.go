package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

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

// Whatever a registry says of a version, a pull either gives a whole version or an error, and
// writes nothing outside the store's blobs and no more than it was told.
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
		{"a model that is said to be data", func(i *ocispec.Manifest, _ map[string]any) { i.ArtifactType = DataArtifactType }, nil, "1 files of type"},
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
	if len(cases) != 27 {
		t.Errorf("%d cases", len(cases))
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

func (s texts) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, ErrNotFound
}

func (s texts) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	b, ok := s[d.Digest]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// A stranger has put versions into the layout whose digests are right and whose descriptions are
// hostile: they are named, nothing is written for them, and the others keep working.
func TestHostileEntries(t *testing.T) {
	edits := map[string]func(*ocispec.Manifest, map[string]any){
		"file title": title("../../../escaped"),
		"size -1":    func(i *ocispec.Manifest, _ map[string]any) { i.Layers[0].Size = -1 },
		"artefact name": func(_ *ocispec.Manifest, m map[string]any) {
			m["name"] = "../a"
		},
	}
	for says, edit := range sorted.All(edits) {
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
		for what, f := range sorted.All(map[string]func() error{
			"resolve": func() error { _, err := s.Resolve("a"); return err },
			"collect": func() error { _, err := s.Collect(t.Context(), CollectOptions{}); return err },
			"push": func() error {
				_, _, err := s.Push(t.Context(), h.root.Digest.String(), memory.New(), PushOptions{})
				return err
			},
			"verify":  func() error { _, err := s.Verify(t.Context(), nil); return err },
			"lineage": func() error { _, err := s.Lineage("a"); return err },
		}) {
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
