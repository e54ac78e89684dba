package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Publish makes a draft a version and moves latest and the draft's other aliases to it, all at
// once. Content that was published before gives the version that is there. When Publish returns
// without an error the version is durable. After an error the store lists what it listed before or,
// where only making its last change durable has failed, the whole version; publishing again is safe
// in both cases.
func (s *Store) Publish(ctx context.Context, d Draft) (Version, error) {
	v, err := s.publish(ctx, d)
	if err != nil {
		return Version{}, fmt.Errorf("publish %s: %w", d.Manifest.Name, err)
	}
	return v, nil
}

func (s *Store) publish(ctx context.Context, d Draft) (Version, error) {
	if err := s.alive(); err != nil {
		return Version{}, err
	}
	blobs, err := d.compose(ctx)
	if err != nil {
		return Version{}, err
	}
	image := blobs[len(blobs)-1].desc
	aliases := append([]string{Latest}, d.Aliases...)
	if err := s.publishBlobs(ctx, blobs, func(index *ocispec.Index) { s.list(index, image, d.Manifest.Name, aliases) }); err != nil {
		return Version{}, err
	}
	return s.Resolve(image.Digest.String())
}

// publishBlobs writes the blobs that are missing and then changes the index.
func (s *Store) publishBlobs(ctx context.Context, blobs []blob, list func(*ocispec.Index)) error {
	staged := map[string]*staged{}
	defer func() {
		for _, st := range staged {
			s.unstage(st)
		}
	}()
	for {
		// Large writes happen outside the lock. What is there already must be intact; it may still
		// be removed until the lock is held.
		if err := s.stageMissing(ctx, blobs, staged); err != nil {
			return err
		}
		done, err := s.commit(ctx, blobs, staged, list)
		if done || err != nil {
			return err
		}
	}
}

// stageMissing writes those blobs to temporary files that the store does not hold intact.
func (s *Store) stageMissing(ctx context.Context, blobs []blob, done map[string]*staged) error {
	for _, b := range blobs {
		key := b.desc.Digest.String()
		if done[key] != nil {
			continue
		}
		err := s.verifyBlob(ctx, b.desc)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		if done[key], err = s.stage(ctx, b); err != nil {
			delete(done, key)
			return err
		}
	}
	return nil
}

// commit names the staged blobs, makes the names durable and then replaces the index. It reports
// false, having changed nothing, when a blob that was there is gone.
func (s *Store) commit(ctx context.Context, blobs []blob, staged map[string]*staged, list func(*ocispec.Index)) (done bool, err error) {
	release, err := s.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := s.clean(); err != nil {
		return false, err
	}
	for _, b := range blobs {
		if staged[b.desc.Digest.String()] == nil {
			if st, err := os.Stat(s.blobPath(b.desc.Digest)); err != nil || st.Size() != b.desc.Size {
				return false, nil
			}
		}
	}
	// In the order of the blobs, not of the map, so that every run does the same.
	for _, b := range blobs {
		if st := staged[b.desc.Digest.String()]; st != nil && st.file != nil {
			if err := s.settle(st); err != nil {
				return false, err
			}
		}
	}
	// Also when nothing was renamed: whoever wrote a blob may have been killed before its name was
	// durable.
	if err := s.disk.SyncDir(s.blobDir()); err != nil {
		return false, err
	}
	index, err := s.readIndex()
	if err != nil {
		return false, err
	}
	list(index)
	return true, s.writeIndex(index)
}

// clean removes what killed processes have left, once for each store that is opened. The caller
// holds the lock.
func (s *Store) clean() error {
	if s.cleaned.Load() {
		return nil
	}
	if err := errors.Join(atomicfile.Clean(s.dir), atomicfile.Clean(s.blobDir())); err != nil {
		return err
	}
	s.cleaned.Store(true)
	return nil
}

// list puts a version and its aliases into the index.
func (s *Store) list(index *ocispec.Index, image ocispec.Descriptor, name string, aliases []string) {
	i := slices.IndexFunc(index.Manifests, func(e ocispec.Descriptor) bool { return e.Digest == image.Digest })
	if i < 0 {
		image.Annotations = map[string]string{}
		if s.now != nil {
			image.Annotations[ocispec.AnnotationCreated] = s.now().UTC().Format(time.RFC3339Nano)
		}
		index.Manifests = append(index.Manifests, image)
		i = len(index.Manifests) - 1
	}
	entry := index.Manifests[i]
	for _, a := range aliases {
		setTag(index, tag(name, a), entry)
	}
}
