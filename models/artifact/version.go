package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// maxImageManifest bounds image manifests, as registries do.
const maxImageManifest = 4 << 20

// Version is an immutable version of a model, or of data.
type Version struct {
	// Digest identifies the version.
	Digest string
	// Manifest says what the model computes and where it comes from.
	Manifest Manifest
	// Files are the version's files: model, external data, golden values, others.
	Files []File
	// Aliases are the names that stood for the version when it was looked up, sorted.
	Aliases []string
	// Published is when the version was first published; zero where that is not recorded.
	Published time.Time

	store *Store
	// size and config are the bytes of the image manifest and of the manifest.
	size, config int64
	configDigest digest.Digest
}

// File is a file of a version.
type File struct {
	// Title is its name, a slash-separated path within the version.
	Title     string
	MediaType string
	Digest    string
	Size      int64

	desc ocispec.Descriptor
}

// String is the reference that means this version forever, with the digest shortened.
func (v Version) String() string { return v.Manifest.Name + "@" + Short(v.Digest) }

// Short shortens a digest for people: the first 12 digits, which ParseReference takes.
func Short(d string) string { return d[:min(len(d), len(digestPrefix)+12)] }

// Size is the sum of the sizes of the version's files in bytes.
func (v Version) Size() int64 {
	var n int64
	for _, f := range v.Files {
		n += f.Size
	}
	return n
}

func (v Version) file(mediaType string) (File, bool) {
	i := slices.IndexFunc(v.Files, func(f File) bool { return f.MediaType == mediaType })
	if i < 0 {
		return File{}, false
	}
	return v.Files[i], true
}

// load reads the image manifest and the configuration of an index entry.
func (s *Store) load(e entry) (Version, error) {
	v := Version{Digest: e.desc.Digest.String(), Published: e.published, store: s, size: e.desc.Size}
	fail := func(err error) (Version, error) {
		return v, fmt.Errorf("version %s: %w", Short(v.Digest), err)
	}
	image, err := s.readImage(e.desc)
	if err != nil {
		return fail(err)
	}
	if v.Files, err = filesOf(image); err != nil {
		return fail(fmt.Errorf("%w: image manifest: %w", ErrDamaged, err))
	}
	text, err := s.readBlob(image.Config, maxConfig)
	if err != nil {
		return fail(fmt.Errorf("manifest: %w", err))
	}
	m, err := decodeManifest(text)
	if err != nil {
		return fail(fmt.Errorf("manifest: %w", err))
	}
	if err := m.checkFiles(v.Files); err != nil {
		return fail(err)
	}
	v.Manifest, v.config, v.configDigest = *m, image.Config.Size, image.Config.Digest
	for _, t := range e.tags {
		if name, alias, ok := splitTag(t); ok && name == m.Name {
			v.Aliases = append(v.Aliases, alias)
		}
	}
	return v, nil
}

// errForeign marks image manifests of other programs.
var errForeign = errors.New("it is not a model that this program has published")

func (s *Store) readImage(d ocispec.Descriptor) (*ocispec.Manifest, error) {
	text, err := s.readBlob(d, maxImageManifest)
	if err != nil {
		return nil, fmt.Errorf("image manifest: %w", err)
	}
	return decodeImage(text)
}

func decodeImage(text []byte) (*ocispec.Manifest, error) {
	var image ocispec.Manifest
	if err := json.Unmarshal(text, &image); err != nil {
		return nil, fmt.Errorf("image manifest: %w", err)
	}
	if image.ArtifactType != ArtifactType && image.ArtifactType != DataArtifactType || image.Config.MediaType != ConfigType {
		return nil, fmt.Errorf("image manifest of type %q: %w", image.ArtifactType, errForeign)
	}
	return &image, nil
}

// filesOf lists the layers. Titles become paths of files, so they are checked.
func filesOf(image *ocispec.Manifest) ([]File, error) {
	if err := checkDescriptor(image.Config); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var list []File
	for i, l := range image.Layers {
		title := l.Annotations[ocispec.AnnotationTitle]
		if err := errors.Join(checkDescriptor(l), checkTitle(title)); err != nil {
			return nil, fmt.Errorf("layer %d: %w", i, err)
		}
		if slices.ContainsFunc(list, func(f File) bool { return f.Title == title }) {
			return nil, fmt.Errorf("layer %d: a second file %q", i, title)
		}
		list = append(list, File{Title: title, MediaType: l.MediaType, Digest: l.Digest.String(), Size: l.Size, desc: l})
	}
	models := 0
	for _, f := range list {
		if f.MediaType == ModelType {
			models++
		}
	}
	if want := map[string]int{ArtifactType: 1}[image.ArtifactType]; models != want {
		return nil, fmt.Errorf("%d files of type %s, expected %d in a version of type %s", models, ModelType, want, image.ArtifactType)
	}
	return list, nil
}

// checkTitle refuses titles that would not lie in a folder of the version's own, on any system.
func checkTitle(title string) error {
	if title == "" || len(title) > 255 || !filepath.IsLocal(filepath.FromSlash(title)) || strings.ContainsAny(title, "\\:\x00") || title != filepath.ToSlash(filepath.Clean(title)) {
		return fmt.Errorf("file title %q: expected a relative path with forward slashes", title)
	}
	return nil
}

// Open opens a file of the version by title. What is read is not compared with the digest; see
// [Version.Extract], [Version.Model] and [Store.Verify].
func (v Version) Open(title string) (io.ReadCloser, error) {
	i := slices.IndexFunc(v.Files, func(f File) bool { return f.Title == title })
	if i < 0 {
		return nil, fmt.Errorf("open %q of %s: it has no such file", title, v)
	}
	f, err := v.store.openBlob(v.Files[i].desc)
	if err != nil {
		return nil, fmt.Errorf("open %q of %s: %w", title, v, err)
	}
	return f, nil
}

// Model reads the model with its external data into memory, each file compared with its digest.
func (v Version) Model() (*onnx.Model, error) {
	m, err := v.model()
	if err != nil {
		return nil, fmt.Errorf("model of %s: %w", v, err)
	}
	return m, nil
}

// Is reports whether a model is, byte for byte, the one of the version.
func (v Version) Is(m *onnx.Model) (bool, error) {
	own, err := v.Model()
	if err != nil {
		return false, err
	}
	x, err := onnx.Marshal(m)
	if err != nil {
		return false, err
	}
	y, err := onnx.Marshal(own)
	return bytes.Equal(x, y), err
}

// HasModel reports whether the version has one; otherwise it is data, see [Draft.Data].
func (v Version) HasModel() bool {
	_, ok := v.file(ModelType)
	return ok
}

func (v Version) model() (*onnx.Model, error) {
	f, ok := v.file(ModelType)
	if !ok {
		return nil, errors.New("there is none: the version is data")
	}
	b, err := v.store.readBlob(f.desc, onnx.MaxModelBytes)
	if err != nil {
		return nil, err
	}
	m, err := onnx.Unmarshal(b)
	if err != nil {
		return nil, err
	}
	open := map[string]*os.File{}
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	err = m.ResolveExternalFrom(func(location string) (io.ReaderAt, int64, error) {
		if f := open[location]; f != nil {
			st, err := f.Stat()
			if err != nil {
				return nil, 0, err
			}
			return f, st.Size(), nil
		}
		i := slices.IndexFunc(v.Files, func(f File) bool { return f.Title == location })
		if i < 0 {
			return nil, 0, errors.New("the version has no such file")
		}
		if err := v.store.verifyBlob(context.Background(), v.Files[i].desc); err != nil {
			return nil, 0, err
		}
		f, err := v.store.openBlob(v.Files[i].desc)
		if err != nil {
			return nil, 0, err
		}
		open[location] = f
		return f, v.Files[i].Size, nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ModelFile is the path of the ONNX file in the store, for reading only; empty without a model. A
// model with external data cannot be loaded from there; see [Version.Extract].
func (v Version) ModelFile() string {
	f, ok := v.file(ModelType)
	if !ok {
		return ""
	}
	return v.store.blobPath(f.desc.Digest)
}

// Extract writes the version's files into a folder, which is made where it is missing, under their
// titles, and returns the path of the model, empty without one. Files that are there are replaced,
// each atomically; none is left with content that does not have its digest.
func (v Version) Extract(ctx context.Context, dir string) (model string, err error) {
	for _, f := range v.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Title))
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		if err == nil {
			err = atomicfile.WriteFileOn(v.store.disk, path, func(w io.Writer) error { return v.store.copyBlob(ctx, w, f.desc) })
		}
		if err != nil {
			return "", fmt.Errorf("extract %s: %w", v, err)
		}
		if f.MediaType == ModelType {
			model = path
		}
	}
	return model, nil
}
