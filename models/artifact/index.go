package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// maxIndex bounds index.json.
const maxIndex = 64 << 20

func emptyIndex() *ocispec.Index {
	return &ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
}

// readIndex reads index.json, which is replaced as a whole and so needs no lock to be read.
func (s *Store) readIndex() (*ocispec.Index, error) {
	path := filepath.Join(s.dir, ocispec.ImageIndexFile)
	text, err := readFile(path, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrDamaged, path)
	}
	if err != nil {
		return nil, err
	}
	index, err := decodeIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	return index, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

// decodeIndex checks what every entry must have, and that no tag stands for two things.
func decodeIndex(text []byte) (*ocispec.Index, error) {
	var index ocispec.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	if index.SchemaVersion != 2 {
		return nil, fmt.Errorf("schemaVersion is %d, expected 2", index.SchemaVersion)
	}
	tags := map[string]digest.Digest{}
	for i, d := range index.Manifests {
		if err := d.Digest.Validate(); err != nil {
			return nil, fmt.Errorf("entry %d: digest %q: %w", i, d.Digest, err)
		}
		if d.Size < 0 {
			return nil, fmt.Errorf("entry %d: size %d", i, d.Size)
		}
		name := d.Annotations[ocispec.AnnotationRefName]
		if name == "" {
			continue
		}
		if was, ok := tags[name]; ok && was != d.Digest {
			return nil, fmt.Errorf("%q stands for %s and for %s", name, was, d.Digest)
		}
		tags[name] = d.Digest
	}
	return &index, nil
}

func (s *Store) writeIndex(index *ocispec.Index) error {
	text, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxIndex {
		return fmt.Errorf("the index would have %d bytes, expected at most %d", len(text), maxIndex)
	}
	return s.write(ocispec.ImageIndexFile, append(text, '\n'))
}

func (s *Store) write(name string, text []byte) error {
	return atomicfile.WriteFileOn(s.disk, filepath.Join(s.dir, name), func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	})
}

// entry is a version of the index with all its tags.
type entry struct {
	desc      ocispec.Descriptor
	tags      []string
	published time.Time
}

// entries gathers the index by digest, in order of first mention. What cannot be a version of this
// package is left out.
func entries(index *ocispec.Index) []entry {
	var list []entry
	at := map[digest.Digest]int{}
	for _, d := range index.Manifests {
		if d.MediaType != ocispec.MediaTypeImageManifest || d.Digest.Algorithm() != digest.SHA256 || !slices.Contains([]string{"", ArtifactType, DataArtifactType}, d.ArtifactType) {
			continue
		}
		i, ok := at[d.Digest]
		if !ok {
			i = len(list)
			at[d.Digest] = i
			list = append(list, entry{desc: d})
		}
		e := &list[i]
		if t := d.Annotations[ocispec.AnnotationRefName]; t != "" && !slices.Contains(e.tags, t) {
			e.tags = append(e.tags, t)
		}
		if when, err := time.Parse(time.RFC3339Nano, d.Annotations[ocispec.AnnotationCreated]); err == nil && (e.published.IsZero() || when.Before(e.published)) {
			e.published = when
		}
	}
	for i := range list {
		slices.Sort(list[i].tags)
	}
	return list
}

// hasEntry reports whether the index lists a version.
func hasEntry(index *ocispec.Index, d digest.Digest) bool {
	return slices.ContainsFunc(index.Manifests, func(e ocispec.Descriptor) bool { return e.Digest == d })
}

// setTag lets a tag stand for the version of an entry. The version that it stood for stays in the
// index.
func setTag(index *ocispec.Index, name string, desc ocispec.Descriptor) {
	at := slices.IndexFunc(index.Manifests, func(d ocispec.Descriptor) bool { return d.Annotations[ocispec.AnnotationRefName] == name })
	if at >= 0 && index.Manifests[at].Digest == desc.Digest {
		return
	}
	removeTag(index, name)
	tagged := untagged(desc)
	tagged.Annotations[ocispec.AnnotationRefName] = name
	index.Manifests = append(index.Manifests, tagged)
}

// removeTag lets a tag stand for nothing and reports whether it stood for something, which stays in
// the index.
func removeTag(index *ocispec.Index, name string) bool {
	found := false
	for i := 0; i < len(index.Manifests); i++ {
		d := index.Manifests[i]
		if d.Annotations[ocispec.AnnotationRefName] != name {
			continue
		}
		found = true
		// The entry of the version itself stays. Programs that write one entry for a version and
		// its tag leave no other.
		if index.Manifests = slices.Delete(index.Manifests, i, i+1); !hasEntry(index, d.Digest) {
			index.Manifests = slices.Insert(index.Manifests, i, untagged(d))
		} else {
			i--
		}
	}
	return found
}

// untagged copies an entry without its tag.
func untagged(d ocispec.Descriptor) ocispec.Descriptor {
	a := map[string]string{}
	for k, v := range d.Annotations {
		if k != ocispec.AnnotationRefName {
			a[k] = v
		}
	}
	d.Annotations = a
	return d
}
