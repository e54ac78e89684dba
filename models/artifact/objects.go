package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

// ObjectStorage shows a store of package objects to [Store.Push] and [Store.Pull] as a registry's
// repository: files are its blobs, and a tag is one below versions.
func ObjectStorage(s *objects.Store) Target { return objectStorage{s} }

type objectStorage struct{ s *objects.Store }

func objectOf(d ocispec.Descriptor) objects.Blob {
	return objects.Blob{Digest: objects.Digest(d.Digest), Size: d.Size}
}

// absent marks an error for anything that is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return NotFound(fmt.Errorf("not found: %w", err))
	}
	return err
}

// Fetch implements Source.
func (o objectStorage) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	r, err := o.s.OpenBlob(ctx, objectOf(d))
	return r, absent(err)
}

// Exists implements Target.
func (o objectStorage) Exists(ctx context.Context, d ocispec.Descriptor) (bool, error) {
	if o.s.Verifies() && d.MediaType == ocispec.MediaTypeImageManifest {
		// Where it were there, nobody would look at the files that it names.
		return false, nil
	}
	return o.s.HasBlob(ctx, objectOf(d))
}

// Push implements Target.
func (o objectStorage) Push(ctx context.Context, d ocispec.Descriptor, r io.Reader) error {
	return o.s.PutBlob(ctx, objectOf(d), r)
}

func versionTag(alias string) string { return path.Join("versions", alias) }

// Tag implements Target.
func (o objectStorage) Tag(ctx context.Context, d ocispec.Descriptor, alias string) error {
	if err := CheckAlias(alias); err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return o.s.SetTag(ctx, versionTag(alias), text)
}

// Resolve implements Source.
func (o objectStorage) Resolve(ctx context.Context, ref string) (d ocispec.Descriptor, err error) {
	if strings.HasPrefix(ref, digestPrefix) {
		text, err := o.s.Get(ctx, objects.Digest(ref))
		if err != nil {
			return d, absent(err)
		}
		return blobOf(ocispec.MediaTypeImageManifest, "", text).desc, nil
	}
	if err := CheckAlias(ref); err != nil {
		return d, err
	}
	text, err := o.s.Tag(ctx, versionTag(ref))
	if err != nil {
		return d, absent(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("tag %s: %w", ref, err)
	}
	return d, nil
}
