package artifact

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Images whose layers are good blobs in the wrong places, of this program and of one that listed no
// files, are not taken, and leave nothing that is listed.
func TestCrossedLayersAreRefused(t *testing.T) {
	type edit = func(image *ocispec.Manifest)
	swap := func(of func(a, b *ocispec.Descriptor)) edit {
		return func(image *ocispec.Manifest) { of(&image.Layers[0], &image.Layers[1]) }
	}
	content1 := func(a, b *ocispec.Descriptor) {
		a.Digest, b.Digest, a.Size, b.Size = b.Digest, a.Digest, b.Size, a.Size
	}
	kind := func(a, b *ocispec.Descriptor) { a.MediaType, b.MediaType = b.MediaType, a.MediaType }
	name := func(a, b *ocispec.Descriptor) { a.Annotations, b.Annotations = b.Annotations, a.Annotations }
	wide, wideGolden := modelBytes(6, 1), func() []byte {
		in, out := PortsOf(model(6, 1))
		b, err := golden(6, 1).encode(in, out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}()
	other := func(layer int, b []byte) edit {
		return func(image *ocispec.Manifest) {
			d := content.NewDescriptorFromBytes("", b)
			image.Layers[layer].Digest, image.Layers[layer].Size = d.Digest, d.Size
		}
	}
	cases := []struct {
		what string
		edit edit
		ok   bool
	}{
		{"nothing", func(*ocispec.Manifest) {}, true},
		{"contents", swap(content1), false},
		{"media types", swap(kind), false},
		{"titles", swap(name), false},
		{"media types and titles", swap(func(a, b *ocispec.Descriptor) { kind(a, b); name(a, b) }), false},
		{"the order alone", swap(func(a, b *ocispec.Descriptor) { *a, *b = *b, *a }), true},
		{"another version's model", other(0, wide), false},
		{"another version's golden values", other(1, wideGolden), false},
		{"no golden values", func(image *ocispec.Manifest) { image.Layers = image.Layers[:1] }, false},
		{"both files of another version", func(image *ocispec.Manifest) { other(0, wide)(image); other(1, wideGolden)(image) }, false},
	}
	n := 0
	for _, listed := range []bool{true, false} {
		for _, c := range cases {
			h := hostile(t, func(image *ocispec.Manifest, m map[string]any) {
				c.edit(image)
				if !listed {
					delete(m, "files")
				}
			})
			for _, b := range [][]byte{wide, wideGolden} {
				if err := h.Store.Push(context.Background(), content.NewDescriptorFromBytes(ModelType, b), bytes.NewReader(b)); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
			_, _, err := s.Pull(t.Context(), byDigest{h}, "x", PullOptions{Name: "a", Aliases: []string{"prod"}})
			versions := verifyAll(t, s.Dir())
			if c.ok != (err == nil) || !c.ok && !errors.Is(err, ErrCrossed) || versions != btoi(c.ok) {
				t.Errorf("%s, listed %v: %v, %d versions", c.what, listed, err, versions)
			}
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d cases", n)
	}
}

// Two files of one kind and size have nothing but the manifest's list to tell them apart.
func TestFilesOfOneKindAreToldApart(t *testing.T) {
	s := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}})
	d := draft("a", 1)
	d.Files = []NewFile{{Title: "long.bin", Data: []byte("long")}, {Title: "short.bin", Data: []byte("shrt")}}
	v := publish(t, s, d)
	if len(v.Manifest.Files) != 4 || v.Manifest.Files["long.bin"] != v.Files[1].Digest {
		t.Errorf("%v", v.Manifest.Files)
	}
	files := append([]File(nil), v.Files...)
	files[1].Digest, files[2].Digest = files[2].Digest, files[1].Digest
	if err := v.Manifest.checkFiles(files); !errors.Is(err, ErrCrossed) || !strings.Contains(err.Error(), `file "long.bin" has the content of "short.bin"`) {
		t.Error(err)
	}
}

// byDigest finds layers under either media type, as registries do.
type byDigest struct{ hostileSource }

func (h byDigest) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	for _, d.MediaType = range []string{d.MediaType, ModelType, GoldenType} {
		if ok, err := h.Exists(ctx, d); ok && err == nil {
			break
		}
	}
	return h.hostileSource.Fetch(ctx, d)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
