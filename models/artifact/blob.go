package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ErrDamaged marks everything of a store that is not what its digest says, and what should be there
// and is not.
var ErrDamaged = errors.New("the artefact store is damaged")

// DamageError says which blob is not what the store says it is.
type DamageError struct {
	// Blob is the digest that the blob is stored under, and Path its file.
	Blob, Path string
	// Got is the digest of what is there; empty where the blob is missing or has another size.
	Got string
	// What says what is wrong where that is not the digest.
	What string
}

func (e *DamageError) Error() string {
	if e.Got != "" {
		return fmt.Sprintf("blob %s is damaged: %s has digest %s", e.Blob, e.Path, e.Got)
	}
	return fmt.Sprintf("blob %s is damaged: %s %s", e.Blob, e.Path, e.What)
}

// Is makes every DamageError an ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

func (s *Store) blobDir() string {
	return filepath.Join(s.dir, ocispec.ImageBlobsDir, string(digest.SHA256))
}

// blobPath is where a blob lies. The digest is valid and SHA-256.
func (s *Store) blobPath(d digest.Digest) string { return filepath.Join(s.blobDir(), d.Encoded()) }

// checkDescriptor refuses what this package cannot read: descriptors come from foreign bytes, and a
// digest becomes a file name.
func checkDescriptor(d ocispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return fmt.Errorf("digest %q: %w", d.Digest, err)
	}
	if d.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("digest %q: expected SHA-256", d.Digest)
	}
	if d.Size < 0 {
		return fmt.Errorf("blob %s: size %d", d.Digest, d.Size)
	}
	return nil
}

// openBlob opens a blob whose size is what the descriptor says.
func (s *Store) openBlob(d ocispec.Descriptor) (*os.File, error) {
	if err := checkDescriptor(d); err != nil {
		return nil, err
	}
	path := s.blobPath(d.Digest)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &DamageError{Blob: d.Digest.String(), Path: path, What: "is missing"}
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = &DamageError{Blob: d.Digest.String(), Path: path, What: "is not a regular file"}
	case st.Size() != d.Size:
		err = &DamageError{Blob: d.Digest.String(), Path: path, What: fmt.Sprintf("has %d bytes, expected %d", st.Size(), d.Size)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readBlob reads a blob of at most limit bytes into memory and compares it with its digest.
func (s *Store) readBlob(d ocispec.Descriptor, limit int64) ([]byte, error) {
	if d.Size > limit {
		return nil, fmt.Errorf("blob %s: %d bytes, expected at most %d", d.Digest, d.Size, limit)
	}
	f, err := s.openBlob(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, d.Size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("blob %s: %w", d.Digest, err)
	}
	if got := digest.FromBytes(b); got != d.Digest {
		return nil, &DamageError{Blob: d.Digest.String(), Path: f.Name(), Got: got.String()}
	}
	return b, nil
}

// verifyBlob compares a blob with its digest without keeping it.
func (s *Store) verifyBlob(ctx context.Context, d ocispec.Descriptor) error {
	return s.copyBlob(ctx, io.Discard, d)
}

// copyBlob writes a blob to w and then compares what was written with its digest.
func (s *Store) copyBlob(ctx context.Context, w io.Writer, d ocispec.Descriptor) error {
	f, err := s.openBlob(d)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := newSum(w)
	if err := copyContext(ctx, sum, f); err != nil {
		return fmt.Errorf("blob %s: %w", d.Digest, err)
	}
	if got := sum.digest(); got != d.Digest {
		return &DamageError{Blob: d.Digest.String(), Path: f.Name(), Got: got.String()}
	}
	return nil
}

// sum hashes and counts what it passes on.
type sum struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func newSum(to io.Writer) *sum { return &sum{to: to, hash: sha256.New()} }

func (s *sum) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	return n, err
}

func (s *sum) digest() digest.Digest { return digest.NewDigest(digest.SHA256, s.hash) }

// copyContext copies in pieces and stops when the context ends.
func copyContext(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, 256<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// blob is content to be published. Its source can be read any number of times.
type blob struct {
	desc ocispec.Descriptor
	open func() (io.ReadCloser, error)
}

// blobOf describes bytes.
func blobOf(mediaType, title string, b []byte) blob {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	return blob{desc: describe(mediaType, title, digest.FromBytes(b), int64(len(b))), open: open}
}

// blobOfFile describes a file, which is read for its digest.
func blobOfFile(ctx context.Context, mediaType, title, path string) (blob, error) {
	st, err := os.Stat(path)
	if err != nil {
		return blob{}, err
	}
	if !st.Mode().IsRegular() {
		return blob{}, fmt.Errorf("%s is not a regular file", path)
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	f, err := open()
	if err != nil {
		return blob{}, err
	}
	defer f.Close()
	s := newSum(io.Discard)
	if err := copyContext(ctx, s, f); err != nil {
		return blob{}, fmt.Errorf("read %s: %w", path, err)
	}
	return blob{desc: describe(mediaType, title, s.digest(), s.size), open: open}, nil
}

func describe(mediaType, title string, d digest.Digest, size int64) ocispec.Descriptor {
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: size}
	if title != "" {
		desc.Annotations = map[string]string{ocispec.AnnotationTitle: title}
	}
	return desc
}

// staged is a blob that has been written and synced under a temporary name. It stays open until it
// is renamed: the lock on an open file tells others that it is not stale.
type staged struct {
	temp string
	file atomicfile.File
	desc ocispec.Descriptor
}

// stage writes a blob to a temporary file in the folder of blobs.
func (s *Store) stage(ctx context.Context, b blob) (_ *staged, err error) {
	temp := atomicfile.TempName(s.blobPath(b.desc.Digest))
	f, err := s.disk.Create(temp)
	if err != nil {
		return nil, err
	}
	st := &staged{temp: temp, file: f, desc: b.desc}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unstage(st))
		}
	}()
	src, err := b.open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	out := newSum(f)
	// No more than one byte too many: the source may not end.
	if err := copyContext(ctx, out, io.LimitReader(src, b.desc.Size+1)); err != nil {
		return nil, fmt.Errorf("write blob %s: %w", b.desc.Digest, err)
	}
	if out.size != b.desc.Size {
		return nil, fmt.Errorf("write blob %s: its source does not have the %d bytes that it is said to have", b.desc.Digest, b.desc.Size)
	}
	if got := out.digest(); got != b.desc.Digest {
		return nil, fmt.Errorf("write blob %s: its source is not what it is said to be and has digest %s", b.desc.Digest, got)
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("write blob %s: %w", b.desc.Digest, err)
	}
	return st, nil
}

// unstage removes what was staged and not renamed.
func (s *Store) unstage(st *staged) error {
	if st.file == nil {
		return nil
	}
	err := st.file.Close()
	st.file = nil
	return errors.Join(err, s.disk.RemoveAll(st.temp))
}

// settle gives a staged blob its name. The caller holds the lock, under which nobody removes a file
// that is closed but not renamed yet; some systems rename no open file.
func (s *Store) settle(st *staged) error {
	err := st.file.Close()
	st.file = nil
	if err == nil {
		err = s.disk.Rename(st.temp, s.blobPath(st.desc.Digest))
	}
	if err != nil {
		return errors.Join(err, s.disk.RemoveAll(st.temp))
	}
	return nil
}
