package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parts is what is stored of a blob larger than maxPart, under the blob's own digest: which blobs
// follow one another in it. It is written after them, behind a line with the digest of the text.
type parts struct {
	Size  int64      `json:"size"`
	Parts []partSize `json:"parts"`
}

type partSize struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
}

func partsKey(d Digest) string { return path.Join("parts", "sha256", d.hex()) }

// maxParts is the largest list of parts that is read, in bytes: parts of a blob of 2 TiB.
const maxParts = 16 << 20

// sending is a blob on its way. Its parts go by themselves; done is called when all have arrived.
type sending struct {
	blob  Blob
	parts parts
}

// send reads content and hands its parts to the group. It returns before they have arrived. No more
// than the store's Parallel parts are in memory.
func (s *Store) send(ctx context.Context, g *errgroup.Group, r io.Reader) (*sending, error) {
	whole := sha256.New()
	out := &sending{}
	for {
		if err := s.acquire(ctx); err != nil {
			return nil, err
		}
		b, err := io.ReadAll(io.LimitReader(r, s.part))
		if err != nil || len(b) == 0 && out.blob.Size > 0 {
			s.release()
			if err != nil {
				return nil, err
			}
			break
		}
		whole.Write(b)
		d := DigestOf(b)
		out.parts.Parts = append(out.parts.Parts, partSize{d, int64(len(b))})
		out.blob.Size += int64(len(b))
		g.Go(func() error {
			defer s.release()
			return s.putPart(ctx, d, b)
		})
		if int64(len(b)) < s.part {
			break
		}
	}
	out.blob.Digest, out.parts.Size = digestOfSum(whole.Sum(nil)), out.blob.Size
	return out, nil
}

// seal writes the list of parts, where there is more than one. The parts have arrived.
func (s *Store) seal(ctx context.Context, o *sending) error {
	if len(o.parts.Parts) == 1 {
		return nil
	}
	text, err := json.Marshal(o.parts)
	if err != nil {
		return err
	}
	return s.write(ctx, partsKey(o.blob.Digest), append([]byte(DigestOf(text)+"\n"), text...))
}

// PutBlob stores content of any size, which must be what want says. Parts that are there already
// are not sent again, so a PutBlob that was interrupted goes on where it was.
func (s *Store) PutBlob(ctx context.Context, want Blob, r io.Reader) error {
	if err := want.check(); err != nil {
		return err
	}
	g, inner := errgroup.WithContext(ctx)
	o, err := s.send(inner, g, r)
	if failed := g.Wait(); failed != nil {
		err = failed
	}
	if err == nil && o.blob != want {
		err = fmt.Errorf("its source has %d bytes with digest %s, expected %d bytes", o.blob.Size, o.blob.Digest, want.Size)
	}
	if err == nil {
		err = s.seal(ctx, o)
	}
	return s.wrap("put "+string(want.Digest), err)
}

// HasBlob reports whether a blob is there. Its content is read with Options.Verify only; one that
// is damaged is not there then.
func (s *Store) HasBlob(ctx context.Context, b Blob) (bool, error) {
	if err := b.check(); err != nil {
		return false, err
	}
	key := blobKey(b.Digest)
	if b.Size > s.part {
		key = partsKey(b.Digest)
	}
	info, err := s.stat(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if there := b.Size > s.part || info.Size == b.Size; err != nil || !there || !s.verify {
		return err == nil && there, s.wrap("stat "+string(b.Digest), err)
	}
	switch err := s.check(ctx, b); {
	case errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return err == nil, err
	}
}

// check reads a blob from the bucket and compares it with its digest.
func (s *Store) check(ctx context.Context, b Blob) error {
	bare := &Store{source: s.source, url: s.url, slots: s.slots, most: s.most, part: s.part, report: func(int64) {}}
	r, err := bare.OpenBlob(ctx, b)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

// partsOf returns the parts of a blob, whose sizes add up to its own.
func (s *Store) partsOf(ctx context.Context, b Blob) ([]partSize, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	if b.Size <= s.part {
		return []partSize{{b.Digest, b.Size}}, nil
	}
	var text []byte
	err := s.verified(ctx, partsKey(b.Digest), func() error {
		all, err := s.readAll(ctx, partsKey(b.Digest), maxParts)
		if err != nil {
			return Final(err)
		}
		var line []byte
		if line, text, _ = bytes.Cut(all, []byte("\n")); string(line) != string(DigestOf(text)) {
			return fmt.Errorf("%w: its text has another digest than its first line says", ErrDamaged)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var p parts
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, s.damage(partsKey(b.Digest), fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	sum := int64(0)
	for _, part := range p.Parts {
		if part.Size <= 0 || part.Size > s.part || part.Digest.Check() != nil {
			return nil, s.damage(partsKey(b.Digest), fmt.Errorf("%w: a part of %d bytes with digest %q", ErrDamaged, part.Size, part.Digest))
		}
		sum += part.Size
	}
	if sum != b.Size {
		return nil, s.damage(partsKey(b.Digest), fmt.Errorf("%w: its parts have %d bytes, expected %d", ErrDamaged, sum, b.Size))
	}
	return p.Parts, nil
}

// OpenBlob reads a blob. Every part is compared with its digest before it is handed out, and the
// whole before the end.
func (s *Store) OpenBlob(ctx context.Context, b Blob) (io.ReadCloser, error) {
	p, err := s.partsOf(ctx, b)
	if err != nil {
		return nil, s.wrap("get "+string(b.Digest), err)
	}
	return &blobReader{ctx: ctx, s: s, blob: b, parts: p, whole: sha256.New()}, nil
}

type blobReader struct {
	ctx   context.Context
	s     *Store
	blob  Blob
	parts []partSize
	whole hash.Hash
	rest  []byte
}

func (r *blobReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if len(r.parts) == 0 {
			if got := digestOfSum(r.whole.Sum(nil)); got != r.blob.Digest {
				return 0, r.s.wrap("get "+string(r.blob.Digest), r.s.damage(partsKey(r.blob.Digest), fmt.Errorf("%w: its parts have digest %s", ErrDamaged, got)))
			}
			return 0, io.EOF
		}
		b, err := r.s.getPart(r.ctx, Blob(r.parts[0]))
		if err != nil {
			return 0, r.s.wrap("get "+string(r.blob.Digest), err)
		}
		r.whole.Write(b)
		r.rest, r.parts = b, r.parts[1:]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *blobReader) Close() error { return nil }

// writerAt is where a blob is put together.
type writerAt interface {
	io.WriterAt
	io.ReaderAt
}

// receive hands the parts of a blob to the group, which write them to their places in f, and
// returns before they are there. When none is on its way any more, done is called once, and told
// whether the blob is whole.
func (s *Store) receive(ctx context.Context, g *errgroup.Group, b Blob, f writerAt, done func(whole bool) error) error {
	list, err := s.partsOf(ctx, b)
	if err != nil {
		return errors.Join(err, done(false))
	}
	var left atomic.Int64
	var failed atomic.Bool
	end := func(err error) error {
		if err != nil {
			failed.Store(true)
		}
		if left.Add(-1) > 0 {
			return err
		}
		if failed.Load() {
			return errors.Join(err, done(false))
		}
		if len(list) > 1 {
			// The list of parts is stored under the digest of the whole, not under its own.
			err = s.whole(f, b)
		}
		return errors.Join(err, done(err == nil))
	}
	// This function itself is the first to end.
	left.Add(1)
	offset := int64(0)
	for _, part := range list {
		if err := s.acquire(ctx); err != nil {
			return end(err)
		}
		at := offset
		offset += part.Size
		left.Add(1)
		g.Go(func() error {
			content, err := s.getPart(ctx, Blob(part))
			if err == nil {
				_, err = f.WriteAt(content, at)
			}
			s.release()
			return end(err)
		})
	}
	return end(nil)
}

// whole compares what was put together of parts with the digest of the blob.
func (s *Store) whole(r io.ReaderAt, b Blob) error {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(r, 0, b.Size)); err != nil {
		return err
	}
	if got := digestOfSum(h.Sum(nil)); got != b.Digest {
		return s.damage(partsKey(b.Digest), fmt.Errorf("%w: its parts have digest %s", ErrDamaged, got))
	}
	return nil
}
